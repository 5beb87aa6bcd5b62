# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board that falls silent when another's outlet is switched off, whatever the database calls its state. If these
fail, a tenant at work loses her power to swapped plugs for good, and the other's stop is told as done.
"""

from __future__ import annotations

import json
import shutil

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import is_refused, reconcile, record, stop
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import boots, hasty, lives, plugs, swapped

__all__ = ["hasty", "swapped"]


def unclaimed(store):
    """The database was put back from a copy that is older than carol's claim; her record is there."""
    store._db.write("DELETE FROM claims WHERE board = 1")
    store._db.write("UPDATE boards SET state = 'power off' WHERE board = 1")


STATES = {
    "running": lambda store: None,
    "left on in error": lambda store: store.move(1, "error", "it may be at work, so its outlet stays on"),
    "booting unwatched": lambda store: store.move(1, "booting"),
    "of an older database": unclaimed,
}


def hangs(site, board):
    """Its kernel answers no more, so its silence proves nothing."""
    wires = json.loads((site.folder / "proxy.json").read_text())["boards"]
    site.wire(board, fake=dict(wires[str(board)]["fake"], stall="running"))


@pytest.mark.parametrize("harm", STATES.values(), ids=STATES)
@pytest.mark.parametrize("state", ["stopped", "absent"])
def test_what_answered_until_an_outlet_was_switched_off_has_its_power_back(swapped, harm, state):
    """Lost: Carol's power, by the stop or the end of Jackie's instance, whose board hangs."""
    hangs(swapped, 0)
    with swapped.proxy() as proxy:
        harm(proxy.store)
    result = swapped.module("instance", kind="board", instance="jackie", timeout=2, state=state)
    assert lives(swapped, 1), (result.get("failed"), swapped.outlets(), [line["text"] for line in result["lines"]])
    assert result.get("failed")
    for word in ("carol on board1 answered until", "reconcile -e adopt=carol"):
        assert word in result["msg"], result["msg"]


def test_so_has_a_board_that_nobody_has_and_the_way_out_is_that_of_the_other(swapped):
    """Lost: the power of who is at work on a board in maintenance; or Jackie's outlet, which no word frees again."""
    hangs(swapped, 0)
    with swapped.proxy() as proxy:
        proxy.store._db.write("DELETE FROM claims WHERE board = 1")
        proxy.store._db.write("UPDATE boards SET state = 'maintenance' WHERE board = 1")
    record(swapped, 1).unlink()
    shutil.rmtree(swapped.state / "board-roots" / "fs_1", ignore_errors=True)
    before = boots(swapped)[1]
    result = stop(swapped)
    for word in ("board1 answered until pdu-a outlet 1 was switched off", "reconcile -e adopt=jackie"):
        assert word in result["msg"], result["msg"]
    is_refused(stop(swapped), "feeds board1 since")
    assert (lives(swapped, 1), boots(swapped)[1]) == (True, before + 1)
    plugs(swapped, False)
    reconcile(swapped, adopt=["jackie"])
    result = stop(swapped)
    assert (result.get("failed"), swapped.outlets()) == (False, {"1": "off", "2": "on"}), result.get("msg")
