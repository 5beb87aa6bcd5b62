# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a board is taken out of use and comes back, rule by rule. Whole modules are in verbs/test_maintenance.py.

Tests boards/work/maintenance.py.
"""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence import free_boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import maintenance
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, Refused

BOARD = SimpleNamespace(id=0, name="board0")
EVE = SimpleNamespace(instance="eve", owner="jo")


class Report:
    """What each_board.Report does: `done` gets events, and lines that are only shown."""

    def __init__(self, done):
        self.done = done

    def __call__(self, phase, text):
        self.done.append((phase, text))

    def line(self, phase, text):
        self.done.append(("line", phase, text))


class Node:
    """A proxy with one board; `done` is what was written down."""

    def __init__(self, monkeypatch, state, note="", power="off", left=(), disks=(), errors=None, doubt=None):
        self.record_, self.store, self.done = SimpleNamespace(state=state, note=note, claim=None), self, []
        self.transaction = nullcontext
        self.wired = []

        def each(proxy, ids, verb, one, change, deadline):
            assert (proxy, verb, deadline) == (self, "maintenance", "soon")
            return one(BOARD, ids, Report(self.done), change)

        def outlet_power(proxy, boards, deadline):
            assert (boards, deadline) == ([{"id": 0}], "soon")
            boards[0]["power"] = power
            return errors or {}

        monkeypatch.setattr(maintenance, "each", each)
        monkeypatch.setattr(maintenance, "outlet_power", outlet_power)
        monkeypatch.setattr(maintenance, "unknown_tenant", lambda proxy, board: None)
        monkeypatch.setattr(maintenance, "served", lambda proxy, board: None)
        monkeypatch.setattr(free_boards, "served", lambda proxy, board: None)
        monkeypatch.setattr(maintenance, "leftovers", lambda proxy, board: list(left))
        monkeypatch.setattr(maintenance, "used", lambda proxy, board: list(disks))
        monkeypatch.setattr(maintenance, "Feeds", lambda proxy: SimpleNamespace(doubt=lambda board, claim: doubt))

    def record(self, board):
        return self.record_

    def out_of_use(self, board):
        return None

    def take_out(self, board):
        """Database and record say the same."""

    def move(self, *move):
        self.done.append(("move", *move))

    def power_seen(self, *seen):
        self.done.append(("power", *seen))

    def outlet(self, board):
        self.wired.append(board)
        return "pdu-a", "5"


def begin(node, claim=None, check=False):
    change = Change(check)
    return maintenance.begin(node, claim, "fan", change, "soon"), change.diff


def end(node, check=False):
    change = Change(check)
    return maintenance.end(node, None, change, "soon"), change.diff


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    ("state", "note", "changed"),
    [
        ("power off", "", True),
        ("error", "no boot", True),
        ("maintenance", "disk", True),
        ("maintenance", "fan", False),
    ],
)
def test_a_board_that_nobody_has_goes(monkeypatch, state, note, changed, check):
    """Lost: a broken board that is given out, or a dry run that takes one away."""
    node = Node(monkeypatch, state, note)
    result, diff = begin(node, check=check)
    assert result == dict(changed=changed, state="maintenance", note="fan")
    moved = [] if check else [("move", 0, "maintenance", "fan")]
    same = [("line", "maintenance", "on already: fan")]
    assert node.done == ([*moved, ("maintenance", "on: fan")] if changed else same)
    assert [(one["before"], one["after"]) for one in diff] == (
        [({"state": state, "note": note}, {"state": "maintenance", "note": "fan"})] if changed else []
    )
    assert all(one["before_header"] == "board0" for one in diff)


@pytest.mark.parametrize(
    ("state", "claim", "why"),
    [
        ("running", EVE, "is running, and eve of jo has it: once its owner agrees, ansible-playbook hetero"),
        ("power off", EVE, "is power off, and eve of jo has it"),
        ("booting", None, "is booting: repair it first"),
        ("running", None, "is running: repair it first"),
        ("shutting down", None, "is shutting down: repair it first"),
    ],
)
def test_one_that_is_somebodys_or_not_clean_stays(monkeypatch, state, claim, why):
    node = Node(monkeypatch, state)
    with pytest.raises(Refused, match=f"^board0: {why}"):
        begin(node, claim)
    assert node.done == []


@pytest.mark.parametrize("check", [True, False])
def test_one_that_is_off_and_clean_comes_back(monkeypatch, check):
    """Lost: a board that is free again, with its outlet looked at."""
    node = Node(monkeypatch, "maintenance", "fan")
    result, diff = end(node, check)
    assert result == dict(changed=True, state="power off", note="")
    moved = [] if check else [("power", 0, "off"), ("move", 0, "power off")]
    assert node.done == [*moved, ("maintenance", "off: its outlet is off, nothing is left on it")]
    assert [one["after"] for one in diff] == [{"state": "power off", "note": ""}]
    # before its PDU is asked: one that is not wired says so
    assert node.wired == [BOARD]


@pytest.mark.parametrize("state", ["power off", "error", "running"])
def test_one_that_is_not_in_maintenance_is_as_it_was(monkeypatch, state):
    """Lost: a board in error, called free; or that there was nothing to end."""
    node = Node(monkeypatch, state, left=["folder x"])
    assert end(node) == (dict(changed=False, state=state, note=""), [])
    ((what, _phase, text),) = node.done
    assert (what, text.partition(": ")[0]) == ("line", "off already")
    assert f"it is in state {state}" in text


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (dict(power="on"), "its outlet is on"),
        (dict(power=None, errors={"pdu-a": "pdu-a: is away"}), "its outlet is not known; pdu-a: is away"),
        (dict(left=["folder x"]), "folder x"),
        (dict(disks=["disk y"]), "disk y"),
        (dict(power="on", left=["folder x"], disks=["disk y"]), "its outlet is on; folder x; disk y"),
    ],
)
def test_what_keeps_it_out_of_use(monkeypatch, found, why):
    """Lost: an operator's own system on a board that is handed out, or the last tenant's files."""
    node = Node(monkeypatch, "maintenance", "fan", **found)
    with pytest.raises(Refused) as refused:
        end(node)
    assert refused.value.what == f"stays in maintenance: {why}"
    assert refused.value.remedy.startswith("switch pdu-a outlet 5 off (pdu_power), remove the rest (board_image")
    assert refused.value.remedy.endswith("board_wipe for its disks)")
    assert node.done == []


def test_an_outlet_that_feeds_another_is_not_to_be_switched_off(monkeypatch):
    """Lost: a tenant's power, by the very remedy that is printed."""

    class Doubt:
        remedy = "correct the wiring"

        def __str__(self):
            return "it feeds board1"

    with pytest.raises(Refused, match="board0: stays in maintenance: it feeds board1: correct the wiring"):
        end(Node(monkeypatch, "maintenance", "fan", power="on", doubt=Doubt()))
    # a doubt alone keeps nobody out: its outlet is off
    assert end(Node(monkeypatch, "maintenance", "fan", doubt=Doubt()))[0]["changed"]


def test_a_reason_that_no_record_keeps_is_refused():
    """Lost: all verbs of a node, to everybody: its answers have the reason, and no play takes a text of that length."""
    with pytest.raises(BadInput, match=r"^reason: has 4001 characters, and at most 4000 are kept: say it in fewer"):
        maintenance.begin(None, [0], "r" * 4001, Change(False), None)
