# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cabling check makes of what it sees, rule by rule. Whole checks: test_cabling.py."""

from __future__ import annotations

import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling import (
    cabling,
    findings,
    outlet_tests,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling.cabling import (
    Cabling,
    Finding,
    Options,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.driver import FIRMWARE, SYSTEM, TFTP
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.outlets import OutletsFailed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig, Wire

EVE = SimpleNamespace(instance="eve")


class Work:
    """BoardWork of board 0; what is said, recorded and done of it goes into `done`."""

    def __init__(self, done, number=0):
        self.board = SimpleNamespace(id=number, name=f"board{number}", mac=f"mac {number}")
        self.pdu, self.outlet, self.outlet_name = "pdu-a", "5", "pdu-a outlet 5"
        self.record = SimpleNamespace(claim=None, state="power off")
        self.done, self.lines, self.over, self.error = done, [f"line of {number}"], False, None

    def say(self, phase, text, seconds=None):
        self.done.append((phase, text) if seconds is None else (phase, text, seconds))

    def power_seen(self, power):
        self.done.append(("seen", power))

    def move(self, state, note):
        self.done.append(("move", state, note))


class Node:
    """A proxy with four boards: `claims` are those that somebody has, `left` those of which a root lies there."""

    actor = "me"

    def __init__(self, done):
        self.done, self.claims, self.left, self.events = done, {}, {}, []
        self.store = self
        self.boards = {number: Work(done, number).board for number in range(4)}
        self.config = ProxyConfig(run_folder="/run")

    def wiring(self, board):
        return Wire()

    def board(self, number):
        return self.boards[number]

    def record(self, number):
        return SimpleNamespace(claim=self.claims.get(number))

    def records(self, numbers):
        return {number: self.record(number) for number in numbers}

    def event(self, *event):
        self.done.append(event)

    def newest_events(self, board, count):
        return self.events[-count:]

    def pdu(self, name):
        return {"driver": "x"}, {"secret": "y"}


@pytest.fixture(autouse=True)
def nobodys(monkeypatch):
    """No outlet was another's (test_cabling_held.py)."""
    feeds = SimpleNamespace(held_by=lambda board: None, unknown=lambda board: {})
    monkeypatch.setattr(outlet_tests, "Feeds", lambda node: feeds)


@pytest.fixture
def done():
    return []


@pytest.fixture
def node(done, monkeypatch):
    node = Node(done)
    drivers = SimpleNamespace(**dict.fromkeys(("of", "to_look", "to_watch"), lambda board: node))
    monkeypatch.setattr(outlet_tests, "BootDrivers", lambda proxy: drivers)
    monkeypatch.setattr(outlet_tests, "left_by", lambda proxy, board, record: node.left.get(board.id))
    monkeypatch.setattr(outlet_tests, "told_if_served", lambda proxy, board: None)
    node.switched = lambda board, state: done.append(("told", board.id, state))
    return node


def cable(node, done, **options):
    check = Cabling(node, [Work(done)], Options(**dict({"timeout": 20.0}, **options)))
    return check, check.findings[0]


def test_how_long_a_check_may_take():
    """Lost: a check of many boards, ended in its middle with an outlet on."""
    assert Options(10.0).limit(3) == 3 * 41.0 + cabling.PDU
    assert Options(10.0).check is False


@pytest.mark.parametrize(
    ("requests", "came"),
    [
        ({0: {TFTP: 3.0, SYSTEM: 2.0}}, {0: 2.0}),
        ({0: {SYSTEM: 2.0}, 2: {FIRMWARE: 4.0}}, {0: 2.0, 2: 4.0}),
        ({0: {TFTP: 2.0}}, {0: 2.0}),
        ({1: {TFTP: 1.0}}, {}),
        ({1: {SYSTEM: 1.0}, 3: {TFTP: 1.0}}, {}),
        ({1: {FIRMWARE: 1.0, TFTP: 2.0}}, {1: 1.0}),
        ({}, {}),
    ],
)
def test_who_came_up(node, done, requests, came):
    """Lost: the trust in a check. A tenant's machine that renews its address was not switched on by it."""
    node.claims, node.left = {1: EVE}, {3: "has the root of bob"}
    check, _finding = cable(node, done)
    asked = []

    def wait(deadline, enough):
        asked.append((deadline.seconds, bool(enough(requests))))
        return requests

    check.seen = SimpleNamespace(wait=wait)
    assert check._busy() == {1, 3}
    assert check._requests(Deadline(20.0)) == came
    # others may come up after the first; where somebody's does, nobody waits
    first = (20.0, bool(came))
    assert asked == ([first, (outlet_tests.SETTLE, False)] if came and 1 not in came else [first])
    assert outlet_tests.SETTLE == 1.0


@pytest.mark.parametrize(
    ("requests", "consoles", "verdict", "found", "text"),
    [
        ({0: 12.5}, [], "right", [0], "pdu-a outlet 5 feeds it: boot request after 2.5 s"),
        ({0: 9.0}, [1], "right", [0], "pdu-a outlet 5 feeds it: boot request after 0.0 s"),
        ({2: 11.0}, [], "other", [2], "pdu-a outlet 5 feeds board2 (mac 2), not this board: boot request after 1.0 s"),
        ({3: 12.0, 0: 11.0}, [], "several", [0, 3], "pdu-a outlet 5 feeds board0 and board3: boot request after 1.0 s"),
        ({}, [0], "right", [0], "pdu-a outlet 5 feeds it: no boot request, but its console's log grew"),
        ({}, [2, 0], "several", [2, 0], "pdu-a outlet 5 feeds board2 and board0: no boot request, but its console's"),
        ({}, [], "nothing", [], "pdu-a outlet 5 feeds nothing that boots: no boot request within 20 s"),
        ({1: 11.0}, [], "unsure", [1], "board1 (eve) asked to boot meanwhile"),
        ({0: 11.0, 1: 11.0}, [], "unsure", [0, 1], "board0 and board1 (eve) asked to boot meanwhile"),
        ({1: 11.0, 3: 11.0}, [], "unsure", [1, 3], "board1 and board3 (eve, bob) asked to boot meanwhile"),
    ],
)
def test_what_an_outlet_feeds(node, done, requests, consoles, verdict, found, text):
    """Lost: the truth of a wiring, by which boards are cut."""
    node.claims = {1: EVE, 3: SimpleNamespace(instance="bob")} if verdict == "unsure" else {1: EVE}
    check, finding = cable(node, done)
    check._judge(finding, requests, consoles, 10.0, 3.21)
    assert (finding.verdict, finding.found, finding.seconds) == (verdict, found, 3.21)
    assert finding.text.startswith(text)
    assert done == [("cabling", finding.text, 3.21)]


def test_an_outlet_is_looked_at_on_and_then_off(node, done, monkeypatch):
    """Lost: an outlet that is left on, or that it is not known who switched it."""
    check, finding = cable(node, done)
    node.claims = {1: EVE}
    check.seen = SimpleNamespace(begin=lambda: done.append("begin"), consoles=lambda: [0, 1, 2])
    monkeypatch.setattr(check, "_switch", lambda work, state: done.append(state))
    monkeypatch.setattr(check, "_requests", lambda deadline: done.append(deadline.seconds) or {})
    monkeypatch.setattr(check, "_judge", lambda *given: done.append(given[1:3]) or took.append(given[4]))
    took, begun = [], time.monotonic()
    check._look(finding)
    assert 0 <= took[0] <= time.monotonic() - begun
    assert done == [
        "begin",
        (0, "switch", "pdu-a outlet 5 is to be switched on for the cabling check"),
        "on",
        ("cabling", "pdu-a outlet 5: on, read back; who asks to boot?"),
        20.0,
        "off",
        (0, "switch", "pdu-a outlet 5 was switched off again"),
        ({}, [0, 2]),
    ]


def test_an_outlet_that_stays_on_costs_its_board(node, done, monkeypatch):
    """Lost: a board that is given to somebody while its outlet is on."""
    check, finding = cable(node, done)

    def switch(work, state):
        raise HeteroError("still on")

    monkeypatch.setattr(check, "_switch", switch)
    with pytest.raises(HeteroError, match="still on"):
        check._off_again(finding.work)
    assert done == [("move", "error", "perhaps left on by the cabling check: still on")]


@pytest.mark.parametrize(
    ("before", "ours", "dry", "verdict", "does"),
    [
        ("off", False, False, "not tested yet", ["look"]),
        ("on", True, False, "not tested yet", ["off", "look"]),
        ("on", False, False, "on", []),
        ("on", False, True, "on", []),
        ("off", False, True, "not tested yet", []),
        ("on", True, True, "not tested yet", []),
    ],
)
@pytest.mark.parametrize("state", ["power off", "error"])
def test_what_is_switched(node, done, monkeypatch, state, before, ours, dry, verdict, does):
    """Lost: whatever an outlet feeds that is on, cut without a question; or a dry run that switches."""
    check, finding = cable(node, done, check=dry)
    finding.work.record.state = state
    monkeypatch.setattr(check, "_status", lambda work: before)
    monkeypatch.setattr(check, "_ours", lambda work: ours)
    monkeypatch.setattr(check, "_switch", lambda work, to: done.append(to))
    monkeypatch.setattr(check, "_look", lambda one: done.append("look"))
    check._test(finding)
    assert finding.verdict == verdict
    assert [one for one in done if isinstance(one, str)] == does
    assert bool(finding.text) == (not does)


@pytest.mark.parametrize(
    ("claim", "state", "left", "why"),
    [
        (EVE, "power off", None, "claimed for eve"),
        (None, "running", None, "running"),
        (None, "maintenance", None, "maintenance"),
        (None, "power off", "has the root of bob", "has the root of bob"),
    ],
)
def test_a_board_that_is_somebodys_is_not_touched(node, done, claim, state, left, why):
    """Lost: a tenant's machine, for a test."""
    check, finding = cable(node, done)
    finding.work.record = SimpleNamespace(
        claim=claim and SimpleNamespace(instance="eve", created=1.0), state=state, note="", since=1.0
    )
    node.left = {0: left}
    check._test(finding)
    assert (finding.verdict, finding.found) == ("skipped", [])
    assert finding.text.startswith(f"not tested: {why}")


@pytest.mark.parametrize(
    ("error", "down"),
    [
        (OutletsFailed({}, {"5": HeteroError("still off", "outlet 5")}, {}), False),
        (BadInput("has no outlet 5"), False),
        (HeteroError("is away", "pdu-a"), True),
    ],
)
def test_a_pdu_that_is_away_is_asked_once(node, done, monkeypatch, error, down):
    """Lost: minutes for each board of it; or all its boards, for one wrong number in the wiring."""
    check, finding = cable(node, done)

    def status(work):
        raise error

    monkeypatch.setattr(check, "_status", status)
    check._test(finding)
    assert (finding.verdict, finding.text) == ("failed", str(error))
    assert check._down == ({"pdu-a": error} if down else {})
    if down:
        with pytest.raises(HeteroError, match="is away"):
            check._session(finding.work)


@pytest.fixture
def pdu(done, monkeypatch):
    """A session with a PDU whose outlet 5 is on; how it was asked for goes into `done`."""

    @contextmanager
    def session(name, settings, secrets, deadline, run_folder, actor, tell):
        done.append((name, settings, secrets, deadline.seconds, run_folder, actor))
        if tell:
            tell("it is another's turn")
        yield SimpleNamespace(status=lambda: {"5": "on"})

    monkeypatch.setattr(outlet_tests, "session", session)
    monkeypatch.setattr(
        outlet_tests, "set_outlets", lambda pdu, wanted, deadline: done.append((wanted, deadline.seconds))
    )
    return ("pdu-a", {"driver": "x"}, {"secret": "y"}, cabling.PDU, "/run", "me")


def test_an_outlet_is_read_and_switched(node, done, pdu):
    """Lost: what an outlet was seen as, or that a played or real board got power."""
    check, finding = cable(node, done)
    assert check._status(finding.work) == "on"
    assert done == [pdu, ("wait", "it is another's turn"), ("seen", "on")]
    done.clear()
    check._switch(finding.work, "off")
    assert done == [
        pdu,
        ("wait", "it is another's turn"),
        ({"5": "off"}, cabling.PDU),
        ("seen", "off"),
        ("told", 0, "off"),
    ]
    done.clear()
    dry, finding = cable(node, done, check=True)
    assert dry._status(finding.work) == "on"
    assert done == [pdu, ("seen", "on")]
    finding.work.outlet = "6"
    with pytest.raises(BadInput, match="pdu-a has no outlet 6"):
        dry._status(finding.work)


def test_which_verdicts_are_failures():
    """Lost: that a wiring is wrong, for a play that goes on; or a play that ends for a board that is in use."""
    assert findings.WRONG == ("other", "several", "nothing", "on", "failed")
    assert [findings.RIGHT, findings.UNSURE, findings.SKIPPED, findings.UNTESTED] == [
        "right",
        "unsure",
        "skipped",
        "not tested yet",
    ]


@pytest.mark.parametrize("timeout", [0.99, 0, -1])
def test_what_cannot_be_asked_for(node, timeout):
    with pytest.raises(BadInput, match=f"timeout: is {timeout:g}: give at least 1 s"):
        cabling.check(node, [0], Options(timeout))
    with pytest.raises(BadInput, match="boards: names a board twice: name each once"):
        cabling.check(node, [0, 0], Options(1))


def test_what_a_check_comes_to(node, done, monkeypatch):
    """Lost: each board's verdict by its name, or the message of those that are wrong."""

    def run(check):
        right, other, on = check.findings
        right.verdict, right.found, right.text, right.seconds = "right", [0], "fine", 2.3456
        other.verdict, other.found, other.text, other.seconds = "other", [3], "feeds board3", 1.0
        on.verdict, on.text = "on", "is on"

    monkeypatch.setattr(Cabling, "run", run)
    monkeypatch.setattr(cabling, "BoardWork", lambda proxy, board, change: Work(done, board.id))
    result = cabling.check(node, [0, 1, 2], Options(1))
    assert result["boards"][0] == dict(
        board=0, name="board0", pdu="pdu-a", outlet="5", verdict="right", found=[0], text="fine", seconds=2.35
    )
    assert [(one["verdict"], one["seconds"]) for one in result["boards"]] == [
        ("right", 2.35),
        ("other", 1.0),
        ("on", None),
    ]
    assert (result["failed"], result["msg"]) == (True, "board1: feeds board3; board2: is on")
    assert result["wiring"] == {3: {"pdu": "pdu-a", "outlet": "5"}}
    assert result["lines"][:4] == [
        "line of 0",
        "line of 1",
        "line of 2",
        "2 of 3 boards tested: 2 not as the wiring says",
    ]
    assert list(result["seconds"]) == ["cabling"]
    monkeypatch.setattr(Cabling, "run", lambda check: None)
    fine = cabling.check(node, [0], Options(1))
    assert (fine["failed"], "msg" in fine, fine["boards"][0]["verdict"]) == (False, False, "not tested yet")
    assert Finding(None).found == []


@pytest.mark.parametrize("dry", [True, False])
def test_each_board_is_tested_under_its_lock(node, done, monkeypatch, dry):
    """Lost: a board that a claim has just got, for nobody held its lock; or a dry run that listens for packets."""

    @contextmanager
    def locked(works, verb, deadline):
        done.append(("lock", works[0].board.id, verb, deadline.seconds))
        yield

    @contextmanager
    def watch(boards, seen):
        done.append(("watch", [board.id for board in boards], seen))
        yield

    node.watch = watch

    @contextmanager
    def lock(folder, name, verb, actor, deadline, waiting):
        done.append(("turn", folder, name, verb, actor, deadline.seconds))
        yield

    monkeypatch.setattr(cabling, "locked", locked)
    monkeypatch.setattr(outlet_tests, "lock", lock)
    check = Cabling(node, [Work(done), Work(done, 1)], Options(1, dry))
    check.findings[1].work.over, check.findings[1].work.error = True, "busy"
    monkeypatch.setattr(check, "_test", lambda finding: done.append("test"))
    check.run()
    turn = ("turn", "/run", "cabling", "cabling", "me", cabling.PDU)
    watched = [] if dry else [turn, ("watch", [0, 1, 2, 3], check.seen.request)]
    locks = [("lock", number, "cabling", cabling.PDU) for number in range(2)]
    assert done == [*watched, locks[0], "test", locks[1], ("cabling", "busy")]
    assert check.findings[1].verdict == "failed"
