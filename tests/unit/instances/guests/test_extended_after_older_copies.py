# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lease extended on an older copy of the database, where the record alone knows that the guest ran. If these fail,
the word that keeps a tenant's guest loses its disk, or its address, to the next verb.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host_claims import present
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import SMALL, put_back


@pytest.fixture
def older(site):
    """ml-8 ran, and is stopped; the database is the copy of the moment of its claim."""
    database = site.folder / "var/lib/hetero/host.db"
    with site.host() as host:
        present(host, site.request("ml-8", flavor=SMALL, lease_hours=1.0), Change())
    copy = backups.make(str(database))
    assert not site.do("running", "ml-8").get("failed")
    site.do("stopped", "ml-8")
    put_back(copy, database)
    return site


def extended(site):
    """Its lease by its record before and after it was extended, and the state that the record knows."""
    path = site.folder / "var/lib/hetero/host.claims/ml-8.json"
    before = json.loads(path.read_text())["expires"]
    assert not site.do("extended", "ml-8", lease_hours=24.0).get("failed")
    record = json.loads(path.read_text())
    return record["expires"] > before, record["state"]


def test_the_record_keeps_what_it_knows(older):
    assert extended(older) == (True, "stopped")


@pytest.mark.parametrize("verb", ["running", "absent"])
def test_one_that_is_not_mounted_keeps_its_address_and_its_place(older, verb):
    assert extended(older)
    folder = older.folder / "guests-files/ml-8"
    folder.rename(older.folder / "away")
    assert "ml-8 has run: nothing" in older.do(verb, "ml-8")["msg"]
    assert not folder.exists()


@pytest.mark.parametrize("verb", ["running", "absent"])
def test_one_whose_console_log_was_emptied_keeps_its_disk(older, verb):
    folder = older.folder / "guests-files/ml-8"
    (folder / "console.log").write_text("")
    before = (folder / "disk.raw").stat().st_ino
    assert extended(older)
    assert older.do(verb, "ml-8", timeout=20)["failed"]
    assert (folder / "disk.raw").stat().st_ino == before
