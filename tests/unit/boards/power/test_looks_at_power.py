# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Single looks at a board: whether it lives, and whose it is. How long one is looked at is in test_silence.py and
test_presence.py.
"""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import power_proof, presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.ssh import WrongHostKey
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import Wire


class Clock:
    """Time that passes by sleeping only."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def silence_of(alive, console=None):
    work = SimpleNamespace(
        board=SimpleNamespace(ip="10.0.2.1"),
        driver=SimpleNamespace(alive=alive),
        proxy=SimpleNamespace(wiring=lambda board: Wire(console=console)),
    )
    return power_proof.Silence(work)


@pytest.mark.parametrize("answers", [True, False])
def test_a_look_before_is_remembered(answers):
    """Lost: whether its silence proves anything afterwards."""
    limits = []
    silence = silence_of(lambda board, limit: limits.append(limit) or answers)
    assert silence.answered is None
    silence.before()
    assert (silence.answered, silence.lives()) == (answers, answers)
    assert all(0.1 <= limit <= 1 for limit in limits), "a board on the same network answers within milliseconds"


@pytest.mark.parametrize("answers", [False, True])
@pytest.mark.parametrize("grows", [False, True])
def test_all_signs_of_life_are_told(monkeypatch, tmp_path, answers, grows):
    """Lost: that its console goes on, where nothing answers: a board whose network is down, and its work is not."""
    clock, log = Clock(), tmp_path / "log"
    log.write_text("")
    monkeypatch.setattr(deadline, "time", clock)

    def alive(board, limit):
        if grows:
            with log.open("a") as console:
                console.write("more\n")
        return answers

    signs = silence_of(alive, str(log)).life()
    assert signs == ["something answers at 10.0.2.1"] * answers + ["its console's log grows"] * grows
    if signs:
        assert 2 < clock.now < 5, "a power supply bridges two seconds"
    else:
        # nothing of a console is heard in no time
        assert clock.now == pytest.approx(2 * power_proof.LOOK)


def test_who_has_no_console_is_not_waited_for(monkeypatch):
    """Lost: time of every stop, for a log that is not there."""
    clock = Clock()
    monkeypatch.setattr(deadline, "time", clock)
    assert silence_of(lambda board, limit: False).life() == []
    assert clock.now == 0.0


def test_a_look_that_is_not_needed_any_more_ends():
    """Lost: seconds at the end of each start, for boards that have power by now."""
    over = threading.Event()
    over.set()
    assert silence_of(lambda *given: pytest.fail("looked at")).life(over) == []


def test_a_board_that_lives_on_names_both_ways_out():
    """Lost: that another outlet feeds the board, or another machine has its address."""
    note = power_proof.contradiction(SimpleNamespace(pdu="pdu-a", outlet="5"), ["one", "two"])
    assert note.startswith("off by pdu-a's read-back, but one and two: outlet 5 does not feed this board")
    assert "ansible-playbook hetero.compute.cabling" in note


@pytest.mark.parametrize(
    ("alive", "key", "answer", "seen"),
    [
        (False, "k", True, presence.SILENT),
        (True, None, True, presence.ALIVE),
        (True, "k", True, presence.OWN_KEY),
        (True, "k", False, presence.ALIVE),
        (True, "k", None, presence.OTHER_KEY),
    ],
)
@pytest.mark.parametrize("over", [None, threading.Event()])
def test_what_answers_on_a_board_just_now(monkeypatch, alive, key, answer, seen, over):
    """Lost: the power of somebody else's board; or one without a key is taken for another's."""
    monkeypatch.setattr(os, "getloadavg", lambda: (3.0 * os.cpu_count(), 0.0, 0.0))
    patience = []

    def answers(board, system, deadline, cancelled, report):
        assert cancelled is over or (over is None and not cancelled.is_set())
        patience.append(deadline.seconds)
        report("image", "copied")
        if answer is None:
            raise WrongHostKey("another host key answers there", "10.0.2.1")
        return answer

    driver = SimpleNamespace(alive=lambda board, limit: alive, answers=answers)
    work = SimpleNamespace(driver=driver, board=None, system=SimpleNamespace(host_key=key))
    assert presence.shown(work, over) == seen
    assert presence.is_others(work, over) is (seen == presence.OTHER_KEY)
    assert all(seconds == 3 * presence.PROOF for seconds in patience), "a node at work waits longer"


@pytest.mark.parametrize(
    ("load", "cpus", "times"), [(0.0, 4, 1.0), (4.0, 4, 1.0), (8.0, 4, 2.0), (8.0, None, 8.0), (1e6, 4, 10.0)]
)
def test_how_many_times_as_long_things_take(monkeypatch, load, cpus, times):
    """Lost: the power of boards in use, on a busy node; or minutes on an idle one."""
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 99.0, 99.0))
    monkeypatch.setattr(os, "cpu_count", lambda: cpus)
    assert presence.strain() == times


@pytest.mark.parametrize(("limit", "most"), [(None, 3.0), (0.5, 0.5)])
def test_a_look_may_be_given_a_limit(monkeypatch, limit, most):
    """Lost: minutes of a reconcile for each board that hangs; or the power of a busy one."""
    monkeypatch.setattr(os, "getloadavg", lambda: (3.0 * os.cpu_count(), 0.0, 0.0))
    monkeypatch.setattr(presence, "QUIET", 1.0)
    monkeypatch.setattr(presence, "LONGEST", 1.0)
    monkeypatch.setattr(presence, "PROOF", 2.0)
    clock, given = Clock(), []
    monkeypatch.setattr(deadline, "time", clock)

    def answers(board, system, patience, cancelled, report):
        given.append(patience.seconds)
        clock.sleep(0.25)

    for alive, end in ((True, presence.ALIVE), (False, presence.SILENT)):
        clock.now = 0.0
        driver = SimpleNamespace(alive=lambda board, limit, alive=alive: clock.sleep(0.25) or alive, answers=answers)
        work = SimpleNamespace(driver=driver, board=None, system=None)
        waits = SimpleNamespace(wait=lambda seconds: clock.now > 60)
        assert presence.look(work, waits, limit) == end
        assert most <= clock.now <= most + 0.8
    assert set(given) == {6.0}


def test_the_times_of_a_look():
    """Lost: the power of an emulated board, which answers late; or the patience of all who wait."""
    assert 10 <= presence.QUIET <= 30
    assert 30 <= presence.LONGEST <= 120
    assert 4 <= presence.PROOF < 7
    assert 1 < presence.CONNECT < 3
    assert 0 < presence.NAP <= 0.1
    assert presence.AT_ONCE._initial_value == 4 * os.cpu_count()
