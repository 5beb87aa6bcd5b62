# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An older database where all is lost that the proxy keeps of a root on a board's own disk, but the mark that the disk
was used. If these fail, a tenant's disk is formatted or wiped by a guess; or its board is nobody's to free, for ever.

Tests roots/disk_files.py.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.image import board_images, rebuilds
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.each_board import Instances
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.disk_files import DiskFiles, Made

FRESH = rebuilds.RebuildRequest(fresh=True)
CLAIMED = "UPDATE claims SET image_hash = NULL, host_key = NULL"
OFF = "UPDATE boards SET state = 'power off', power = NULL"
NO_EVENTS = "DELETE FROM events WHERE phase != 'records' AND id > (SELECT min(id) FROM events WHERE phase = 'claim')"


def older(disks, *changes):
    """The database as an older copy of it has it; the claim's record and folder are lost, the board is off."""
    with closing(sqlite3.connect(disks.params["state_db"])) as db:
        for change in changes:
            db.execute(change)
        db.commit()
    (disks.folder / "state" / "claims" / "board0.json").unlink()
    shutil.rmtree(disks.folder / "state" / "disks" / "fs_0")
    disks.cut(0)


def data(disks):
    return disks.root() / "data"


def found_by(disks, **words):
    with disks.proxy() as proxy:
        result = reconcile(proxy, [0], Change(False), 20, **words)
        return [(entry["found"], entry["done"]) for entry in result["boards"][0]["found"]]


def never_ran(disks):
    """As a play does it that takes back what it claimed."""
    with disks.proxy() as proxy:
        return board_images.absent(proxy, [0], Change(), Deadline(60), never_ran=True)


@pytest.fixture
def used(disks):
    """vm0 runs from its disk on board 0, and wrote something there."""
    disks.ask(0)
    disks.run("start", 0)
    data(disks).write_text("kept")
    return disks


@pytest.mark.parametrize("changes", [(CLAIMED, OFF, NO_EVENTS), (OFF, NO_EVENTS)], ids=["claimed", "made"])
def test_a_disk_that_somebody_used_is_not_formatted(used, changes):
    """Lost: a tenant's disk, where a backup of the claim's first second was put back and both its files are gone."""
    older(used, *changes)
    for _turn in ("as it is", "after reconcile"):
        assert used.ready(0).get("failed")
        assert used.run("start", 0)["failed"]
        used.run("stop", 0, keep=True)
        assert never_ran(used).get("failed"), "who takes back what never ran has it wiped next"
        found = found_by(used)
        assert found, "nobody is told"
    assert data(used).read_text() == "kept"


def test_who_is_told_of_a_used_disk_can_go_on(used):
    """Lost: the board, for ever: what is printed is refused."""
    older(used, CLAIMED, OFF, NO_EVENTS)
    why = "disk /dev/sda was used by vm0, and neither the database nor the record of its claim know of a root there"
    assert used.ready(0)["msg"].startswith(f"board0: {why}: nothing is touched: put a newer backup back; or rebuild")
    ((text, done),) = found_by(used)
    assert (text.startswith(why), done) == (True, None)
    with used.proxy() as proxy:
        change, deadline = Change(), Deadline(20)
        assert not rebuilds.rebuild(proxy, Instances("vm0"), FRESH, change, deadline).get("failed")
    assert not used.run("stop", 0)["failed"]
    assert not used.ready(0).get("failed")
    assert not used.run("start", 0)["failed"]
    assert not data(used).exists()


def test_who_is_told_of_a_used_disk_can_end_it(used):
    """Lost: the board, for ever; or the next tenant reads the disk."""
    older(used, CLAIMED, OFF, NO_EVENTS)
    assert not used.run("stop", 0)["failed"]
    assert not used.remove(0).get("failed")
    assert "not proven to be wiped" in used.release(0)["msg"]
    assert not used.wipe(0)["failed"]
    assert not used.release(0).get("failed")
    assert b"kept" not in used.disk(0).read_bytes()


def test_a_claim_that_never_came_up_gets_its_root_anew(disks):
    """Lost: a request whose board stalled: its disk was switched on for it, which is no sign of anybody's work."""
    disks.ask(0)
    disks.play(0, stall="nfs")
    disks.run("start", 0, timeout=1, retries=0)
    shutil.rmtree(disks.folder / "state" / "disks" / "fs_0")
    with disks.proxy() as proxy:
        assert not proxy.store.has_run(proxy.store.claim_of("vm0"))
    assert not disks.ready(0).get("failed")


def mark(disks, name):
    (path,) = (disks.folder / "state" / "wipes").glob("*.json")
    path.write_text(json.dumps(dict(json.loads(path.read_text()), **{"used by": name})))


@pytest.mark.parametrize("changes", [(OFF,), (CLAIMED, OFF, NO_EVENTS)], ids=["ran", "claimed"])
def test_a_disk_that_another_used_since_is_not_touched_for_who_had_the_board_before(used, changes):
    """Lost: eve's disk: by the older database vm0 has her board still, and all else that was known of her is gone."""
    older(used, *changes)
    mark(used, "eve")
    for way in (used.ready, lambda board: used.run("start", board), lambda board: used.run("stop", board), used.remove):
        assert "disk /dev/sda was used by eve since, not by vm0" in way(0)["msg"]
    assert used.wipe(0)["failed"]
    with used.proxy() as proxy:
        result = rebuilds.rebuild(proxy, Instances("vm0"), FRESH, Change(), Deadline(20))
    assert "disk /dev/sda was used by eve since" in result["msg"]
    assert data(used).read_text() == "kept"


def test_what_is_known_of_anothers_disk_is_not_made_anew(used):
    """Lost: the private key and the word of eve's root on her disk, and then the disk, for an older claim."""
    older(used, CLAIMED, OFF, NO_EVENTS)
    files = DiskFiles(str(used.folder / "state" / "disks"), 0)
    files.create(b"own", Made("eve 1.5", "0" * 64, "0" * 64, "key", unpacked=2.0))
    result = used.ready(0)
    assert "its root on its disk is that of eve, not of vm0" in result.get("msg", "")
    assert files.made().claim == "eve 1.5"
