# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is there on a board that has power. If these fail, the power of a board in use is cut because it was busy."""

from __future__ import annotations

import os
import threading
import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.ssh import WrongHostKey
from ansible_collections.hetero.compute.tests.unit.boards.power.test_silence import Clock

#: As it is outside of tests, which shorten it.
LONGEST = presence.LONGEST


class Played:
    """A driver whose board is there at the looks in `heard`, and proves its key at one from the `proves`-th on."""

    def __init__(self, proves=None, heard=range(10**9), other=False):
        self.proves, self.heard, self.other = proves, heard, other
        self.looks = 0

    def alive(self, board, limit):
        self.looks += 1
        return self.looks in self.heard

    def answers(self, board, system, deadline, cancelled, report):
        if self.other:
            raise WrongHostKey("another host key answers there", "10.0.2.1")
        return self.proves is not None and self.looks >= self.proves


@pytest.fixture(autouse=True)
def idle(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.setattr(presence, "NAP", 0.01)
    monkeypatch.setattr(presence, "QUIET", 0.2)
    monkeypatch.setattr(presence, "LONGEST", 0.5)


def seen(driver, **more):
    work = SimpleNamespace(driver=driver, board=None, system=None)
    return presence.look(work, threading.Event(), **more)


def test_who_is_there():
    assert seen(Played(proves=1)) == presence.OWN_KEY
    assert seen(Played(proves=8)) == presence.OWN_KEY
    assert seen(Played(other=True)) == presence.OTHER_KEY
    assert seen(Played(heard=())) == presence.SILENT
    assert seen(Played()) == presence.ALIVE


@pytest.mark.parametrize(("proves", "who"), [(50.0, presence.OWN_KEY), (90.0, presence.ALIVE)])
def test_a_slow_board_has_a_minute_to_prove_its_key(monkeypatch, proves, who):
    """Lost: the power of a slow board in use; or ten minutes, to a machine that has its address and proves nothing."""
    clock = Clock()
    monkeypatch.setattr(deadline, "time", clock)
    monkeypatch.setattr(presence, "LONGEST", LONGEST)

    def answers(board, system, patience, cancelled, report):
        clock.sleep(patience.seconds)
        return clock.now >= proves

    assert seen(SimpleNamespace(alive=lambda board, limit: True, answers=answers)) == who
    assert clock.now < 90


def test_one_lost_packet_is_no_silence_and_a_second_one_is_not_waited_for():
    """Lost: the power of a board in use; or a second for each that hangs. Linux asks again after 1 and 3 s."""
    limits = []
    driver = SimpleNamespace(alive=lambda board, limit: limits.append(limit))
    assert presence.shown(SimpleNamespace(driver=driver, board=None)) == presence.SILENT
    assert 1 < limits[0] < 3


def test_silence_begins_after_the_last_sign_of_life():
    """A board that took a connection a moment ago is no board that hangs."""
    heard_at = []

    class Late(Played):
        def alive(self, board, limit):
            if not heard_at:
                time.sleep(0.15)  # most of the silence, were it counted from the begin on
                heard_at.append(time.monotonic())
            return super().alive(board, limit)

    assert seen(Late(heard={1})) == presence.SILENT
    assert time.monotonic() - heard_at[0] >= 0.2 - 0.01


def test_a_node_at_work_waits_longer(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (3.0 * os.cpu_count(), 0.0, 0.0))
    start = time.monotonic()
    assert seen(Played(heard=())) == presence.SILENT
    assert time.monotonic() - start >= 0.6 - 0.02
    monkeypatch.setattr(os, "getloadavg", lambda: (1e6, 0.0, 0.0))
    assert presence.strain() == presence.MOST_STRAIN


def test_the_time_of_one_that_waits_for_its_turn_has_not_begun(monkeypatch):
    """Lost: the power of boards in use that were asked last of many."""
    monkeypatch.setattr(presence, "AT_ONCE", threading.BoundedSemaphore(1))
    monkeypatch.setattr(presence, "LONGEST", 1.0)
    monkeypatch.setattr(Played, "answers", lambda self, *_asked: time.sleep(0.05) or self.looks > 1)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(seen(Played()))) for _one in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [presence.OWN_KEY] * 40


def test_what_is_not_asked_any_more_ends():
    over = threading.Event()
    over.set()
    assert presence.look(SimpleNamespace(driver=Played(), board=None, system=None), over) is None
