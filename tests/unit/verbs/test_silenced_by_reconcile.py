# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""reconcile frees a board that nobody has and that hangs, whose plug is swapped with a tenant's. If these fail, it
cuts a tenant's power for good, and tells that as done: it has the locks of all boards, and whose lock is held was taken
for one that another verb works on.
"""

from __future__ import annotations

import json
import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import unmount
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import record
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty, lives, swapped

__all__ = ["hasty", "swapped"]


@pytest.fixture
def nobodys(swapped):
    """Nobody has board 0, which hangs and whose outlet is on; plug 1 feeds Carol's board, on board 1."""
    hangs(swapped, 0)
    with swapped.proxy() as proxy:
        proxy.store._db.write("DELETE FROM claims WHERE board = 0")
        proxy.store._db.write("UPDATE boards SET state = 'shutting down' WHERE board = 0")
    record(swapped, 0).unlink()
    for point in swapped.mounts():
        if "/fs_0/" in point:
            assert unmount(point) == 0
    shutil.rmtree(swapped.state / "board-roots" / "fs_0")
    shutil.rmtree(swapped.tftp / "10.0.2.1")
    exports = json.loads((swapped.folder / "ganesha.json").read_text())
    exports.pop("1")
    (swapped.folder / "ganesha.json").write_text(json.dumps(exports))
    return swapped


def test_a_tenants_board_that_falls_silent_has_its_power_back(nobodys):
    """Lost: carol's power, by the playbook that is to mend."""
    assert lives(nobodys, 1)
    result = nobodys.module("board_reconcile", timeout=10)
    found = [(one["found"], one["done"]) for one in result["boards"][0]["found"]]
    assert lives(nobodys, 1), (result.get("failed"), found, nobodys.outlets(), nobodys.record(1).state)
    assert "carol on board1 answered until" in str(found)


def test_so_has_one_by_a_stop_of_that_board(nobodys):
    """Lost: carol's power, by a stop of the same board."""
    nobodys.module("tilera_boot", boards=[0], state="stopped", timeout=10)
    assert lives(nobodys, 1)
