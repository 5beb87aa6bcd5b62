# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One loop for all boards of a call: what its threads post, and the lines that it opens and closes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.pdu_loop import PduLoop


class Store:
    """A store that writes down when what was done together is committed; `errors` are why it cannot be."""

    def __init__(self):
        self.did, self.errors = [], []

    @contextmanager
    def together(self):
        self.did.append("begins")
        yield
        for error in self.errors:
            raise error
        self.did.append("committed")


class Loop(PduLoop):
    """A loop that writes down what it is told, and by which thread."""

    def __init__(self, asking=()):
        super().__init__(SimpleNamespace(store=Store()))
        self.told, self.threads, self.asking = [], set(), dict(asking)

    def _all_works(self):
        return [work for works in self.asking.values() for work in works]

    def _asking(self, pdu):
        return self.asking.get(pdu, [])

    def _note(self, *words):
        self.threads.add(threading.get_ident())
        self.told.append(words)

    def _on_status(self, pdu, outlets):
        self._note("status", pdu, outlets)

    def _on_switched(self, pdu, outlet, before, after, seconds):
        self._note("switched", pdu, outlet, before, after, seconds)

    def _on_refused(self, pdu, outlet, error):
        self._note("refused", pdu, outlet, error)

    def _on_down(self, pdu, line, error):
        self._note("down", pdu, line, error)


class Line:
    """A line to a PDU that makes each of its listener's calls once."""

    def __init__(self, proxy, name, seconds, listener):
        self.made, self.listener, self.closed = (proxy, name, seconds), listener, 0

    def run(self):
        self.listener.on_wait("another has it")
        self.listener.on_status({"1": "off"})
        self.listener.on_switched("1", "off", "on", 0.5)
        self.listener.on_refused("2", "an error")
        self.listener.on_down(self, "its end")

    def close(self):
        self.closed += 1


@pytest.fixture
def loop(monkeypatch):
    monkeypatch.setattr(pdu_loop, "PduLine", Line)
    one = Loop()
    with ThreadPoolExecutor(2) as one._threads:
        yield one


def work(check=False):
    said = []
    return SimpleNamespace(change=SimpleNamespace(check=check), said=said, say=lambda *words: said.append(words))


def test_what_a_line_tells_is_handled_by_the_loop_with_its_pdus_name(loop):
    """Lost: which PDU it was; and a store that two threads write to at once."""
    waits = work()
    loop.asking = {"pdu-a": [waits]}
    loop._open_line("pdu-a")
    line = loop.lines["pdu-a"]
    assert line.made == (loop.proxy, "pdu-a", 90.0)
    loop._open_line("pdu-a")
    assert loop.lines == {"pdu-a": line}, "one session a PDU"
    loop._threads.shutdown()  # all six are posted, the end of its thread as well
    loop._turn()
    assert loop.told == [
        ("status", "pdu-a", {"1": "off"}),
        ("switched", "pdu-a", "1", "off", "on", 0.5),
        ("refused", "pdu-a", "2", "an error"),
        ("down", "pdu-a", line, "its end"),
    ]
    assert waits.said == [("wait", "another has it")]
    assert loop.threads == {threading.get_ident()}
    assert loop._inbox.empty()


def test_what_a_thread_raises_is_raised_in_the_loop(loop):
    """Lost: a fault of ours in a thread; the verb would wait for its end for ever."""
    loop._spawn(int, "x")
    with pytest.raises(ValueError, match="invalid literal"):
        loop._turn()


def test_what_follows_is_begun_once_all_of_a_turn_is_committed(loop):
    """Lost: what an outlet was switched for, to a process that is killed; and half of a proxy's time, to its disk."""
    did = loop.proxy.store.did

    def handle(number):
        did.append(f"writes {number}")
        loop._then(did.append, f"switches {number}")
        loop._spawn(did.append, f"thread of {number}")

    loop._post(handle, 1)
    loop._post(handle, 2)
    loop._turn()
    loop._threads.shutdown()
    switched = [one for one in did if not one.startswith("thread")]
    assert switched == ["begins", "writes 1", "writes 2", "committed", "switches 1", "switches 2"]
    assert {did.index(f"thread of {number}") > did.index("committed") for number in (1, 2)} == {True}
    loop._then(did.append, "between turns at once")
    assert did[-1] == "between turns at once"


