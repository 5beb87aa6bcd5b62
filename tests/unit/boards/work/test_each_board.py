# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done to each board of a request by itself, and whose boards are meant."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import each_board
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import held_by, lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import printable
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import owners
from ansible_collections.hetero.compute.tests.unit.boards.nodes import claimed


def test_each_board_has_its_own_outcome(node):
    """Lost: what was done on a board beside one that failed, why that failed, or the lock that keeps others away."""
    held, change = [], Change()

    def one(board, claim, report, change):
        held.append(held_by(str(node.run_folder), board.name))
        report("step", "looked at", 1.23456)
        if board.id != 1:
            raise HeteroError("is hot", board.name, "cool it", fan=board.id)
        report("step", "cool")
        return dict(changed=True, owner=claim.owner)

    with node.proxy() as proxy:
        claimed(proxy, "lab", range(3))
        result = each_board.each(proxy, [0, 1, 2], "test", one, change, Deadline(5))
        lines = result["lines"]
        events = [(one.instance, one.text, one.seconds) for one in proxy.store.events() if one.phase == "step"]
    assert [text.split(" (test, pid ")[0] for text in held] == ["test", "test", "test"]
    why = [dict(fan=number, what="is hot", thing=f"board{number}", remedy="cool it") for number in range(3)]
    of = [dict(board=number, name=f"board{number}", instance=f"lab-{number + 1}") for number in range(3)]
    assert result["boards"] == [
        dict(of[0], changed=False, failed=True, error="board0: is hot: cool it", failure=why[0]),
        dict(of[1], changed=True, failed=False, owner="ann"),
        dict(of[2], changed=False, failed=True, error="board2: is hot: cool it", failure=why[2]),
    ]
    assert (result["failed"], result["msg"]) == (True, "board0: is hot: cool it; board2: is hot: cool it")
    assert (result["changed"], result["diff"]) == (False, [])
    said = [("board0", "looked at", 1.235), ("board1", "looked at", 1.235), ("board1", "cool", None)]
    said += [("board2", "looked at", 1.235)]
    assert lines == [
        dict(instance=f"lab-{int(name[5:]) + 1}", node=name, phase="step", text=text, seconds=seconds)
        for name, text, seconds in said
    ]
    assert events == [(line["instance"], line["text"], line["seconds"]) for line in lines]
    assert held_by(str(node.run_folder), "board0") is None


def test_boards_side_by_side_wait_for_no_other_one(node):
    """Lost: minutes of a request for many boards, whose roots were made one after another."""
    there = threading.Barrier(3)

    def one(board, claim, report, change):
        there.wait(60)  # broken where another one has not begun
        report("step", f"first of {board.name}")
        there.wait(60)
        if board.id == 1:
            raise HeteroError("is hot", board.name, "cool it")
        change.note(board.name, {"root": None}, {"root": "new"})
        report("step", f"then of {board.name}")
        return dict(changed=change.changed)

    change = Change()
    with node.proxy() as proxy:
        claimed(proxy, "lab", range(3))
        result = each_board.side_by_side(proxy, [2, 0, 1], "test", one, change, Deadline(100))
        assert held_by(str(node.run_folder), "board0") is None
    assert [(board["board"], board["changed"], board["failed"]) for board in result["boards"]] == [
        (2, True, False),
        (0, True, False),
        (1, False, True),
    ]
    said = [(line["node"], line["instance"], line["text"]) for line in result["lines"]]
    assert said == [
        ("board2", "lab-3", "first of board2"),
        ("board2", "lab-3", "then of board2"),
        ("board0", "lab-1", "first of board0"),
        ("board0", "lab-1", "then of board0"),
        ("board1", "lab-2", "first of board1"),
    ]
    assert [entry["before_header"] for entry in result["diff"]] == ["board2", "board0"]
    assert (result["changed"], change.changed, result["msg"]) == (True, True, "board1: is hot: cool it")


@pytest.mark.parametrize(("ids", "at_once", "most"), [([0], 8, []), ([0, 1, 2], 8, [3]), ([0, 1, 2], 2, [2])])
def test_no_more_boards_at_a_time_than_is_said(node, monkeypatch, ids, at_once, most):
    """Lost: the proxy's memory and disk, to a request for a rack whose roots were all made at once."""
    asked = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, workers):
            asked.append(workers)
            super().__init__(workers)

    monkeypatch.setattr(each_board, "AT_ONCE", at_once)
    monkeypatch.setattr(each_board, "ThreadPoolExecutor", Pool)
    with node.proxy() as proxy:
        result = each_board.side_by_side(proxy, ids, "test", lambda *given: {}, Change(check=True), Deadline(100))
    assert [board["board"] for board in result["boards"]] == ids
    assert asked == most


