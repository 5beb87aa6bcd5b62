# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom a board's root is made for, and when not, case by case. Whole roots are in tests/unit/roots."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.image import board_images
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused

BOARD = SimpleNamespace(id=0, name="board0")
EVE = SimpleNamespace(instance="eve")
EVES = board_images.Tenant("eve", (5.0,))


@pytest.mark.parametrize(
    ("power", "state", "why"),
    [
        ("on", "booting", "its outlet was last seen on"),
        ("on", "error", "its outlet was last seen on"),
        ("off", "error", "is in error: a note"),
        (None, "error", "is in error: a note"),
        ("off", "shutting down", None),
        (None, "power off", None),
    ],
)
def test_no_root_is_made_anew_under_a_board_that_may_be_on(power, state, why):
    """Lost: a root, made anew under a board that runs from the one before."""
    record = SimpleNamespace(power=power, state=state, note="a note")
    node = SimpleNamespace(store=SimpleNamespace(record=lambda board: record))
    if why is None:
        board_images._refuse_under_power(node, BOARD, EVE)
    else:
        with pytest.raises(Refused, match=f"board0: {why}, and eve is to get a new root there: stop it first"):
            board_images._refuse_under_power(node, BOARD, EVE)


@pytest.mark.parametrize(
    ("host_key", "key", "proves"), [("key", "own key", True), ("key", "none", False), (None, "own key", False)]
)
def test_a_board_that_proves_its_key(monkeypatch, host_key, key, proves):
    """Lost: a running board's root, taken for one that nobody uses."""
    work = SimpleNamespace(system=SimpleNamespace(host_key=host_key))
    monkeypatch.setattr(board_images, "OWN_KEY", "own key")
    monkeypatch.setattr(board_images, "BoardWork", lambda proxy, board, change: work)
    monkeypatch.setattr(board_images, "BootDrivers", lambda proxy: SimpleNamespace(of=lambda board: "driver"))
    monkeypatch.setattr(board_images, "shown", lambda work: key)
    node = SimpleNamespace(store=SimpleNamespace(record=lambda board: "record"))
    assert board_images._proves(node, BOARD, Change()) is proves
    assert (work.record, work.driver) == ("record", "driver")


def test_the_claim_that_a_dry_run_would_have():
    """Lost: a dry run of a whole provision."""
    claim = board_images.dry_claim(BOARD, SimpleNamespace(name="debian"), "key")
    assert (claim.board, claim.instance, claim.request, claim.owner) == (0, "board0", "board0", "")
    assert (claim.flavor, claim.image, claim.ssh_public_key, claim.created) == ({}, "debian", "key", 0.0)


class Node:
    """A proxy with one board; `done` is what was written and reported."""

    def __init__(
        self, monkeypatch, state="shutting down", claim=EVE, there=(), kept=(), ran=False, own=True, life=None
    ):
        self.store, self.done, self.state, self.records = self, [], state, kept
        self.power, self.had, self.works, self.unread = "off", True, None, {}

        def side_by_side(proxy, ids, phase, one, change, deadline, tenant):
            assert (ids, phase, deadline, tenant) == ([0], "image", "soon", EVES)
            return one(BOARD, claim, lambda *said: self.done.append(said), change)

        def must_never_have_run(proxy, board, claim):
            if ran:
                raise Refused("ran")

        def outlet_power(proxy, boards, deadline):
            boards[0].update(power=None if self.unread else self.power)
            return self.unread

        monkeypatch.setattr(board_images, "side_by_side", side_by_side)
        monkeypatch.setattr(board_images, "outlet_power", outlet_power)
        monkeypatch.setattr(board_images, "must_never_have_run", must_never_have_run)
        monkeypatch.setattr(board_images, "remove", lambda proxy, board, change, report: list(there))
        monkeypatch.setattr(board_images, "bring_after", lambda *given: None)
        monkeypatch.setattr(board_images, "refuse_changed", lambda proxy, board: None)
        monkeypatch.setattr(board_images, "refuse_unproven", lambda proxy, board, claim: None)
        monkeypatch.setattr(board_images, "has_root", lambda proxy, board: "root" in there)
        monkeypatch.setattr(board_images, "sign_of_life", lambda proxy, board, deadline: life)
        monkeypatch.setattr(board_images, "is_of_nobody_else", lambda proxy, board, claim: own)

    def record(self, board):
        return SimpleNamespace(state=self.state, power=self.power, note="a note", claim=None)

    def kept(self, board):
        same = SimpleNamespace(is_same=lambda claim: True)
        return SimpleNamespace(state=self.works or "power off", is_somebodys=True, claim=same)

    def power_seen(self, board, power):
        assert power == self.power

    def had_power(self, claim):
        return self.had

    def keep_anew(self, board):
        self.done.append(("anew", board))

    def kept_boards(self):
        return self.records

    def named_in(self, board):
        return None


