# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As tests/unit/instances/test_older_copies_of_hosts.py, on a host of guests.

Tests devices/pci/allocation.py.
"""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host_claims import present
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.allocation import write_down
from ansible_collections.hetero.compute.tests.unit.instances.guests.conftest import CARD, KG1

SMALL = dict(KG1, extra_specs={"hypervisor": "s== kvm"})


def found_by_reconcile(site):
    with site.host() as host:
        return reconcile(host, Change(), 5.0)


def put_back(copy, database):
    """Put an older copy in a database's place, as is printed."""
    for path in database.parent.glob("host.db*"):
        path.unlink()
    shutil.copy(copy, database)


def test_a_guest_of_which_no_claim_is_known_is_not_said_to_be_none(site):
    """Lost: a guest, which runs on, although its tenant was told that there is none."""
    assert site.provision("ml-7", flavor=SMALL)["new"] == ["ml-7"]
    database = site.folder / "var/lib/hetero/host.db"
    copy = backups.make(str(database))
    assert site.provision("ml-8", flavor=SMALL)["new"] == ["ml-8"]
    folder = site.folder / "guests-files/ml-8"
    before = {path.name: path.stat().st_ino for path in folder.iterdir()}
    put_back(copy, database)
    said = found_by_reconcile(site)
    assert [text for text in said["others"] if f"guest {folder} (by the record of its claim " in text] == said["others"]
    assert len(said["others"]) == 1
    with pytest.raises(Refused, match=f"no claim of it is in the database of {THIS_NODE}") as refused:
        site.do("absent", "ml-8")
    assert f"and guest {folder} (by the record of its claim " in str(refused.value)
    (found,) = site.info(instance="ml-8")["unclaimed"]
    assert (found["instance"], found["name"]) == ("ml-8", "kvm1")
    assert {path.name: path.stat().st_ino for path in folder.iterdir()} == before
    assert site.do("absent", "ml-7")["instances"][0]["failed"] is False


def test_the_card_of_a_guest_that_the_database_forgot_is_not_to_be_taken(site):
    """Lost: a tenant's card, by the remedy for domains that are nobody's: it was given to the next one by a copy."""
    database = site.folder / "var/lib/hetero/host.db"
    assert site.provision("ml-7", flavor=SMALL)["new"] == ["ml-7"]
    copy = backups.make(str(database))
    site.provision("ml-8")
    put_back(copy, database)
    with site.host() as host:
        write_down(host.store, "domain:hand", CARD, host.pci)
    (one,) = [one for one in found_by_reconcile(site)["domains"] if one["domain"] == "ml-8"]
    assert one["found"].startswith("a domain that no claim in the database has (by the record of its claim ")
    assert "and it is allocated to hand: nothing is taken from it: put a newer copy" in one["found"]
    assert "libvirt_hostdev" not in one["found"]


@pytest.fixture
def forgotten(site):
    """jo's ml-8 with a card, which runs and of which no claim is known; the folder of guests is not mounted."""
    database = site.folder / "var/lib/hetero/host.db"
    assert site.provision("ml-7", flavor=SMALL)["new"] == ["ml-7"]
    copy = backups.make(str(database))
    assert site.provision("ml-8", owner="jo")["new"] == ["ml-8"]
    put_back(copy, database)
    (site.folder / "guests-files").rename(site.folder / "not-mounted")
    (site.folder / "guests-files").mkdir()
    return site


@pytest.mark.parametrize("runs", [True, False])
def test_the_card_of_a_guest_that_is_not_mounted_is_not_to_be_taken(forgotten, runs):
    """Lost: jo's card, by the remedy for domains that are nobody's: only its record says that it is jo's."""
    if not runs:
        forgotten.virt.domain("ml-8").stop()
    said = found_by_reconcile(forgotten)
    (one,) = said["domains"]
    assert (one["domain"], one["address"], one["done"]) == ("ml-8", CARD, "written down")
    assert one["found"].startswith("a domain that no claim in the database has (by the record of its claim jo's")
    assert "libvirt_hostdev" not in one["found"]
    assert forgotten.table() == {CARD: "domain:ml-8"}
    (other,) = said["others"]
    assert f"no claim of it is in the database of {THIS_NODE}" in other
    assert "host.claims/ml-8.json (by the record of its claim jo's" in other
    with pytest.raises(NoneFree, match="allocated to ml-8 since"):
        forgotten.provision("ml-9", owner="eve")
    assert "libvirt_hostdev" not in str(found_by_reconcile(forgotten)["domains"])


