# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of outlets by what their PDU says, on a clock that only moves where something takes time.

Real PDUs and processes are in test_outlets.py.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import deadline as deadlines
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    Busy,
    HeteroError,
    Lost,
    TimedOut,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import registry
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import Answer, PowerDriver

#: A nap takes that long here: a number that is exact, so that boundaries can be met.
NAP = 0.125


@pytest.fixture
def clock(monkeypatch):
    one = SimpleNamespace(now=1024.0, naps=0)

    def sleep(_seconds):
        one.now += NAP
        one.naps += 1

    time = SimpleNamespace(monotonic=lambda: one.now, sleep=sleep)
    monkeypatch.setattr(deadlines, "time", time)
    monkeypatch.setattr(power, "time", time)
    monkeypatch.setattr(power, "LOOK_AGAIN", NAP)
    return one


class Opened:
    """A session whose readings are a list: the last is read for ever; an error is raised. `told` is what was done."""

    name = "pdu-t"
    window, stuck = power.WINDOW, PowerDriver.stuck

    def __init__(self, clock, *readings, answer=None, takes=0.0, loses=None):
        self.clock, self.readings, self.takes, self.loses = clock, list(readings), takes, loses
        self.answer, self.told, self.read = answer or Answer(True, "OK"), [], 0
        self.waiting = SimpleNamespace(begin=lambda: self.told.append("begins"), say=self.told.append)

    def status(self):
        self.read += 1
        self.clock.now += self.takes
        said = self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]
        if callable(said):
            said = said()
        if isinstance(said, Exception):
            raise said
        return said

    given = True

    def switch(self, outlets, state):
        self.told.append((state, *outlets))
        if self.loses:
            raise self.loses
        return dict.fromkeys(outlets, self.answer)

    def take_turn(self):
        self.told.append("turn")


OFF, ON = {"1": "off", "2": "off"}, {"1": "on", "2": "on"}


def failed(opened, wanted, seconds=60.0, **options):
    """The errors of a batch that fails."""
    with pytest.raises(power.OutletsFailed) as caught:
        power.set_outlets(opened, wanted, Deadline(seconds), **options)
    return caught.value


def test_an_outlet_is_read_until_it_is_as_wanted(clock):
    """Lost: a relay that takes its time is called broken; or how long it took."""
    opened, done = Opened(clock, OFF, OFF, dict(OFF, **{"2": "on"}), ON), []
    results = power.set_outlets(opened, {"1": "on", "2": "on"}, Deadline(60), report=lambda *one: done.append(one))
    assert results == {
        "2": {"before": "off", "after": "on", "seconds": 0.125},
        "1": {"before": "off", "after": "on", "seconds": 0.25},
    }
    assert done == [("2", "off", "on", 0.125), ("1", "off", "on", 0.25)]
    first, second = "not yet read as on: outlet 1, 2", "not yet read as on: outlet 1"
    assert opened.told == ["turn", "begins", ("on", "1", "2"), first, second]


def test_what_is_as_wanted_is_left_alone(clock):
    """Lost: a PDU's time; or who only asks takes the PDU from those who switch."""
    opened = Opened(clock, {"1": "on", "2": "off"})
    wanted = {"1": "on", "2": "off"}
    assert {outlet: one["after"] for outlet, one in power.set_outlets(opened, wanted, Deadline(60)).items()} == wanted
    assert opened.told == ["turn"]
    results = power.set_outlets(opened, {"1": "cycled", "2": "cycled"}, Deadline(60), check=True)
    assert [one["after"] for one in results.values()] == ["on", "on"]
    assert opened.told == ["turn"]


