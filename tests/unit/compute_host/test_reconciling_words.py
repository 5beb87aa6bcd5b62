# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reconcile says of containers and guests. If these fail, an operator reads what is wrong, not what to type.

Tests compute_host/unclaimed_instances.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.config import HostConfig
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import (
    reconciliation,
    unclaimed_instances,
)


@pytest.fixture
def work():
    """ml-8, which has a claim."""
    told = dict(instance="ml-8", flavor={"name": "gpu.2"}, image="box", state="running", note="")
    claim = SimpleNamespace(**told, container="key", address="10.0.3.2")
    store = SimpleNamespace(doubt_of=lambda claim: None, other_lease=lambda claim: None)
    host = SimpleNamespace(store=store)
    whole = dict.fromkeys(("must_not_be_lost", "must_not_be_newer"), lambda: None)
    return SimpleNamespace(claim=claim, word="guest", is_made=False, host=host, **whole)


@pytest.mark.parametrize(("made", "said"), [(1, "its guest is gone"), (0, "claimed, and its guest not made yet")])
def test_what_is_not_there_is_asked_for_again_or_ended(work, made, said):
    """Lost: the command that brings back an instance which somebody removed by hand."""
    work.claim.container = "key" if made else None
    look = {"found": []}
    reconciliation._judge(work, look)
    asked = "-e instance=ml-8 -e flavor=gpu.2 -e image=box"
    again = f"ansible-playbook hetero.compute.provision_instance {asked} makes it"
    end = "ansible-playbook hetero.compute.terminate_instance -e instance=ml-8 ends it"
    assert look["found"] == [dict(found=f"{said}: {again}{' anew' if made else ''}, {end}", done=None)]


def test_how_a_container_of_no_instance_goes_is_said(monkeypatch):
    """Lost: memory and a name, to a container of which only its id is known to be ours."""
    made = [("container", "/var/lib/lxc/left"), ("container", "/var/lib/lxc/kept"), ("guest", "/guests/vm")]
    monkeypatch.setattr(unclaimed_instances, "_unclaimed", lambda host, _all: [(*one, one[1][-4:]) for one in made])
    monkeypatch.setattr(unclaimed_instances, "_copy_of", lambda host, instance: None)
    monkeypatch.setattr(unclaimed_instances, "whose", lambda host, instance: "jo's" if instance == "kept" else None)
    monkeypatch.setattr(unclaimed_instances, "_told", lambda host, instance, what: f"told: {what}")
    store = SimpleNamespace(claims=list, records=SimpleNamespace(instances=list))
    host = SimpleNamespace(config=HostConfig(), store=store)
    left, *told = unclaimed_instances.of_no_instance(host)
    assert left.startswith("container left of /var/lib/lxc, of no instance: ")
    assert "whose root lxc.rootfs.path in its config names and whose lies in " in left
    assert not [word for word in ("lxc-destroy", "rm ", "umount ") if word in left], "it may name another's root"
    assert told == ["told: container /var/lib/lxc/kept", "told: guest /guests/vm"]
