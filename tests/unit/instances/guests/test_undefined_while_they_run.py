# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest whose domain somebody undefined while it runs (virsh undefine; it is transient since, and libvirt has no more
of it once it ends). Lost: its stop, reboot and end, which say that there is no such domain once they have ended it: a
reboot leaves it down, an end or a rebuild leaves the rest of it for somebody to ask once more.
"""

from __future__ import annotations

import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import BARE


@pytest.fixture
def undefined(site):
    site.provision("a", flavor=BARE)
    subprocess.run([site.virt.root / "programs/virsh", "undefine", "a"], check=True)
    assert site.virt.domain("a").active
    assert not site.virt.domain("a").persistent
    return site


@pytest.mark.parametrize(
    ("verb", "options", "state"),
    [
        ("stopped", {}, "stopped"),
        ("stopped", {"how": "hard"}, "stopped"),
        ("rebooted", {}, "running"),
        ("rebooted", {"how": "hard"}, "running"),
        ("rebuilt", {"fresh": True}, "running"),
        ("running", {}, "running"),
        ("absent", {}, None),
    ],
)
def test_its_verbs_go_on(undefined, verb, options, state):
    done = undefined.do(verb, "a", **options)
    assert not done.get("failed"), done["msg"]
    assert [one["state"] for one in undefined.info()["instances"]] == ([state] if state else [])
    assert bool(undefined.files("a")) == bool(state)


def test_it_is_defined_once_it_starts_again(undefined):
    """Lost: its start with its host, which a transient domain cannot have."""
    assert not undefined.do("rebooted", "a").get("failed")
    assert undefined.virt.domain("a").persistent
    assert (undefined.folder / "etc/libvirt/qemu/autostart/a.xml").exists()


def test_no_domain_has_ended_that_is_not_to_be_asked(virt):
    """Lost: a guest that runs, of which libvirt did not answer what it does."""
    hand = virt.define("hand")
    virt.fail("domstate", "failed to get domain 'hand'")
    with pytest.raises(BadInput, match="there is no such domain"):
        hand.stop()
