# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest with a card that an older database does not know, and whose domain libvirt has no more (/etc/libvirt was put
back from the same day, or somebody undefined it). Its record is there, or its folder, whose domain.xml names the card.
Lost: its tenant's card: reconcile freed it, and the next guest got it.
"""

from __future__ import annotations

import os
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import (
    SMALL,
    found_by_reconcile,
    put_back,
)


@pytest.fixture(params=["record", "no record"])
def forgotten(site, request):
    database = site.folder / "var/lib/hetero/host.db"
    site.provision("ml-7", flavor=SMALL)
    copy = backups.make(str(database))
    assert site.provision("ml-8", owner="jo")["new"] == ["ml-8"]
    site.do("stopped", "ml-8")
    put_back(copy, database)
    if request.param == "no record":
        os.unlink(database.parent / "host.claims/ml-8.json")
    return site


def undefine(site):
    subprocess.run([site.virt.root / "programs/virsh", "undefine", "ml-8"], check=True)
    assert "0x86" in (site.folder / "guests-files/ml-8/domain.xml").read_text()


def test_reconcile_does_not_free_it(forgotten):
    """It has written it down itself before, as the guest's whose record is there."""
    found_by_reconcile(forgotten)
    assert forgotten.table() == {CARD: "domain:ml-8"}
    undefine(forgotten)
    said = found_by_reconcile(forgotten)["domains"]
    assert forgotten.table() == {CARD: "domain:ml-8"}, said


def test_it_is_given_to_nobody(forgotten):
    undefine(forgotten)
    found_by_reconcile(forgotten)
    with pytest.raises(NoneFree):
        forgotten.provision("ml-9", owner="eve")


def test_it_is_given_to_nobody_before_anybody_looks(forgotten):
    undefine(forgotten)
    with pytest.raises(NoneFree, match="allocated to ml-8 since"):
        forgotten.provision("ml-9", owner="eve")


def test_it_is_free_once_nothing_tells_of_the_guest(forgotten):
    """Record and folder keep it one by one. If this fails, nobody gets the card any more."""
    found_by_reconcile(forgotten)
    undefine(forgotten)
    folder = forgotten.folder / "guests-files/ml-8"
    folder.rename(forgotten.folder / "not-mounted")
    record = forgotten.folder / "var/lib/hetero/host.claims/ml-8.json"
    if record.exists():
        (said,) = found_by_reconcile(forgotten)["domains"]
        assert "that neither the database nor libvirt has (by the record of its claim jo's" in said["found"]
        assert said["done"] is None
        record.unlink()
    (said,) = found_by_reconcile(forgotten)["domains"]
    assert said["done"] == "freed"
    assert forgotten.provision("ml-9", owner="eve")["new"] == ["ml-9"]