@pytest.mark.parametrize(
    ("verify", "readings", "told", "after"),
    [
        (True, [ON, ON, OFF, OFF, ON], [("off", "1"), "not yet read as off: outlet 1", ("on", "1")], "on"),
        # that it was off has to be seen, or it may never have been
        (False, [ON, ON, OFF], [("off", "1"), "not yet read as off: outlet 1", ("on", "1")], None),
    ],
)
def test_a_cycle_is_an_off_that_was_seen(clock, verify, readings, told, after):
    """Lost: a board is told as started anew that never lost its power."""
    opened = Opened(clock, *readings)
    result = power.set_outlets(opened, {"1": "cycled"}, Deadline(60), verify=verify)["1"]
    assert (result["before"], result["after"]) == ("on", after)
    assert [word for word in opened.told if word not in ("turn", "begins")][: len(told)] == told
    assert opened.told.count("begins") == 2


def test_without_a_look_nothing_is_read(clock):
    opened = Opened(clock, OFF)
    assert power.set_outlets(opened, {"1": "on"}, Deadline(60), verify=False)["1"]["after"] is None
    assert (opened.read, opened.told) == (1, ["turn", "begins", ("on", "1")])


def test_an_off_that_fails_is_followed_by_no_on(clock):
    """Lost: an order for an outlet of which nobody knows what it does."""
    error = failed(Opened(clock, ON, answer=Answer(False, "")), {"1": "cycled"})
    assert (
        str(error) == "outlet 1 of pdu-t: still on 0 s after 'off' (PDU said nothing): check what this account may do"
    )
    assert (error.results, error.before, error.errors["1"].facts) == ({}, ON, {"seen": "on"})
    assert error.failure["outlets"]["1"]["seen"] == "on"


def test_one_that_was_refused_and_follows_all_the_same_is_done(clock):
    opened = Opened(clock, OFF, ON, answer=Answer(False, "E102"))
    assert power.set_outlets(opened, {"1": "on"}, Deadline(60))["1"]["after"] == "on"


@pytest.mark.parametrize(
    ("seconds", "window", "words", "read"),
    [
        (60.0, 2.0, "still off 1.8 s after 'on' (PDU said OK): check its relay", 6),
        (2.25, 2.0, "still off 1.8 s after 'on' (PDU said OK): check its relay", 6),
        (2.0, 2.0, "still off 1.4 s after 'on' (PDU said OK): check its relay, or raise timeout", 5),
        (60.0, None, "still off 9.6 s after 'on' (PDU said OK): check its relay", 27),
    ],
)
def test_the_last_look_is_one_that_there_is_time_for(clock, seconds, window, words, read):
    """Lost: what was read last; a reading that the end cuts off would be told as a PDU that does not answer."""
    opened = Opened(clock, OFF, takes=0.25)
    error = failed(opened, {"1": "on"}, seconds, window=window)
    assert str(error) == f"outlet 1 of pdu-t: {words}"
    assert opened.read == read


def test_a_pdu_that_is_lost_over_the_order_may_have_done_it(clock):
    """Lost: that an outlet may be on now; it would be told as one that was not switched."""
    late = TimedOut("no answer within 5 s", "pdu-t", "look at the PDU", screen="x")
    error = failed(Opened(clock, OFF, loses=late), {"1": "on", "2": "on"})
    what = "'on' may have been carried out or not, as the PDU was lost over it: no answer within 5 s"
    assert str(error) == f"outlets 1, 2 of pdu-t: {what}: look at the PDU"
    assert set(error.errors) == {"1", "2"}
    assert error.errors["1"].facts == {"screen": "x"}
    assert str(failed(Opened(clock, OFF, loses=late), {"1": "on"})).startswith("outlet 1 of pdu-t: 'on' may have")
    refused = HeteroError("refuses user 'apc'", "pdu-t", "correct it")
    assert failed(Opened(clock, OFF, loses=refused), {"1": "on"}).errors["1"] is refused


