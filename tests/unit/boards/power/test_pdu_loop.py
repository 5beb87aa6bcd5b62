# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One loop for all boards of a call: what its threads post, and the lines that it opens and closes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.pdu_loop import PduLoop


class Loop(PduLoop):
    """A loop that writes down what it is told, and by which thread."""

    def __init__(self, asking=()):
        super().__init__("the proxy")
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
    assert line.made == ("the proxy", "pdu-a", 90.0)
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
