# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards on their way off, each step by itself. Whole stops are in test_power_proof.py and verbs/test_stop.py."""

from __future__ import annotations

import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import late_cuts, stops
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.stops import Stopping
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import (
    last_outlet,
    pdu_loop,
    power_proof,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.presence import ANOTHERS
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.lifecycle import Options
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import Wire

#: Stops and ends that cut a board whatever answers on it: (keep, its state, whether another key answers).
UNASKED = [(False, "running", True), (True, "error", True)]


class Work:
    """A board's work: `did` is what was done with the board, in order."""

    claim = "jackie's"

    def __init__(self, number=0, **more):
        self.did, self.phases = [], {}
        self.board = SimpleNamespace(id=number, name=f"board{number}", ip="10.0.2.1")
        self.pdu, self.outlet, self.outlet_name, self.instance = "pdu-a", "5", "pdu-a outlet 5", "jackie"
        self.driver = SimpleNamespace(switched=lambda board, now: self.did.append(("driver", now)))
        self.proxy = SimpleNamespace(wiring=lambda board: Wire())
        self.over = self.never_had_power = False
        self.doubt = self.unproven = self.power_proof = None
        self.state = "running"
        vars(self).update(more)

    def look_if_over(self):
        """Its lock is its caller's."""

    def say(self, phase, text, seconds=None):
        self.did.append((phase, text, seconds))

    def note(self, *change):
        self.did.append(("note", *change))

    def shows(self, words):
        self.power_proof = dict(self.power_proof, board=words)

    def move(self, state):
        self.did.append(("→", state))
        self.state = state

    def power_seen(self, power):
        self.did.append(("seen", power))

    def fail(self, blame, error, **facts):
        self.did.append(("fails", blame, str(error), facts))
        self.over = True

    def quarantine(self, note, remedy="", **facts):
        self.did.append(("quarantine", note + remedy, facts))
        self.over = True

    def refuse_unproven(self):
        self.did.append("unproven")
        self.over = True


@pytest.fixture
def stopped(monkeypatch, tmp_path):
    """Make a Stopping of some works, without threads: what is spawned is kept, what is posted is done."""
    monkeypatch.setattr(stops, "remove_entry", lambda work: work.did.append("no entry"))
    monkeypatch.setattr(stops, "note_if_used", lambda work: None)

    def make(*works, **options):
        events = []
        store = SimpleNamespace(
            transaction=nullcontext,
            event=lambda *event: events.append(event),
            unseen_cut=lambda board: None,
        )
        proxy = SimpleNamespace(boards={}, config=SimpleNamespace(pdus={}, run_folder=str(tmp_path)), store=store)
        one = Stopping(proxy, list(works), Options(**options))
        one.asked, one.last_looks, one.spawned, one.events = [], [], [], events

        def ask(outlet, state, last_look=None):
            one.asked.append((outlet, state))
            one.last_looks.append(last_look)

        one.lines = {"pdu-a": SimpleNamespace(ask=ask, close=lambda: None)}
        one._spawn = lambda function, *given: one.spawned.append((function, given))
        one._post = lambda handler, *given: handler(*given)
        return one

    return make


def status(one, **outlets):
    one._on_status("pdu-a", {"5": "on", **outlets})


@pytest.mark.parametrize("first", ["outlet", "look"])
def test_both_are_known_before_an_outlet_is_switched(stopped, first):
    """Lost: the power of a board that another's key answers on; or a stop that never comes."""
    work = Work()
    one = stopped(work)
    steps = [lambda: status(one), lambda: one._on_looked_before(work, None)]
    if first == "look":
        steps.reverse()
    steps[0]()
    assert one.asked == []
    steps[1]()
    assert one.asked == [("5", "off")]
    assert work.did == [
        ("note", "board0", {"power": "on", "state": "running"}, {"power": "off", "state": "shutting down"}),
        ("→", "shutting down"),
        ("seen", "on"),
    ]
    assert work.over is False


def test_a_board_whose_pdu_was_waited_for_is_looked_at_once_more(stopped, monkeypatch):
    """Lost: a board on which another key answers since; or a stop that looks for ever."""
    work = Work()
    one = stopped(work)
    one._on_looked_before(work, None)
    one._looked[work.board.id] -= late_cuts.FRESH + 0.1
    status(one)
    assert (one.asked, one.spawned) == ([], [(one._look_before, (work,))])
    one._looked[work.board.id] = 0.0  # a look may take long
    one._on_looked_before(work, None)
    assert (one.asked, len(one.spawned)) == ([("5", "off")], 1)


def test_another_key_that_was_seen_before_the_pdu_was_waited_for_is_looked_for_once_more(stopped):
    """Lost: a stop, to a machine that had the board's address 90 s ago, and is off since."""
    work = Work()
    one = stopped(work)
    one._on_looked_before(work, ANOTHERS)
    assert (work.did, one.asked) == ([], []), "nothing is said before it is known whether its outlet is on"
    one._looked[work.board.id] -= late_cuts.FRESH + 0.1
    status(one)
    assert (len(work.did), one.spawned) == (1, [(one._look_before, (work,))])
    one._on_looked_before(work, None)
    assert (one.asked, work.over) == ([("5", "off")], False)


@pytest.mark.parametrize("ago", [late_cuts.FRESH - 1.0, late_cuts.FRESH + 1.0])
@pytest.mark.parametrize(("keep", "state", "others"), [(True, "running", True), (True, "running", False)] + UNASKED)
def test_a_board_whose_next_session_was_waited_for_is_looked_at_in_it(stopped, monkeypatch, ago, keep, state, others):
    """Lost: the power of somebody else's board; or who else fell silent, and that it answered, by a look of long ago.

    The session in which its outlet was read ends while a slow board is looked at.
    """
    work, did = Work(state=state), []
    monkeypatch.setattr(stops, "is_others", lambda work: others)
    one = stopped(work, keep=keep)
    one.silences[0] = SimpleNamespace(before=lambda: did.append("looked"), answered=True)
    one._bystanders = SimpleNamespace(
        find=lambda work: False,
        watched=lambda work: True,
        before=lambda work: did.append("looked around"),
        to_be_cut=lambda work: "to be cut",
    )
    one._on_looked_before(work, None)
    status(one)
    assert one.asked == [("5", "off")]
    monkeypatch.setattr(stops, "time", SimpleNamespace(monotonic=lambda: one._looked[0] + ago))
    late = ago > late_cuts.FRESH
    spared = late and others and (keep, state) == (True, "running")
    before = list(work.did)
    assert one.last_looks[0]() is not spared
    assert did == ["looked around", "looked"] * late
    if spared:
        assert one.events == [(0, "switch", "to be cut"), (0, "switch", "pdu-a outlet 5 stays on")]
        assert work.did[len(before)] == ("→", "running")
        assert "another host key than its own answers" in work.did[-1][2]
    else:
        assert (one.events, work.did) == ([(0, "switch", "to be cut")], before)


def test_a_board_that_is_off_by_its_record_stays_so(stopped):
    """Lost: a free board that somebody switched on by hand, in a state that it must be cleaned from."""
    work = Work(state="power off")
    one = stopped(work)
    one._on_looked_before(work, None)
    status(one)
    assert ("→", "power off") in work.did
    assert work.did[0][-1] == {"power": "off", "state": "power off"}


def test_who_ends_what_was_never_started_leaves_its_board_on(stopped):
    """Lost: the power of whoever is at work there, by the end of an instance that never was."""
    work = Work(state="error", never_had_power=True)
    one = stopped(work, ends=True)
    one._on_looked_before(work, None)
    status(one)
    assert one.asked == []
    assert work.did[:2] == [
        ("seen", "on"),
        ("power", f"pdu-a outlet 5: {stops.NOBODYS.format(name='jackie')}", None),
    ]
    assert work.did[2:] == ["no entry"]
    assert (work.over, work.state) == (True, "error")


def test_who_stops_what_was_never_started_is_refused(stopped):
    """Lost: the same, by a stop."""
    work = Work(state="error", never_had_power=True)
    one = stopped(work, keep=True)
    status(one)
    one._on_looked_before(work, None)
    assert one.asked == []
    (_seen, _said, (_fails, blame, error, _facts)) = work.did
    assert blame == "instance"
    assert error.startswith("board0: its outlet is on, and jackie was never started here: not switched")
    assert "terminate_instance -e instance=jackie ends it and leaves the outlet as it is" in error
    assert "repair -e node=board0 switches it off" in error


@pytest.mark.parametrize(("ends", "never", "refused"), [(True, True, 0), (True, False, 1), (False, True, 1)])
def test_what_was_never_started_ends_whatever_its_outlet_feeds(stopped, monkeypatch, ends, never, refused):
    """Lost: the way out of a claim whose wiring names another's outlet: nothing is switched for it."""
    work = Work(never_had_power=never, over=False)
    asked = []
    monkeypatch.setattr(last_outlet, "Feeds", lambda proxy: "feeds")
    monkeypatch.setattr(last_outlet, "settle", lambda works, feeds: None)

    def refuse_doubted(works):
        asked.extend(works)
        for one in [work]:
            one.over = True

    monkeypatch.setattr(last_outlet, "refuse_doubted", refuse_doubted)
    stopped(work, ends=ends).run()
    assert len(asked) == refused


@pytest.mark.parametrize("doubted", [True, False])
def test_a_board_in_doubt_whose_cut_nobody_saw_is_refused_once_it_is_seen_whom_it_cut(stopped, doubted):
    """Lost: the board of somebody else, which is called off, and given to the next."""
    doubt = Refused("its outlet is in doubt", "board0", "see which it is")
    work = Work(doubt=doubt, off_by_all=False, power_proof=dict(pdu="off", board=None))
    one = stopped(work)
    one._doubted = {0} if doubted else set()
    one._on_silence(work, [])
    assert (("fails", None, str(doubt), {}) in work.did) is doubted
    assert work.over


@pytest.mark.parametrize("error", [OSError(5, "I/O"), HeteroError("cannot be asked", "board0", "see why")])
def test_a_board_that_cannot_be_looked_at_again_keeps_its_power(stopped, error):
    """Lost: the work of who came back to it while its PDU was waited for."""

    def why_left(work):
        raise error

    work = Work()
    one = stopped(work)
    one._bystanders = SimpleNamespace(watched=lambda work: False)
    one._why_left, one._states = why_left, {0: "running"}
    assert one._is_still_to_be_cut(work, time.monotonic() - 3600) is False
    assert work.over
    assert one._is_still_to_be_cut(work, time.monotonic()) is True, "it was looked at just now"


def test_a_session_that_is_lost_is_not_asked_again(stopped):
    """Lost: the power of somebody's board that is to be on again, to a session that is gone."""
    one = stopped(Work())
    line, error = one.lines["pdu-a"], HeteroError("does not answer", "pdu-a", "look at it")
    one._on_down("pdu-a", object(), error)
    assert one.lines == {"pdu-a": line}, "an older one"
    one._on_down("pdu-a", line, error)
    assert one.lines == {}


def test_another_key_than_its_own_keeps_a_board_on(stopped):
    """Lost: the power of somebody else's board, by a stop of one's own."""
    work = Work()
    one = stopped(work)
    status(one)
    one._on_looked_before(work, ANOTHERS.format(ip="10.0.2.1"))
    assert one.asked == []
    why = "another host key than its own answers at its address 10.0.2.1"
    assert work.did[1] == ("error", f"the board is left as it is: {why}", None)
    assert work.did[2][:2] == ("fails", None)
    assert work.did[2][2].startswith(f"board0: {why}: see which machine")
    assert "-e instance=jackie" in work.did[2][2]


def test_what_answers_where_the_outlet_is_off_keeps_nobody_on(stopped):
    """Lost: the stop of a board that is off, for a machine that has its address."""
    for more in (dict(), dict(over=True)):
        work = Work(**more)
        one = stopped(work)
        status(one, **{"5": "off"})
        before = list(work.did)
        one._on_looked_before(work, ANOTHERS)
        assert (work.did, one.asked) == (before, [])
    work = Work()
    one = stopped(work)
    one._on_looked_before(work, ANOTHERS)
    status(one, **{"5": "off"})
    assert (work.over, work.did[1:]) == (False, [("→", "shutting down"), ("seen", "off"), ("driver", "off")])


@pytest.mark.parametrize(
    ("keep", "state", "answered", "others", "told"),
    [
        (True, "running", True, True, True),
        (True, "running", True, False, False),
        (True, "running", False, True, False),
        # who ends an instance says that what its outlet feeds is to go; one out of use is stopped to be mended
        (False, "running", True, True, False),
        (True, "error", True, True, False),
    ],
)
def test_whose_board_it_is_asks_who_wants_it_again(stopped, monkeypatch, keep, state, answered, others, told):
    """Lost: a way to end an instance whose key was changed; or the power of somebody else's board."""
    monkeypatch.setattr(stops, "is_others", lambda work: others)
    work, got = Work(state=state), []
    one = stopped(work, keep=keep)
    did = []
    one.silences[0] = SimpleNamespace(before=lambda: did.append("looked"), answered=answered)
    one._on_looked_before = lambda work, why: got.append((work, bool(why)))
    one._look_before(work)
    assert (got, did) == ([(work, told)], ["looked"])


def test_a_board_in_doubt_is_not_switched_off(stopped, monkeypatch):
    """Lost: another board's power, by an outlet that only a slip names."""
    work = Work(doubt=Refused("its wiring names another", "board0", "correct it"))
    monkeypatch.setattr(last_outlet, "refuse", lambda work: work.did.append("refused"))
    one = stopped(work)
    one._on_looked_before(work, None)
    status(one)
    assert work.did[1:] == ["refused"]
    assert one.asked == []


def test_an_outlet_that_is_not_there_is_the_wirings_fault_and_others_go_on(stopped):
    """Lost: the boards after it, or whose fault it is."""
    lost, work = Work(0, outlet="9"), Work(1)
    one = stopped(lost, work)
    status(one)
    assert lost.did == [("fails", "proxy", "board0: pdu-a has no outlet 9 (it has 5): correct proxy.json", {})]
    assert work.did[0][0] == "note"


@pytest.mark.parametrize("now", ["on", "off"])
def test_one_that_only_the_database_knows_is_not_switched_off(stopped, now):
    """Lost: the board of somebody else, by an older database; one that is off costs nobody anything."""
    work, other = Work(0, unproven="only the database says so"), Work(1)
    one = stopped(work, other)
    status(one, **{"5": now})
    assert ("unproven" in work.did) is (now == "on")
    assert other.did[0][0] == "note"


def test_an_entry_goes_once_it_is_written_down_that_its_board_is_off(stopped):
    """Lost: what a board may have done in a boot that nobody watched, to a process that is killed in that moment."""
    work = Work()
    one = stopped(work)
    one._steps = []
    one._off(work)
    assert (work.over, "no entry" in work.did) == (True, False)
    for step in one._steps:
        step()
    assert work.did[-1] == "no entry"


def test_power_is_given_back_before_anything_is_written_down(stopped):
    """Lost: another tenant's power, for seconds more, or for good where a disk is full."""
    one = stopped(Work())
    one._steps = []
    one._undo(one.works[0], None)
    assert (one.asked, one._steps) == ([("5", "on")], [])


@pytest.mark.parametrize("now", ["on", "off"])
def test_a_dry_run_says_what_it_would_switch(stopped, now):
    """Lost: what a stop would do, or a stop by who only asked for that."""
    work = Work()
    one = stopped(work, check=True)
    status(one, **{"5": now})
    assert work.did[1:] == [*[("power", "pdu-a outlet 5 is on: on → off", None)] * (now == "on"), "no entry"]
    assert (work.over, one.asked, one.spawned) == (True, [], [])


def test_a_board_that_is_off_is_listened_to(stopped):
    """Lost: a board that another outlet feeds, called off; or a driver that goes on with one that has no power."""
    work = Work()
    one = stopped(work)
    status(one, **{"5": "off"})
    assert work.did[1:] == [("→", "shutting down"), ("seen", "off"), ("driver", "off")]
    assert work.power_proof == dict(pdu="off, read", board=None)
    assert one.spawned == [(one._look_after, (work, one._on_silence))]
    assert (one.asked, work.over) == ([], False)


def test_an_outlet_that_was_switched_is_proven(stopped, monkeypatch):
    """Lost: the proof of a stop, and how long it took."""
    work, other = Work(0), Work(1, outlet="6")
    one = stopped(work, other)
    one._on_switched("pdu-a", "5", "on", "off", 2.5)
    assert (work.did, other.did) == ([("seen", "off"), ("driver", "off")], [])
    assert (work.phases, work.power_proof) == ({"power": 2.5}, dict(pdu="on → off, read back", board=None))
    one.silences[0] = SimpleNamespace(life=lambda: ["a sign"])
    monkeypatch.setattr(stops.presence, "shown", lambda work: "own key")
    got = []
    one._on_silence = lambda *given: got.append(given)
    assert [(function, given[0]) for function, given in one.spawned] == [(one._look_after, work)]
    one._look_after(work, one._on_silence)
    assert (got, one._shown) == ([(work, ["a sign"])], {0: "own key"})


@pytest.mark.parametrize("seconds", [None, 2.5])
@pytest.mark.parametrize("words", [None, "console silent"])
def test_silence_is_the_second_proof(stopped, seconds, words):
    """Lost: what proves that a board is off, where its PDU may be wrong."""
    work = Work(power_proof=dict(pdu="off, read", board=None))
    one = stopped(work)
    one.silences[0] = SimpleNamespace(words=words, unproven="no own proof")
    if seconds:
        work.phases["power"] = seconds
    one._on_silence(work, [])
    proof = "silent" if seconds is None else words or "no own proof"
    assert work.power_proof == dict(pdu="off, read", board=proof)
    said = [("power", f"pdu-a outlet 5: on → off, read back; {proof}", 2.5)] if seconds else []
    assert (work.did, work.over) == ([*said, "no entry"], True)


@pytest.mark.parametrize(("shown", "kept"), [(None, ""), ("other key", ""), ("own key", "; it is kept")])
@pytest.mark.parametrize("seconds", [None, 2.5])
def test_a_board_that_lives_on_is_kept_out_of_use(stopped, seconds, shown, kept):
    """Lost: the next tenant gets a board that somebody works on."""
    work = Work(power_proof=dict(pdu="off, read", board=None))
    one = stopped(work)
    if seconds:
        work.phases["power"] = seconds
    one._feeds = SimpleNamespace(belie=lambda work: "; it is kept")
    one._shown = {0: shown} if shown else {}
    one._on_silence(work, ["one", "two"])
    note = power_proof.contradiction(work, ["one", "two"])
    proof = dict(pdu="off, read", board="one and two")
    assert work.did == [("power", note, seconds), ("quarantine", note + kept, {"power_proof": proof})]


@pytest.mark.parametrize("signs", [[], ["one", "two"]])
def test_a_relay_that_sticks_is_told_with_the_boards_own_word(stopped, signs):
    """Lost: whether the relay or its read-back is wrong."""
    error = HeteroError("still on 10 s after 'off'", "outlet 5 of pdu-a", "check its relay", screen="5: ON")
    work = Work()
    one = stopped(work)
    one._on_refused("pdu-a", "5", error)
    ((look, (of, then)),) = one.spawned
    assert (look, of, work.power_proof) == (one._look_after, work, dict(pdu=error.what, board=None))
    then(work, signs)
    own = " and ".join(signs) or "silent"
    proof = dict(pdu=error.what, board=own)
    assert work.did == [
        ("power", f"{error}; the board: {own}", None),
        ("quarantine", str(error), {"screen": "5: ON", "power_proof": proof}),
    ]


def test_a_pdu_that_is_away_leaves_its_boards_as_they_are(stopped):
    """Lost: boards out of use, or called off, for a PDU that did not answer."""
    error = HeteroError("does not answer", "pdu-a", "look at it", screen="login:")
    work, other, over = Work(0), Work(1, pdu="pdu-b"), Work(2, over=True)
    stopped(work, other, over)._on_down("pdu-a", None, error)
    assert work.did == [
        ("error", f"the board is left as it is: {error}", None),
        ("fails", "proxy", str(error), {"screen": "login:"}),
    ]
    assert (other.did, over.did) == ([], [])


@pytest.mark.parametrize("check", [False, True])
def test_a_stop_of_boards_that_are_in_doubt_ends_with_them(stopped, monkeypatch, check):
    """Lost: a call that never ends; or one that looks at boards, or asks PDUs, for boards that it must not touch."""
    did = []
    monkeypatch.setattr(last_outlet, "Feeds", lambda proxy: "the feeds")
    monkeypatch.setattr(last_outlet, "settle", lambda works, feeds: did.append(("settle", len(works), feeds)))

    def refuse_doubted(works):
        works[0].over = True

    monkeypatch.setattr(last_outlet, "refuse_doubted", refuse_doubted)
    most, real = [], stops.ThreadPoolExecutor
    monkeypatch.setattr(stops, "ThreadPoolExecutor", lambda max_workers: most.append(max_workers) or real(max_workers))
    doubted, work, other = Work(0, pdu="pdu-z"), Work(1), Work(2, pdu="pdu-b")
    one = stopped(doubted, work, other, check=check)
    closed = []
    one.lines = {"pdu-q": SimpleNamespace(close=lambda: closed.append("pdu-q"))}
    one._open_line = did.append
    monkeypatch.setattr(pdu_loop, "SELDOM", 0.0)

    def turn(_most=None):
        work.over = other.over = True

    one._turn = turn
    one._close_lines = lambda: did.append("lines looked at")
    one.run()
    assert did[0] == ("settle", 3, "the feeds")
    assert sorted(did[1:3]) == ["pdu-a", "pdu-b"]
    assert (did[3:], closed) == (["lines looked at"], ["pdu-q"])
    assert one.spawned == ([] if check else [(one._look_before, (work,)), (one._look_before, (other,))])
    assert most == [4], "a board that waits for another's thread"
    stopped(Work()).run()
    assert most == [4, 1], "no thread for nobody"
