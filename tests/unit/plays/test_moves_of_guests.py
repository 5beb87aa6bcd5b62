# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest moves to another host, as its user types it. If these fail, it is off on both hosts, or its data are lost."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.tests.builds import shared
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import NETWORK
from ansible_collections.hetero.compute.tests.unit.plays.proxies import GuestHost, Playbooks
from ansible_collections.hetero.compute.tests.unit.plays.test_guests_by_name import KG0

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")
TYPES = json.dumps({"hetero_extra_instance_types": {"kg0.small": KG0}})


class SecondHost(GuestHost):
    addresses = tuple(f"{NETWORK}.{number}" for number in (20, 22))


@pytest.fixture
def two(tmp_path, monkeypatch):
    """ml-9 runs on kvm1; (kvm1, kvm2, the playbooks). Both have a copy of the collection, or no piece is sent there."""
    tmp_path.chmod(0o755)
    if not shared():
        monkeypatch.setenv("HETERO_BUILDS", str(tmp_path))
    made = []
    try:
        made.append(GuestHost(tmp_path / "kvm1", 3))
        made.append(SecondHost(tmp_path / "kvm2", 4))
        plays = Playbooks(tmp_path, [], kvm_hosts=["kvm1", "kvm2"])
        rc, output = plays.play("provision_instance", "-e", TYPES, instance="ml-9", flavor="kg0.small", without="kvm2")
        assert rc == 0, output
        yield *made, plays
    finally:
        for host in made:
            host.remove()


def state(host):
    """The state, host key and address of what is recorded; None where nothing is."""
    with Store(host.state_db, create=False) as store:
        return next(((one.state, one.host_key, one.address) for one in store.claims()), None)


def disk(host):
    return host.folder / "var/lib/hetero/guests/ml-9/disk.raw"


@pytest.mark.dear
def test_a_user_moves_a_guest_and_is_told_its_address(two):
    """Lost: the disk of a tenant, or the way to it."""
    old, new, plays = two
    _state, key, _address = state(old)
    rc, output = plays.play("migrate_instance", "--check", instance="ml-9")
    assert rc == 0, output
    assert "ml-9    moves from kvm1 to kvm2" in output
    assert "would be stopped, and kept off" in output
    assert (state(old)[0], state(new)) == ("running", None)
    whole = disk(old).read_bytes()
    rc, output = plays.play("migrate_instance", "-v", instance="ml-9")
    assert rc == 0, output
    assert "pieces" in output
    assert f"ml-9 is running on kvm2: ssh root@{SecondHost.addresses[0]}" in output
    assert state(new) == ("running", key, SecondHost.addresses[0])
    assert (state(old), disk(old).exists()) == (None, False)
    assert disk(new).read_bytes() == whole
    assert '"data": "' not in output, "a tenant's data were shown"
    rc, output = plays.play("migrate_instance", instance="ml-9", node="kvm2")
    assert rc == 0, output
    assert "ml-9 is on kvm2 already" in output


@pytest.mark.long
def test_what_fails_on_the_way_has_it_run_where_it_ran(two):
    """Lost: an instance, because the other host's disk broke."""
    old, new, plays = two
    (new.folder / "says-instance_copy").write_text("no answer\n")
    rc, output = plays.play("migrate_instance", instance="ml-9")
    assert rc != 0, output
    assert "ml-9 does not move to kvm2" in output
    assert state(old)[0] == "running"
    (new.folder / "says-instance_copy").unlink()
    # the second call of its modules after the claim, and all that follow, find no host
    (new.folder / "answers").write_text("3")
    rc, output = plays.play("migrate_instance", instance="ml-9")
    assert rc != 0, output
    assert "-e back=true" in output
    assert (state(old)[0], state(new)[0]) == ("leaving", "arriving")
    (new.folder / "answers").unlink()
    rc, output = plays.play("stop_instance", instance="ml-9")
    assert rc != 0, output
    assert "ml-9 moves from kvm1 to kvm2" in output
    rc, output = plays.play("status")
    assert rc == 0, output
    assert output.count("ml-9") == 1, output
    assert "moves to kvm2" in output
    rc, output = plays.play("migrate_instance", instance="ml-9", back="true")
    assert rc == 0, output
    assert "ml-9 is running on kvm1" in output
    assert (state(old)[0], state(new)) == ("running", None)
    rc, output = plays.play("migrate_instance", instance="ml-9")
    assert rc == 0, output
    assert (state(old), state(new)[0]) == (None, "running")


@pytest.mark.long
def test_ended_on_its_way_both_halves_go(two):
    """Lost: an address and memory on one of the hosts, for good."""
    old, new, plays = two
    (new.folder / "answers").write_text("3")
    assert plays.play("migrate_instance", instance="ml-9")[0] != 0
    (new.folder / "answers").unlink()
    rc, output = plays.play("terminate_instance", instance="ml-9")
    assert rc == 0, output
    assert (state(old), state(new)) == (None, None)