@pytest.mark.parametrize(
    ("readings", "answer", "words"),
    [
        ([], "OK", "was off before 'on' (PDU said OK), and not read again when the time was up"),
        ([OFF], "OK", "still off 0.5 s after 'on' (PDU said OK), when the time was up"),
        ([{"1": "pending"}], "", "still pending 0.5 s after 'on' (PDU said nothing), when the time was up"),
    ],
)
def test_what_was_read_before_the_end_counts(clock, readings, answer, words):
    """Lost: the state of an outlet, which was read; the end of the time alone would be told."""

    def late():
        clock.now += 60
        return TimedOut("no answer within 0.0 s", "pdu-t", "look at the PDU")

    opened = Opened(clock, OFF, *readings, late, answer=Answer(True, answer), takes=0.5)
    error = failed(opened, {"1": "on"}, 30.0)
    assert str(error) == f"outlet 1 of pdu-t: {words}: raise timeout, or look at the PDU"
    assert isinstance(error.errors["1"], TimedOut)
    assert error.errors["1"].facts == {"seen": readings[0]["1"] if readings else "off"}


@pytest.mark.parametrize("kind", [TimedOut, HeteroError])
def test_an_end_of_another_kind_is_told_as_it_is(clock, kind):
    """Lost: what a driver says of its own; it would be told as a time that was too short."""
    own = kind("its relay board is hot", "pdu-t", "cool it")
    error = failed(Opened(clock, OFF, own), {"1": "on", "2": "on"})
    assert (error.errors, str(error)) == ({"1": own, "2": own}, "pdu-t: its relay board is hot: cool it")


def test_each_reason_is_said_once():
    """Lost: what to read, to the same words for each outlet of a rack."""
    one, two = HeteroError("hangs", "pdu-t", "look"), HeteroError("is hot", "pdu-t", "cool it")
    error = power.OutletsFailed({"4": {}}, {"1": one, "2": two, "3": one}, OFF)
    assert str(error) == "pdu-t: hangs: look; pdu-t: is hot: cool it"
    assert error.failure["outlets"] == {"1": one.failure, "2": two.failure, "3": one.failure}
    assert (error.results, error.before) == ({"4": {}}, OFF)


class Played:
    """A driver whose login and answers are a list: an error is raised."""

    name, readers, dialect = "pdu-t", False, "played"

    def __init__(self, *script):
        self.script, self.did = list(script), []

    def login(self):
        self._next("in")

    def logout(self):
        self.did.append("out")

    def status(self):
        return self._next("status")

    def switch(self, outlets, state):
        return self._next((state, *outlets))

    def _next(self, asked):
        self.did.append(asked)
        said = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        said = said() if callable(said) else said
        if isinstance(said, Exception):
            raise said
        return said


def spoken(*script, seconds=60.0):
    """A Session with it; `said` is what it is waited for."""
    driver, said = Played(*script), []

    def long(what):
        said.append(what)
        return nullcontext()

    waiting = SimpleNamespace(begin=lambda: said.append("begins"), say=said.append, long=long)
    one = power.Session(driver, Deadline(seconds), None, waiting)
    one.driver, one.said = driver, said
    return one


BUSY = Busy("has another user", "pdu-t", "wait", screen="x")


def test_a_session_that_was_lost_is_opened_again_and_asked_again(clock):
    """Lost: a batch, for a PDU that logs out who is idle."""
    one = spoken(Lost("it hung up", "pdu-t", "look"), None, OFF)
    assert one.status() == OFF
    assert one.driver.did == ["status", "out", "in", "status"]
    assert one.said == ["reading its outlets", "it hung up", "the login", "reading its outlets"]
    assert spoken({}).dialect == "played"


@pytest.mark.parametrize(
    ("outlets", "words"), [(["1"], "switching outlet 1 on"), (["1", "2"], "switching outlets 1, 2 on")]
)
def test_which_order_takes_long_is_told(clock, outlets, words):
    answers = dict.fromkeys(outlets, "done")
    one = spoken(answers)
    assert one.switch(outlets, "on") == answers
    assert (one.said, one.driver.did) == ([words], [("on", *outlets)])


