# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance that is ended while it moves to another board. If these fail, its end fails once, as its new board runs,
or waits for a boot that nobody wants any more; or the instance is back when it was said to be gone.

Tests boards/verbs/release.py, boards/work/cut_off_moves.py, boards/boot/ended_boots.py, instances/kinds/board_moves.py.
"""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import ended_boots
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import migration, release
from ansible_collections.hetero.compute.tests.unit.verbs.test_ended_while_booting import (
    ended,
    meanwhile,
    on,
    until,
    verb,
    waits,
)
from ansible_collections.hetero.compute.tests.unit.verbs.test_instance_on_boards import fake


@contextmanager
def moving(site, wait):
    """Jackie moves from board 0 to board 1, in a process of its own, which has come so far that `wait` returns true."""
    with meanwhile(lambda: verb(site, "migrated")) as result:
        until(wait, "it does not move")
        yield result


def nothing_is_left(site, result):
    """Both boards are off and free, and the move has failed with the reason."""
    moved = result()
    assert moved["failed"]
    assert "jackie is being ended, so its boot is not waited for" in moved["msg"], moved["msg"]
    assert "jackie has board" not in moved["msg"], "whoever reads that looks for an instance that is gone"
    assert site.what_is_there() == site.clean()
    assert [site.record(board).state for board in range(2)] == ["power off", "power off"]


def test_on_the_way_to_a_board_that_does_not_come_up(jackie):
    """Lost: minutes; or the instance, for good, on the board from which it was moved."""
    fake(jackie, 1, stall="nfs")
    with moving(jackie, lambda: on(jackie, 1)) as result:
        ended(jackie)
        nothing_is_left(jackie, result)


@pytest.fixture
def waited_for(jackie, monkeypatch):
    """Jackie, whose claim gets its new board only once her end waits for the former one."""
    real = migration.Migration._give

    def give(*given):
        until(lambda: waits(jackie, "held by"), "nobody waits")
        real(*given)

    monkeypatch.setattr(migration.Migration, "_give", give)
    return jackie


def is_moving(site):
    return [event for event in site.events(1, "state") if "it is kept for jackie" in event.text]


def test_asked_for_before_its_claim_has_the_new_board(waited_for):
    """Lost: an end that fails, as the new board "is not clean: running"."""
    fake(waited_for, 1, stall="nfs")
    with moving(waited_for, lambda: is_moving(waited_for)) as result:
        ended(waited_for)
        nothing_is_left(waited_for, result)


def test_where_it_came_up_on_its_new_board_meanwhile_it_ends_there(waited_for, monkeypatch):
    """Lost: the same, where the boot was over before anybody looked whether it is still wanted."""
    monkeypatch.setattr(ended_boots, "came_by", lambda *_given: None)
    with moving(waited_for, lambda: is_moving(waited_for)) as result:
        done = ended(waited_for)
        assert not result().get("failed")
    assert any(release.MOVED.format(board="board1") in line["text"] for line in done["lines"]), done["lines"]
    assert [one["instance"] for one in done["instances"]] == ["jackie"]
    assert waited_for.what_is_there() == waited_for.clean()


def test_a_stop_beside_a_move_does_not_end_its_boot(waited_for):
    """Lost: the move, to a stop that then says that the instance has left its board."""
    with moving(waited_for, lambda: is_moving(waited_for)) as result:
        stopped = verb(waited_for, "stopped")
        assert not result().get("failed")
    assert "board0: was left by jackie meanwhile, which ended, or moved to another board" in stopped["msg"], stopped
    assert waited_for.what_is_there() == waited_for.running(None, "jackie")