def test_a_guest_that_is_not_mounted_is_not_to_be_renamed(forgotten):
    """Lost: jo's guest, which the database that is put back no more finds: who asked for its name was told to rename
    it.
    """
    record = forgotten.folder / "var/lib/hetero/host.claims/ml-8.json"
    before = record.read_bytes()
    forgotten.virt.domain("ml-8").stop()
    with pytest.raises(NoneFree, match=f"no claim of it is in the database of {THIS_NODE}") as refused:
        forgotten.provision("ml-8", owner="eve")
    assert "rename it" not in str(refused.value)
    assert record.read_bytes() == before


def test_a_domain_by_hand_with_the_name_of_a_container_is_no_guest(site):
    """Lost: the way to take a card from a domain that is nobody's, which is called as an instance in a container."""
    with site.host() as host:
        present(host, site.request("ml-7", flavor=SMALL), Change())
        host.store.records.write(replace(host.store.claim_of("ml-7"), instance="hand", request="hand", kind="lxc"))
    hand = site.virt.define("hand")
    site.virt.attach(hand, CARD, live=False)
    with site.host() as host, host.store.transaction():
        for row in host.store.allocations():
            host.store.free(row)
    (one,) = found_by_reconcile(site)["domains"]
    assert one["found"].startswith("a domain of no instance would start with it, and it is allocated to nobody: once")
    assert "module libvirt_hostdev with domain hand and state detached" in one["found"]


@pytest.mark.parametrize("runs", [True, False])
def test_a_guest_that_was_made_since_the_copy_is_not_made_anew(site, runs):
    """Lost: a guest's disk, by asking for it again: the copy is from the moment of its claim."""
    database = site.folder / "var/lib/hetero/host.db"
    with site.host() as host:
        present(host, site.request("ml-8", flavor=SMALL), Change())
    copy = backups.make(str(database))
    assert not site.do("running", "ml-8").get("failed")
    folder = site.folder / "guests-files/ml-8"
    if not runs:
        site.do("stopped", "ml-8")
        (folder / "console.log").write_text("login:")
    before = {path.name: path.stat().st_ino for path in folder.iterdir()}
    put_back(copy, database)
    for verb in ("running", "absent", "rebuilt"):
        result = site.do(verb, "ml-8")
        assert result["failed"]
        assert f"guest {folder} has run, and the database of {THIS_NODE}, which may be older" in result["msg"]
        assert {path.name: path.stat().st_ino for path in folder.iterdir()} == before


@pytest.mark.parametrize("verb", ["running", "absent"])
def test_a_guest_that_ran_by_its_record_is_not_made_anew(site, verb):
    """Lost: a guest's disk, as above, where its console's log was emptied, and only the claim's record knows of it."""
    database = site.folder / "var/lib/hetero/host.db"
    with site.host() as host:
        present(host, site.request("ml-8", flavor=SMALL), Change())
    copy = backups.make(str(database))
    assert not site.do("running", "ml-8").get("failed")
    folder = site.folder / "guests-files/ml-8"
    site.do("stopped", "ml-8")
    (folder / "console.log").write_text("")
    before = {path.name: path.stat().st_ino for path in folder.iterdir()}
    put_back(copy, database)
    words = f"guest {folder} has run, and the database of {THIS_NODE}, which may be older"
    assert words in found_by_reconcile(site)["instances"][0]["found"][0]["found"]
    for _again in range(2):
        assert words in site.do(verb, "ml-8", timeout=20)["msg"]
        assert {path.name: path.stat().st_ino for path in folder.iterdir()} == before
