# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reconcile asks of all boards, and its result. Whole nodes are in verbs/test_reconcile.py.

Tests boards/verbs/reconciliation.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.presence import SILENT
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.looks import Look, Seen, name_drivers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import held_by, lock
from ansible_collections.hetero.compute.tests.unit.boards.nodes import claimed


@pytest.fixture
def proxy(node):
    with node.proxy() as opened:
        yield opened


def look_at(proxy, board=0, power="on", ssh=None, check=False, alive=()):
    """A look at a board that answers at the looks in `alive`."""
    looks = []
    look = Look(Seen(proxy, proxy.boards[board], Change(check)))
    look.work.read()
    look.begin()
    look.power, look.ssh = power, ssh
    look.work.driver = SimpleNamespace(alive=lambda board, limit: looks.append(limit) or len(looks) in alive)
    return look


# ---- all of them


def test_outlets_are_asked_and_written_down(node, proxy):
    """Lost: what an outlet says, by which a board is given back; or that nobody knows."""
    node.outlets(board1="on")
    looks = [look_at(proxy, board, power="x") for board in (0, 1)]
    reconciliation._ask_outlets(proxy, looks, Deadline(5))
    assert [(look.power, look.unseen, look.found) for look in looks] == [("off", False, []), ("on", False, [])]
    assert [proxy.store.record(board).power for board in (0, 1, 2)] == ["off", "on", None]
    (node.folder / "pdu-a.json").unlink()
    reconciliation._ask_outlets(proxy, looks, Deadline(5))
    assert [(look.power, look.unseen) for look in looks] == [(None, True), (None, True)]
    assert looks[0].found[0]["found"].startswith("its outlet is not known, so it is left as it is: ")


def test_who_answers_is_asked_where_there_is_a_key(node, proxy, monkeypatch):
    """Lost: who is on a board; or the time of a look at each that nobody has."""
    claimed(proxy, "lab", (0, 1))
    proxy.store.put("lab-1", host_key="ssh-ed25519 H")
    monkeypatch.setattr(reconciliation, "_answer", lambda look: f"answer of {look.work.board.name}")
    looks = [look_at(proxy, board) for board in (0, 1, 2)]
    name_drivers(proxy, looks)
    reconciliation._ask_boards(proxy, looks)
    assert [look.ssh for look in looks] == ["answer of board0", None, None]
    assert [look.work.driver.name for look in looks] == ["fake"] * 3


@pytest.mark.parametrize(
    ("power", "alive", "asked"), [("off", (), False), ("off", (2,), True), ("on", (), True), (None, (), True)]
)
def test_a_board_without_power_is_asked_only_where_something_answers(proxy, monkeypatch, power, alive, asked):
    """Lost: seconds for each board that is off; or a machine that another outlet feeds."""
    patience = []
    monkeypatch.setattr(reconciliation.presence, "strain", lambda: 2.0)
    monkeypatch.setattr(
        reconciliation.presence, "look", lambda work, over, limit: patience.append((over.is_set(), limit)) or SILENT
    )
    assert reconciliation._answer(look_at(proxy, power=power, alive=alive)) == (SILENT if asked else None)
    assert patience == ([(False, 12.0)] if asked else [])


def test_the_whole_result(node, proxy, monkeypatch):
    """Lost: what was found of each board, for who shows it or goes on by it."""
    node.outlets(board1="on")
    node.config["boards"]["2"]["outlet"] = "9"
    held = []
    real = reconciliation._ask_outlets
    monkeypatch.setattr(
        reconciliation,
        "_ask_outlets",
        lambda *words: held.append(held_by(str(node.run_folder), "board0")) or real(*words),
    )
    with node.proxy() as again:
        claimed(again, boards=[0], made=False)
        with lock(str(node.run_folder), "board2", "start", "jo", Deadline(5)):
            result = reconciliation.reconcile(again, None, Change(), 0.2, forget=["nobody"], remove=["board7"])
        assert held[0].startswith("reconcile (")
        assert again.store.record(1).power == "off"
    assert [board["name"] for board in result["boards"]] == ["board0", "board1", "board2"]
    assert (result["others"], result["ended"], result["removed"], result["unseen"]) == ([], [], [], ["board2"])
    assert (result["kept"], result["gone"], result["not_adopted"], result["changed"]) == ([], [], [], True)
    assert {"outlets", "ssh", "mend"} <= set(result["seconds"])
    assert [(line["node"], line["text"]) for line in result["lines"] if line["phase"] == "reconcile"] == [
        ("board1", "its outlet is on, and nobody has it: off, cleaned, free")
    ]
    assert result["boards"][0]["found"] == [dict(found="claimed for jackie, not made ready yet", done=None)]


def test_a_look_at_some_boards_says_nothing_of_others(node, proxy):
    """Lost: claims of boards that are gone, ended by a look at one that was asked for."""
    claimed(proxy, boards=[2])
    node.name_boards([0, 1])
    with node.proxy() as again:
        given = dict(forget=["jackie"], remove=["board2"])
        result = reconciliation.reconcile(again, [1], Change(), 5, **given)
        assert ([board["name"] for board in result["boards"]], result["changed"]) == (["board1"], False)
        assert (result["others"], result["ended"], result["removed"], result["kept"]) == ([], [], [], ["jackie"])
        dry = reconciliation.reconcile(again, None, Change(True), 5, **given)
        assert (dry["ended"], dry["changed"]) == (["jackie"], True)
        assert dry["others"] == ["claim of jackie (ann) on board2: would be ended"]


@pytest.mark.parametrize(("check", "done"), [(True, "would be removed"), (False, "removed")])
def test_what_was_removed_is_told_as_lines(check, done):
    """Lost: what an operator's word took away."""
    assert reconciliation._lines_of({"board7": ["a", "b"]}, Change(check)) == [
        dict(instance=None, node="board7", phase="reconcile", text=f"{done}: a; b", seconds=None)
    ]
