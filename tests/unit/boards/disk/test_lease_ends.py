# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases that end while disks are wiped: if these fail, one slow disk holds all ends of a proxy for hours."""

from __future__ import annotations

import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import reap
from ansible_collections.hetero.compute.tests.unit.boards.disk.conftest import lost

#: Seconds until what is waited for counts as never to come.
NEVER = 60.0


@pytest.fixture
def leased(disks, monkeypatch):
    """vm0 to vm2 run, each on its board; the lease of vm0, whose board has a disk, is over."""
    monkeypatch.setattr(reap, "EVERY", 0.2, raising=False)
    disks.claim(0, 1, 2)
    assert not disks.run("start", 0, 1, 2)["failed"]
    expire(disks, 0)
    return disks


def expire(site, *boards):
    with site.proxy() as proxy:
        for board in boards:
            proxy.store.put(f"vm{board}", expires=time.time() - 120)


def during_its_wipe(site, board, act):
    """Have `act()` called once, in the middle of a board's wipe."""
    left = [1]

    def fail(text):
        if "blkdiscard" in text and left:
            left.pop()
            act()

    site.shells[board].fail = fail


def until_freed(site, board):
    deadline = Deadline(NEVER)
    while site.record(board).claim is not None:
        assert not deadline.passed, f"board{board} waits for a wipe that is not its own"
        deadline.nap()


@pytest.mark.parametrize("board", [1, 2])
def test_a_lease_that_ends_during_a_wipe_waits_for_no_other_board(leased, board):
    """Lost: hours of boards that others wait for, by one large disk. vm1's board has disks, vm2's none."""

    def meanwhile():
        expire(leased, board)
        until_freed(leased, board)

    during_its_wipe(leased, 0, meanwhile)
    assert reap.turn(leased.params)
    assert [leased.record(number).claim for number in (0, board)] == [None, None]
    assert leased.power(0) == leased.power(board) == "off"


@pytest.mark.parametrize("board", [1, 2])
def test_leases_that_end_together_wait_for_no_other_boards_disk(leased, board):
    expire(leased, board)
    during_its_wipe(leased, 0, lambda: until_freed(leased, board))
    assert reap.turn(leased.params)
    assert [leased.record(number).claim for number in (0, board)] == [None, None]


def test_no_more_disks_are_wiped_at_a_time_than_the_node_bears(leased, monkeypatch):
    """Lost: the memory of a proxy on which a thousand leases end at once."""
    monkeypatch.setattr(reap, "MOST", 1)
    expire(leased, 1)
    both = leased.folder / "wipes"

    def alone(number):
        with both.open("a") as file:
            file.write(f"{number} begins\n")

    during_its_wipe(leased, 0, lambda: alone(0))
    during_its_wipe(leased, 1, lambda: alone(1))
    real = reap.release

    def noted(proxy, works, *rest, **more):
        done = real(proxy, works, *rest, **more)
        freed = [work.board.id for work in works if proxy.store.record(work.board.id).claim is None]
        with both.open("a") as file:
            file.writelines(f"{board} ends\n" for board in freed)
        return done

    monkeypatch.setattr(reap, "release", noted)
    assert reap.turn(leased.params)
    words = [line.split()[0] for line in both.read_text().splitlines()]
    assert words in (["0", "0", "1", "1"], ["1", "1", "0", "0"])


def test_a_wipe_that_fails_is_left_to_the_next_turn(leased):
    """Lost: a turn that never ends, trying one disk without a pause; or a board freed with its data."""
    leased.shells[0].fail = lost("blkdiscard")
    assert not reap.turn(leased.params)
    assert leased.record(0).claim.instance == "vm0"
    leased.shells[0].fail = None
    assert reap.turn(leased.params)
    assert leased.record(0).claim is None


def test_what_ends_a_wipe_from_outside_is_said_and_tried_again(leased, capfd):
    """Lost: the end of a lease whose process was killed for its memory, and the word of it."""

    def killed():
        raise SystemExit(7)

    during_its_wipe(leased, 0, killed)
    assert not reap.turn(leased.params)
    assert "vm0 of jo: its lease is over, and it could not be ended" in capfd.readouterr().out
    leased.shells[0].fail = None
    assert reap.turn(leased.params)
    assert leased.record(0).claim is None