def test_what_was_done_before_a_fault_is_committed_and_goes_on(loop):
    """Lost: boards that were written down as to be switched, and are not, for a fault with another one."""
    did = loop.proxy.store.did
    loop._post(loop._then, did.append, "switches 1")
    loop._post(int, "x")
    loop._post(did.append, "the next turn's")
    with pytest.raises(ValueError, match="invalid literal"):
        loop._turn()
    assert did == ["begins", "committed", "switches 1"]
    loop._turn()
    assert did[3:] == ["begins", "the next turn's", "committed"]


def test_nothing_is_switched_of_which_nothing_could_be_written_down(loop):
    """Lost: a board that was switched, and of which a node with a full disk knows nothing."""
    store = loop.proxy.store
    store.errors = [OSError("no space left")]
    loop._post(loop._then, store.did.append, "switches 1")
    with pytest.raises(OSError, match="no space left"):
        loop._turn()
    assert store.did == ["begins"]


def test_a_turn_is_no_longer_than_others_may_wait_for_theirs(loop, monkeypatch):
    """Lost: seconds of every other play, while a rack of boards boots."""
    monkeypatch.setattr(pdu_loop, "AT_ONCE", 3)
    for number in range(5):
        loop._post(loop._note, number)
    loop._turn()
    assert loop.told == [(0,), (1,), (2,)]
    monkeypatch.setattr(pdu_loop, "LONGEST_TURN", 0.0)
    loop._turn()
    assert loop.told == [(0,), (1,), (2,), (3,)]


class Work:
    """A work that is over at a turn; counts the looks at it."""

    def __init__(self):
        self.over, self.looks, self.pdu = False, 0, "pdu-a"

    def look_if_over(self):
        self.looks += 1


def end(work):
    work.over = True


def test_turns_are_taken_until_all_is_over(loop):
    """Lost: a board whose work is over, for another verb that waits for its lock; or a loop without an end."""
    works = [Work(), Work(), Work()]
    for work in works:
        loop._post(end, work)
    loop._take_turns(iter(works))
    assert [work.over for work in works] == [True] * 3
    assert loop._inbox.empty()
    loop._take_turns([])


def test_all_boards_are_not_looked_at_after_each_turn(loop, monkeypatch):
    """Lost: most of a proxy's time, with four thousand boards of which each tells a dozen things."""
    monkeypatch.setattr(pdu_loop, "SELDOM", 1e9)
    monkeypatch.setattr(pdu_loop, "AT_ONCE", 1)
    works, turns = [Work(), Work()], []
    real = loop._turn

    def turn(most=None):
        turns.append(most)
        if len(turns) == 20:
            monkeypatch.setattr(pdu_loop.Deadline, "passed", True)
        real(most)

    monkeypatch.setattr(loop, "_turn", turn)
    for number in range(18):
        loop._post(loop._note, number)
    for work in works:
        loop._post(end, work)
    loop._take_turns(works)
    assert turns[0] is None, "while nothing is told nothing is looked at"
    assert (len(turns), [work.looks for work in works]) == (20, [2, 2])


def test_a_turn_without_news_ends(loop):
    """Lost: the look at boards whose work was ended by the last thing that was told."""
    loop._turn(0.01)
    assert loop.proxy.store.did == []


def test_a_line_is_closed_where_no_board_asks_any_more(loop):
    """Lost: the PDU's one place, for everybody, while other boards boot; or the line of a board that still needs it."""
    for name in ("pdu-a", "pdu-b"):
        loop._open_line(name)
    lines = dict(loop.lines)
    loop.asking = {"pdu-b": [work()]}
    loop._close_lines()
    assert loop.lines == {"pdu-b": lines["pdu-b"]}
    assert (lines["pdu-a"].closed, lines["pdu-b"].closed) == (1, 0)


def test_who_only_asks_what_would_be_done_hears_of_no_wait(loop):
    """Lost: a dry run that changes nothing; a wait is written down with the board."""
    waits, checks = work(), work(check=True)
    loop.asking = {"pdu-a": [checks, waits]}
    loop._on_wait("pdu-a", "another has it")
    assert (checks.said, waits.said) == ([], [("wait", "another has it")])
