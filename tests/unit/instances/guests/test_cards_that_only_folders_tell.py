# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest with a card that an older database does not know, and whose domain libvirt has no more (all of the host's own
disk was put back from the same day; the guests lie on another one). Only its folder, whose domain.xml names the card,
tells. Lost: its tenant's card: module libvirt_hostdev gives it to a domain by hand; it goes to the next guest where the
older database has an earlier claim of the same name; and requests for GPUs free what reconcile wrote down.

Tests devices/pci/made_guests.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci import info, made_guests
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.allocation import write_down
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import hostdev
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import gpu_reconciliation
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import (
    SMALL,
    found_by_reconcile,
    put_back,
)


def undefine(site):
    subprocess.run([site.virt.root / "programs/virsh", "undefine", "ml-8"], check=True)
    assert "0x86" in (site.folder / "guests-files/ml-8/domain.xml").read_text()


@pytest.fixture
def database(site):
    return site.folder / "var/lib/hetero/host.db"


@pytest.fixture(params=["record", "no record"])
def forgotten(site, database, request):
    """jo's ml-8 with a card, which is down, and whose claim and domain are in nobody's files."""
    site.provision("ml-7", flavor=SMALL)
    copy = backups.make(str(database))
    site.provision("ml-8", owner="jo")
    site.do("stopped", "ml-8")
    put_back(copy, database)
    if request.param == "no record":
        os.unlink(database.parent / "host.claims/ml-8.json")
    undefine(site)
    return site


def test_it_is_not_given_by_hand(forgotten):
    """But once its folder is gone, which is what keeps it."""
    hand = forgotten.virt.define("hand")
    with pytest.raises(Refused, match=r"is guest ml-8's, by .*ml-8/domain\.xml, and libvirt has no domain of that"):
        forgotten.virt.attach(hand, CARD)
    assert forgotten.table() == {}
    shutil.rmtree(forgotten.folder / "guests-files/ml-8")
    assert forgotten.virt.attach(hand, CARD)["changed"]


def test_it_is_shown_whose_it_is(forgotten):
    (shown,) = [one for one in info.information(forgotten.virt.paths)["devices"] if one["address"] == CARD]
    assert ["is guest ml-8's" in one["text"] for one in shown["holders"] if one["kind"] == "allocation"] == [True]


def test_an_older_line_of_the_table_hides_nobody(forgotten):
    """Lost: the same card, where the older table has it for a domain of that time, which is gone."""
    paths = forgotten.virt.paths
    with Store(paths.state_db) as store, store.transaction():
        write_down(store, "domain:gone", CARD, paths)
    (shown,) = [one for one in info.information(paths)["devices"] if one["address"] == CARD]
    said = [one["text"] for one in shown["holders"] if one["kind"] == "allocation"]
    assert ["is guest ml-8's" in text for text in said] == [True, False]
    assert said[1] == "is allocated to domain:gone"


def test_what_its_domain_has_no_more_is_free(site):
    """Lost: a card that somebody took from a guest on purpose, as the folder still names it."""
    site.provision("ml-8", owner="jo")
    site.do("stopped", "ml-8")
    with site.host() as host, host.store.transaction():
        for row in host.store.allocations():
            host.store.free(row)
    site.virt.domain("ml-8").detach(hostdev.xml(CARD), live=False)
    assert made_guests.only_by_folder(site.virt.paths) == {}
    assert site.virt.attach(site.virt.define("hand"), CARD)["changed"]


@pytest.mark.parametrize("looks", [True, False])
def test_an_earlier_claim_of_its_name_tells_nothing_of_it(site, database, looks):
    site.provision("ml-8", owner="jo", flavor=SMALL)
    copy = backups.make(str(database))
    earlier = (database.parent / "host.claims/ml-8.json").read_bytes()
    assert not site.do("absent", "ml-8").get("failed")
    site.provision("ml-8", owner="jo")
    site.do("stopped", "ml-8")
    undefine(site)
    put_back(copy, database)
    (database.parent / "host.claims/ml-8.json").write_bytes(earlier)
    if looks:
        (said,) = found_by_reconcile(site)["domains"]
        assert (said["domain"], said["address"], said["done"]) == ("ml-8", CARD, "written down")
    with pytest.raises(NoneFree, match="allocated to ml-8 since"):
        site.provision("ml-9", owner="eve")


def test_what_reconcile_wrote_down_is_not_freed_for_containers(forgotten):
    """A host of containers and guests: host_reconcile writes the card down, and module gpu_reconcile, as each request
    for a GPU does, frees what is allocated to nobody.
    """
    found_by_reconcile(forgotten)
    assert forgotten.table() == {CARD: "domain:ml-8"}
    with forgotten.host() as host:
        gpu_reconciliation.reconcile(host.site, True, Change(), Deadline(20))
    assert forgotten.table() == {CARD: "domain:ml-8"}
