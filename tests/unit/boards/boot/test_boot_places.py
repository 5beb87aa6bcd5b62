# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The places of boards that boot. If these fail, a storm of boots serves none in time, or a killed play keeps its
places for good.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import boot_places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_places import BootPlaces

#: Another play: takes a place for board 1 (or a ticket), says which, and waits.
OTHER = """
import sys
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_places import BootPlaces
with BootPlaces(sys.argv[1], int(sys.argv[2])) as places:
    print(places.take(1), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path):
    """A function that begins another process, which wants a place; ("True" or "False", the process)."""
    processes = []

    def begin(limit=1):
        argv = [sys.executable, "-c", OTHER, str(tmp_path), str(limit)]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        return process.stdout.readline().strip(), process

    yield begin
    for process in processes:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()


def test_no_more_than_the_limit(tmp_path):
    with BootPlaces(str(tmp_path), 2) as places:
        assert [places.take(board) for board in (1, 2, 3)] == [True, True, False]
        assert places.take(1), "it has one"
        assert list(places.held) == [1, 2]
        assert places.leave(1)
        assert not places.leave(1)
        assert places.take(3)


def test_without_a_limit_nothing_is_counted(tmp_path):
    with BootPlaces(str(tmp_path), None) as places:
        assert all(places.take(board) for board in range(100))
    assert list(tmp_path.iterdir()) == []


def test_all_plays_of_a_node_share_them(tmp_path, other):
    """Lost: the limit, where each of many plays boots one board."""
    assert other()[0] == "True"
    with BootPlaces(str(tmp_path), 1) as places:
        assert not places.take(2)


def test_what_a_killed_play_had_is_free(tmp_path, other):
    """Lost: a place for good with each play that is killed, and in the end all boards."""
    _said, process = other()
    with BootPlaces(str(tmp_path), 1) as places:
        assert not places.take(2)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        assert places.take(2)


def test_who_waits_for_longest_is_next(tmp_path, other):
    """Lost: a request for one board, behind one for a hundred that takes each place as soon as it is free."""
    with BootPlaces(str(tmp_path), 1) as places:
        assert places.take(1)
        assert other()[0] == "False"  # it has a ticket
        places.leave(1)
        assert not places.take(2), "the other one is next"


def test_the_ticket_of_a_killed_play_holds_nobody(tmp_path, other):
    """Lost: all boards of a node, to a play that ended while it waited."""
    with BootPlaces(str(tmp_path), 1) as places:
        assert places.take(1)
        _said, process = other()
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        places.leave(1)
        assert places.take(2)
    assert [name for name in os.listdir(tmp_path / "boots") if name.startswith("ticket")] == []


def test_a_ticket_that_somebody_removed_is_taken_anew(tmp_path, other):
    """Lost: a play's turn, if another looked at its ticket in the moment before it was locked."""
    other()
    with BootPlaces(str(tmp_path), 1) as places:
        for _again in range(2):
            assert not places.take(2)
            [ticket] = (tmp_path / "boots").glob("ticket-*")
            ticket.unlink()
        assert not places.take(2)
        assert len(list((tmp_path / "boots").glob("ticket-*"))) == 1


def test_a_limit_that_was_lowered_counts_what_boots_already(tmp_path):
    """Lost: the new limit, until all boards that boot are done: it is lowered because they are too many."""
    with BootPlaces(str(tmp_path), 4) as before, BootPlaces(str(tmp_path), 2) as places:
        assert [before.take(board) for board in range(4)] == [True] * 4
        before.leave(0)
        assert not places.take(4)
        before.leave(2)
        assert not places.take(4), "as many as are allowed boot by now"
        before.leave(3)
        assert places.take(4)
        assert not places.take(5)


def test_one_that_nobody_follows_has_its_place_for_a_while(tmp_path, other, monkeypatch):
    """Lost: the limit, where reconcile switches on a rack after a power cut and waits for none of it."""
    now = time.monotonic_ns()
    with BootPlaces(str(tmp_path), 1) as places:
        assert places.take(1)
        assert places.leave(1, 600)
        assert not places.take(2)
    assert other()[0] == "False"
    monkeypatch.setattr(time, "monotonic_ns", lambda: now + 700 * 10**9)
    with BootPlaces(str(tmp_path), 2) as places:
        assert [places.take(board) for board in (2, 3)] == [False] * 2, "the other play waits for longer"


def test_a_place_is_no_longer_kept_than_it_was_said(tmp_path, monkeypatch):
    """Lost: a place for good with each board that reconcile switched on."""
    now = time.monotonic_ns()
    with BootPlaces(str(tmp_path), 1) as places:
        assert places.take(1)
        assert places.leave(1, 600)
        monkeypatch.setattr(time, "monotonic_ns", lambda: now + 700 * 10**9)
        assert places.take(2)
        assert places.leave(2)
        assert places.take(3), "what was written for the first board counts for it only"


def test_one_that_boots_in_any_case_counts(tmp_path, other):
    """Lost: the limit, to a rack that is rebooted: those that were on wait for nobody, and others do for them."""
    with BootPlaces(str(tmp_path), 1) as places:
        places.take_free(1)
        assert list(places.held) == [1]
        places.take_free(2)
        assert list(places.held) == [1], "it boots without one"
        assert other()[0] == "False"


@pytest.mark.parametrize(("speed", "boards"), [("1000", 12), ("10000", 125), ("100", 4), ("-1", None), ("", None)])
def test_the_speed_of_a_link_says_how_many(tmp_path, monkeypatch, speed, boards):
    """Lost: the limit on a node where nobody named one; or boards of a slow link, one after another."""
    monkeypatch.setattr(boot_places, "SPEED", str(tmp_path / "{interface}-speed"))
    (tmp_path / "eth1-speed").write_text(speed)
    assert boot_places.usual("eth1") == boards
    assert boot_places.usual("eth2") is None


def test_taking_one_is_no_matter_of_how_many_there_are(tmp_path):
    """Lost: minutes of a request for a thousand boards."""
    began = time.process_time()
    with BootPlaces(str(tmp_path), 300) as places:
        for board in range(300):
            assert places.take(board)
    assert time.process_time() - began < 10


def test_a_clock_that_is_set_back_lets_nobody_pass(tmp_path, monkeypatch):
    """Lost: a request for one board, to all boards of a rack that was asked for later."""
    first, one, many = (BootPlaces(str(tmp_path), 1) for _turn in range(3))
    with first, one, many:
        assert first.take(1)
        assert not one.take(2)
        monkeypatch.setattr(time, "time_ns", lambda: 0)
        monkeypatch.setattr(time, "time", lambda: 0.0)
        assert not many.take(3)
        first.leave(1)
        assert not many.take(3)
        assert one.take(2)


def test_a_run_folder_without_room_limits_nobody(tmp_path, monkeypatch):
    """Lost: all boards of a call, also those that boot already, by a disk that is full."""
    opened = os.open

    def full(path, *given, **more):
        if str(path).endswith("place-1"):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return opened(path, *given, **more)

    monkeypatch.setattr(os, "open", full)
    with BootPlaces(str(tmp_path), 2) as places:
        assert [places.take(board) for board in (1, 2, 3)] == [True, True, True]
