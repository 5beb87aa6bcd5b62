# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The locks of the boards that a verb works on: in which order they are taken, and until when they are held."""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import board_locks, board_work
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_locks import locked
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError


def test_locks_are_taken_from_the_lowest_on_and_held(work, monkeypatch):
    """Lost: two calls that wait for each other for ever; or two that switch one board at a time."""
    taken, real = [], board_locks.lock

    def lock(folder, name, verb, actor, deadline, waiting):
        taken.append((name, verb, actor))
        waiting("for somebody")
        return real(folder, name, verb, actor, deadline, waiting)

    monkeypatch.setattr(board_locks, "lock", lock)
    works = [work(number, read=False) for number in (2, 1, 0)]
    with locked(works, "start", Deadline(10)):
        assert taken == [(f"board{number}", "start", "test") for number in (0, 1, 2)]
        assert [one.pdu for one in works] == ["pdu-a"] * 3
        assert [one.lines[0]["text"] for one in works] == ["for somebody"] * 3
        assert works[1].lines[0]["instance"] == "jackie", "whose board it is, for who waits"
        (late,) = [work(1, read=False)]
        with locked([late, other := work(3, read=False)], "stop", Deadline(0.05)):
            assert (late.failed, late.blame, late.pdu) == (True, None, "")
            assert (other.failed, other.pdu) == (False, "pdu-a")
    again = work(1, read=False)
    with locked([again], "stop", Deadline(10)):
        assert not again.failed


def test_the_lock_of_a_board_that_is_refused_is_released_once_all_are_taken(work, monkeypatch):
    """Lost: a board's power, by a verb that waits for its lock while nobody waits for the verb any more: only until the
    first lock is released that counts.
    """
    order, real = [], board_locks.lock

    @contextmanager
    def lock(folder, name, *words):
        order.append(f"{name} taken")
        with real(folder, name, *words):
            yield
        order.append(f"{name} released")

    def refuse_anothers(proxy, board, claim):
        if board.id == 0:
            raise HeteroError("has the root of eve", "board0")

    monkeypatch.setattr(board_locks, "lock", lock)
    monkeypatch.setattr(board_work, "refuse_anothers", refuse_anothers)
    works = [work(number, read=False) for number in (0, 1)]
    with locked(works, "stop", Deadline(10)):
        assert order == ["board0 taken", "board1 taken", "board0 released"]
        assert [one.failed for one in works] == [True, False]


def test_boards_are_read_once_the_locks_of_all_are_held(work, monkeypatch):
    """Lost: what another verb changed of a board for whose lock was waited, behind one look at all of them."""
    order, real, read = [], board_locks.lock, board_work.BoardWork.read

    def lock(folder, name, *words):
        order.append(f"{name} taken")
        return real(folder, name, *words)

    monkeypatch.setattr(board_locks, "lock", lock)
    monkeypatch.setattr(board_work.BoardWork, "read", lambda one: order.append(f"{one.board.name} read") or read(one))
    with locked([work(number, read=False) for number in (0, 1)], "stop", Deadline(10)):
        assert order == ["board0 taken", "board1 taken", "board0 read", "board1 read"]


def test_a_dry_run_takes_no_locks(work, monkeypatch):
    """Lost: who only asks waits for who works; and a board that cannot be read fails by itself."""
    monkeypatch.setattr(board_locks, "lock", lambda *given: pytest.fail("locked"))
    one, bad = work(1, check=True, read=False), work(2, check=True, read=False)
    error = HeteroError("has the root of eve", "board2", "look", root="eve")

    def refuse_anothers(proxy, board, claim):
        if board.id == 2:
            raise error

    monkeypatch.setattr(board_work, "refuse_anothers", refuse_anothers)
    with locked([bad, one], "start", Deadline(1)):
        assert (one.failed, one.pdu) == (False, "pdu-a")
        assert (bad.failed, bad.blame, bad.error, bad.evidence) == (True, None, str(error), {"root": "eve"})
    assert not os.path.exists(one.proxy.config.run_folder)
