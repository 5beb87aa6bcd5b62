# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is noted of a board's disks, case by case. Whole wipes are in disk/test_wipes.py."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import disk_records
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import Wire

BOARD = SimpleNamespace(id=0, name="board0", mac="00:1a")
WIPED = {"time": 0, "disks": [{"device": "/dev/sda", "proven": True}]}


@pytest.fixture
def node(tmp_path):
    """A proxy whose board's disks are `wired`."""
    found = SimpleNamespace(wired=["/dev/sda"], accepted=[])
    found.folder = lambda *names: os.path.join(tmp_path, *names)
    found.disks = lambda board: found.wired
    found.wiring = lambda board: Wire(accept_unwiped=found.accepted)
    found.file = tmp_path / "wipes" / "00-1a.json"
    return found


def test_a_used_disk_is_nobodys_until_it_is_wiped(node):
    """Lost: what a tenant wrote, to the next one; or a new disk, wiped for hours."""
    assert (disk_records.used(node, BOARD), disk_records.proof(node, BOARD)) == ([], None)
    assert len(disk_records.unwiped(node, BOARD)) == 1
    disk_records.withdraw(node, BOARD, "eve")
    assert json.loads(node.file.read_text()) == {"used by": "eve", "disks": ["/dev/sda"]}
    assert disk_records.used(node, BOARD) == ["disk /dev/sda was used by eve, and is not proven to be wiped since"]
    assert disk_records.proof(node, BOARD) is None
    disk_records.keep(node, BOARD, WIPED)
    assert disk_records.proof(node, BOARD) == WIPED
    assert (disk_records.used(node, BOARD), disk_records.unwiped(node, BOARD)) == ([], [])
    node.wired = []
    assert disk_records.unwiped(node, BOARD) == []
    node.wired = ["/dev/sda", "/dev/sdb"]
    assert disk_records.used(node, BOARD) == disk_records.unwiped(node, BOARD)
    assert disk_records.unwiped(node, BOARD)[0].startswith("disk /dev/sda and /dev/sdb not proven to be wiped since")


def test_a_disk_that_is_not_named_any_more_is_remembered(node):
    """Lost: a tenant's disk, by a line that fell out of the inventory, over as many tenants as come."""
    disk_records.withdraw(node, BOARD, "eve")
    node.wired = ["/dev/sdb"]
    before = node.file.stat()
    disk_records.withdraw(node, BOARD, "eve")
    assert json.loads(node.file.read_text()) == {"used by": "eve", "disks": ["/dev/sda", "/dev/sdb"]}
    node.wired = []
    (text, _other) = disk_records.used(node, BOARD)
    assert text.startswith("disk /dev/sda was used by eve, and is not named any more")
    assert text.endswith("accept_unwiped: [sda] there")
    assert disk_records.unwiped(node, BOARD) == disk_records.unnamed(node, BOARD) == disk_records.used(node, BOARD)
    node.accepted = ["sda", "sdb"]
    assert disk_records.used(node, BOARD) == []
    after = node.file.stat()
    disk_records.withdraw(node, BOARD, "eve")
    assert node.file.stat().st_ino == after.st_ino != before.st_ino
    # what was wiped is nobody's any more
    node.wired = ["/dev/sda"]
    disk_records.keep(node, BOARD, WIPED)
    node.wired = ["/dev/sdc"]
    disk_records.withdraw(node, BOARD, "bob")
    assert json.loads(node.file.read_text()) == {"used by": "bob", "disks": ["/dev/sdc"]}


def test_a_wipe_that_proves_nothing_is_kept_beside(node):
    """Lost: that there was one; or a board is free that nobody looked at."""
    disk_records.withdraw(node, BOARD, "eve")
    half = {"time": 86399, "disks": [{"device": "/dev/sda", "proven": True}, {"device": "/dev/sdb", "proven": False}]}
    disk_records.keep(node, BOARD, half)
    assert disk_records.proof(node, BOARD) is None
    kept = node.file.parent / "history" / "board0-19700101T235959Z.json"
    assert json.loads(kept.read_text()) == half
    assert kept.read_text().splitlines()[1] == ' "time": 86399,'
    for path, mode in ((kept, 0o600), (node.file, 0o600), (kept.parent, 0o700), (node.file.parent, 0o700)):
        assert path.stat().st_mode & 0o777 == mode
    node.file.write_text(json.dumps({"disks": half["disks"]}))
    assert disk_records.proof(node, BOARD) == {"disks": half["disks"]}
    node.wired = ["/dev/sda", "/dev/sdb"]
    assert disk_records.proof(node, BOARD) is None