def test_each_pause_is_longer_up_to_a_second(clock):
    """Lost: a PDU's one place for its person, whom we would be in the way of each tenth of a second."""
    one, waits = spoken(*[BUSY] * 6, None), []
    begun = one._deadline.within
    one._deadline.within = lambda seconds: waits.append(seconds) or begun(seconds)
    one.log_in()
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert one.driver.did == [*["in", "out"] * 6, "in"]
    assert clock.naps == 1 + 2 + 4 + 7 + 8 + 8


def test_a_pdu_that_stays_taken_is_given_up(clock):
    """Lost: why; and what a person may need to see of it."""
    one = spoken(BUSY, seconds=3.0)
    with pytest.raises(TimedOut) as caught:
        one.log_in()
    assert str(caught.value) == "pdu-t: has another user (gave up after 3 s): wait"
    assert caught.value.facts == {"screen": "x"}
    assert one.driver.did[-2:] == ["in", "out"]


@pytest.mark.parametrize(("left", "told"), [(NAP, "no answer"), (NAP / 2, "has another user")])
def test_what_the_end_cuts_off_says_less_than_what_was_said_before(clock, left, told):
    """Lost: that the place was taken; or, where there was time for an answer, that it does not answer any more."""
    one = spoken(BUSY, Lost("no answer", "pdu-t", "look"), seconds=60.0)
    hangs = one.driver.script[1]

    def late():
        clock.now += one._deadline.left - left
        return hangs

    one.driver.script[1] = late
    with pytest.raises(TimedOut, match=f"pdu-t: {told} .gave up after 60 s.: "):
        one.log_in()


@pytest.mark.parametrize(("left", "told"), [(NAP, "hot"), (NAP / 2, "has another user")])
def test_a_limit_of_the_drivers_own_is_told_where_it_is_not_the_end(clock, left, told):
    own = TimedOut("hot", "pdu-t", "cool it")
    one = spoken(BUSY, None)
    one.driver.script[1] = lambda: setattr(clock, "now", clock.now + one._deadline.left - left) or own
    with pytest.raises(TimedOut, match=told):
        one.log_in()


def test_what_was_said_before_an_answer_is_over(clock):
    """Lost: where to look; a colleague would be blamed who left long ago."""
    one = spoken(BUSY, None, OFF)
    assert one.status() == OFF
    assert one._said is None


@pytest.fixture
def places(monkeypatch):
    """What is locked and released, and done with a driver `played`, in its order."""
    done = []

    @contextmanager
    def lock(run_folder, place, verb, actor, deadline, waiting, quiet):
        done.append((run_folder, place, verb, actor, quiet))
        yield
        done.append("released")

    class Recorded(Played):
        masked = str

        def __init__(self, *given):
            super().__init__(None)
            self.did = done

    monkeypatch.setattr(power, "lock", lock)
    monkeypatch.setitem(registry.DRIVERS, "apc", Recorded)
    monkeypatch.setitem(registry.DRIVERS, "reads", type("Reads", (Recorded,), {"readers": True}))
    return done


def test_a_pdu_is_locked_by_its_name_while_it_is_used(places):
    """Lost: the PDU's one place, which another process of ours would take from us; or each PDU with a / in its name."""
    with power.session("row/7", {}, {}, Deadline(60), "/run/t"):
        assert places == [("/run/t", "pdu-row_7", "power", "outlets", power.QUIET), "in"]
    assert places[2:] == ["out", "released"]
    del places[:]
    with power.session("pdu-t", {"driver": "reads"}, {}, Deadline(60), "/run/t", "jackie") as opened:
        assert places == ["in"], "who reads disturbs nobody"
        for _order in range(2):
            opened.take_turn()
    assert places == ["in", ("/run/t", "pdu-pdu-t", "power", "jackie", power.QUIET), "out", "released"]
