# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told while a PDU is waited for, by a clock that the test moves."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Lost, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets, wait_notes
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.wait_notes import Waiting

#: Seconds of which nothing is told: whoever follows a play looks twice a second.
QUIET = 1.5


@pytest.fixture
def clock(monkeypatch):
    """`clock.now` is the time; `clock.timers` are those that were made, in words, with what was done with them."""
    one = SimpleNamespace(now=100.0, timers=[])

    def timer(seconds, function, args):
        made = SimpleNamespace(seconds=seconds, rings=lambda: function(*args), did=[], daemon=False)
        made.start = lambda: made.did.append("daemon starts" if made.daemon else "starts")
        made.cancel = lambda: made.did.append("ends")
        one.timers.append(made)
        return made

    monkeypatch.setattr(wait_notes, "time", SimpleNamespace(monotonic=lambda: one.now))
    monkeypatch.setattr(wait_notes, "threading", SimpleNamespace(Timer=timer))
    return one


def test_a_wait_is_told_where_it_is_long_and_once(clock):
    """Lost: why nothing happens; or each line of a play, to the same words again and again."""
    told = []
    wait = Waiting("pdu-t", told.append, 60)
    clock.now += QUIET - 0.25
    wait.say("has another user")
    assert told == []
    clock.now += 0.25
    wait.say("has another user since 5 s")
    wait.say("has another user since 17 s")
    assert told == ["pdu-t: has another user since 5 s"]
    wait.say("hangs")
    assert told[1:] == ["pdu-t: hangs"]
    # something else is waited for, and was not for long
    wait.begin()
    wait.say("not yet read as on")
    assert told[2:] == []
    wait.say_at_once("held by power")
    assert told[2:] == ["pdu-t: held by power"]


def test_what_takes_long_is_told_by_a_timer_that_ends_with_it(clock):
    """Lost: a word of a login that hangs; or one too many, or the end of a process that a timer holds up."""
    told = []
    with Waiting("pdu-t", told.append, 60.0).long("the login"):
        timer = clock.timers[0]
        assert (timer.seconds, timer.did, told) == (QUIET, ["daemon starts"], [])
        timer.rings()
        assert told == ["pdu-t: the login takes longer; it is waited for until 60 s are over"]
    assert timer.did == ["daemon starts", "ends"]
    with pytest.raises(KeyError), Waiting("pdu-t", told.append, 60.0).long("the login"):
        raise KeyError
    assert clock.timers[1].did == ["daemon starts", "ends"]


def test_nobody_who_wants_to_know_is_told_nothing(clock):
    """Lost: each use of a PDU by a program that prints nothing."""
    wait, ran = Waiting("pdu-t", None, 60), []
    with wait.long("the login"):
        ran.append(True)
    clock.now += 2 * QUIET
    wait.say("hangs")
    wait.say_at_once("hangs")
    assert (ran, clock.timers) == ([True], [])


def test_a_pdu_whose_login_asks_nothing_is_told_as_silent_too():
    """Lost: a minute and a half of a play without a word, of a PDU that is down and speaks HTTP."""

    class Down:
        """A driver whose login opens nothing, and whose PDU is off."""

        name, dialect = "relays", None

        def login(self):
            pass

        def logout(self):
            pass

        def status(self):
            raise Lost("no answer (Connection refused)", "relays", "look at the PDU")

    told, deadline = [], Deadline(4.0)
    opened = outlets.Session(Down(), deadline, lambda: None, Waiting("relays", told.append, 4.0))
    opened.log_in()
    with pytest.raises(TimedOut, match="Connection refused"):
        opened.status()
    assert told == ["relays: no answer (Connection refused)"]