def test_who_waits_for_a_board_is_told_for_whom_and_how_long(node, monkeypatch):
    """Lost: why an extension, or a board's image, takes minutes: whose verb it waits for, and until when."""
    monkeypatch.setattr(each_board, "QUIET", 0.1)
    with node.proxy() as proxy, lock(str(node.run_folder), "board0", "wipe", "jo", Deadline(5)):
        claimed(proxy, "lab", range(2))
        result = each_board.each(proxy, [0, 1], "lease", lambda *given: {}, Change(), Deadline(0.4))
        events = [(one.board, one.instance, one.text) for one in proxy.store.events() if one.phase == "wait"]
    (line,) = result["lines"]
    assert (line["node"], line["instance"], line["phase"]) == ("board0", "lab-1", "wait")
    assert line["text"].startswith(f"held by wipe (jo, pid {os.getpid()}, since ")
    assert line["text"].endswith("; waited for until 0.4 s are over")
    assert events == [(0, "lab-1", line["text"])]
    assert [one["failed"] for one in result["boards"]] == [True, False]
    assert result["msg"].endswith(" after 0.4 s: wait for it, or end that process")


def test_a_dry_run_takes_no_lock_and_writes_nothing_down(node):
    """Lost: another's verb, which would wait for who only looks; or the truth of what happened to a board."""
    held = []

    def one(board, claim, report, change):
        held.append(held_by(str(node.run_folder), board.name))
        report("step", "would do it")
        return dict(claim=claim)

    with node.proxy() as proxy:
        result = each_board.each(proxy, ["1"], "test", one, Change(check=True), Deadline(5))
        assert proxy.store.events() == []
    assert held == [None]
    assert result["boards"] == [dict(board=1, name="board1", instance=None, changed=False, failed=False, claim=None)]
    assert [(line["instance"], line["text"]) for line in result["lines"]] == [(None, "would do it")]
    assert ("failed" in result, "msg" in result) == (False, False)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (dict(instance="bob"), "is not bob's any more"),
        (dict(created=(1.0,)), "claimed anew by ann"),
        (dict(instance="jackie"), None),
        (dict(), None),
    ],
)
def test_only_the_boards_that_were_meant(node, given, why):
    """Lost: the board of whoever got it since it was looked up."""
    done = []
    with node.proxy() as proxy:
        claimed(proxy)
        result = each_board.each(
            proxy,
            [0],
            "test",
            lambda *words: done.append(words) or {},
            Change(),
            Deadline(5),
            each_board.Tenant(**given),
        )
    assert (bool(done), bool(result.get("failed"))) == (why is None, why is not None)
    assert why is None or why in result["msg"]


def test_whose_an_instance_is(node):
    """Lost: somebody's instance, to who may not touch it; or an operator, who asks for nobody's by name."""
    with node.proxy() as proxy:
        (mine,) = claimed(proxy)
    owners.must_own(mine, None)
    owners.must_own(mine, "ann")
    with pytest.raises(Refused, match="jackie: belongs to ann: have ann do it"):
        owners.must_own(mine, "bob")


@pytest.mark.parametrize("own", ["ann\x1b[31m", "ann\u202e"])
def test_an_instance_of_an_owner_whom_nobody_can_type_is_ended_by_what_is_shown(node, own):
    """Lost: a board, for ever, whose owner's name holds a control character: force gives it as it is shown."""
    with node.proxy() as proxy:
        (mine,) = claimed(proxy)
    owners.must_own(replace(mine, owner=own), printable(own))
    with pytest.raises(Refused, match="belongs to"):
        owners.must_own(replace(mine, owner=own), "ann")


def test_which_boards_a_request_has(node):
    """Lost: an instance that nobody asked for by its number; or the word that a board is in no boards file."""
    with node.proxy() as proxy:
        claimed(proxy, "lab", (2, 0))
        claimed(proxy, "eve", (1,))
        assert each_board.ids_of(proxy, "lab") == [0, 2]
        assert each_board.ids_of(proxy, "lab", (1,)) == [2]
        assert each_board.ids_of(proxy, "lab-2") == [0]
        assert [claim.instance for claim in each_board.claims_of(proxy, "eve")] == ["eve"]
        with pytest.raises(Refused, match=r"lab: no such instance on .*hetero\.compute\.status"):
            each_board.claims_of(proxy, "lab", (3,))
        with pytest.raises(Refused, match="bob: no such instance on "):
            each_board.ids_of(proxy, "bob")
        with pytest.raises(HeteroError, match="is no instance name"):
            each_board.claims_of(proxy, "../x")
        del proxy.boards[2]
        with pytest.raises(Refused, match=r"lab-1: has board2, which is not in the boards file: .*-e forget=lab-1"):
            each_board.ids_of(proxy, "lab")
        assert each_board.ids_of(proxy, "lab", (2,)) == [0]


def test_who_lost_its_board_meanwhile_is_told_to_look_where_it_is(node):
    """Lost: `extend_instance` beside a move says that the instance is gone, and to ask for it anew; yet it runs."""
    with node.proxy() as proxy, pytest.raises(Refused) as error:
        each_board.Instances("jackie").must_have(proxy.board(1), None)
    assert error.value.what == "was left by jackie meanwhile, which ended, or moved to another board"
    assert (error.value.thing, error.value.remedy) == ("board1", "run this again, which looks up where jackie is")