def absent(node, check=False, **more):
    change = Change(check)
    result = board_images.absent(node, [0], change, "soon", EVES, **more)
    assert result["changed"] == bool(result["removed"])
    return result["removed"], node.done, change.diff


def test_what_a_board_boots_from_is_removed(monkeypatch):
    """Lost: the record of a claim, before its root goes; or that it goes with the root of a board that nobody has."""
    assert absent(Node(monkeypatch, there=["root"])) == (["root"], [("anew", 0)], [])
    assert absent(Node(monkeypatch, there=["root"], own=False)) == (["root"], [], [])
    assert absent(Node(monkeypatch)) == ([], [("anew", 0)], [])
    assert absent(Node(monkeypatch, claim=None, kept=[1])) == ([], [], [])
    removed, done, diff = absent(Node(monkeypatch, claim=None, kept=[0], there=["root"]))
    assert (removed, done) == (["root", "the record of its claim"], [("anew", 0)])
    assert (diff[0]["before_header"], diff[0]["before"], diff[0]["after"]) == (
        "board0 record",
        {"present": True},
        {"present": False},
    )


@pytest.mark.parametrize(
    ("state", "tail"), [("running", ", once it is off"), ("booting", ", once it is off"), ("error", "")]
)
def test_a_dry_run_removes_nothing(monkeypatch, state, tail):
    said = ("image", f"export, root and files would be removed{tail}")
    assert absent(Node(monkeypatch, state, there=["root"]), check=True)[:2] == (["root"], [said])
    assert absent(Node(monkeypatch, state), check=True)[1] == []
    assert absent(Node(monkeypatch, state, claim=None, kept=[0]), check=True)[1] == [said]


def test_a_root_that_somebody_may_run_from_stays(monkeypatch):
    """Lost: the root of a running instance whose claim and record were lost, by an operator who cleans its board."""
    life = ("its outlet 1 of pdu-a is on", "switch it off")
    node = Node(monkeypatch, claim=None, there=["root"], life=life)
    with pytest.raises(Refused, match=r"its outlet 1 of pdu-a is on, and no claim of it is known.*stop it first"):
        absent(node)
    assert node.done == []
    assert absent(Node(monkeypatch, claim=None, life=life)) == ([], [], [])
    assert absent(Node(monkeypatch, there=["root"], life=life))[0] == ["root"], "a claim's own board was stopped before"


def test_what_is_in_use_is_not_removed(monkeypatch):
    """Lost: a running board's root, or that of an instance that ran."""
    for state in ("running", "booting"):
        with pytest.raises(Refused, match=f"board0: is {state} from it: stop it first"):
            absent(Node(monkeypatch, state))
    node = Node(monkeypatch, there=["root"])
    node.power = "on"
    with pytest.raises(Refused, match="board0: its outlet was last seen on, and it may run from it: stop it first"):
        absent(node)
    node.had = False
    assert absent(node)[0] == ["root"], "it is on for nobody"
    node.works = "booting"
    with pytest.raises(Refused, match="board0: its outlet was last seen on"):
        absent(node)
    node.power = "off"
    with pytest.raises(Refused, match="board0: it is booting by the record of its claim, and it may run from it"):
        absent(node)
    node.works, node.had, node.unread = None, True, {"pdu-a": "pdu-a: no answer"}
    with pytest.raises(Refused, match=r"board0: whether its outlet is off is not known \(pdu-a: no answer\), and"):
        absent(node)
    with pytest.raises(Refused, match="board0: whether its outlet is off is not known"):
        absent(node, never_ran=True)
    with pytest.raises(Refused, match="board0: is in error: a note, and it may run from it: stop it first"):
        absent(Node(monkeypatch, "error"))
    node = Node(monkeypatch, "error", there=["root"])
    assert absent(node, never_ran=True)[0] == ["root"], "one that never ran is told by its record and its outlet"
    node.works = "booting"
    with pytest.raises(Refused, match="board0: is in error: a note, and it may run from it"):
        absent(node, never_ran=True)
    with pytest.raises(Refused, match="ran"):
        absent(Node(monkeypatch, ran=True), never_ran=True)
    assert absent(Node(monkeypatch, ran=True, there=["root"]))[0] == ["root"]
