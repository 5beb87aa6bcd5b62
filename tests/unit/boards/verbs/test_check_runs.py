# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of several boards. If these fail, one board's check keeps those of others, or its end is told of another."""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import check_runs
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.checks import CheckRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.tests.unit.boards.disk.conftest import disks, own_mounts

__all__ = ["disks", "own_mounts"]


def played(proxy, board, request):
    """A check that fails on board 1, and on board 3 ends its process."""
    if board == 3:
        os._exit(3)
    failed = board == 1
    error = "board1 failed: ram" if failed else None
    said = dict(instance=None, node=f"board{board}", phase="check", text="tested", seconds=None)
    return dict(
        board=board, name=f"board{board}", changed=True, failed=failed, error=error, tests=[], lines=[said],
        wanted_by=None,
    )  # fmt: skip


@pytest.mark.parametrize("at_once", [1, 8])
def test_each_board_has_its_own_end(disks, monkeypatch, at_once):
    """Lost: all checks of a night, to the one board that kills its process."""
    monkeypatch.setattr(check_runs.checks, "check", played)
    result = check_runs.check(disks.params, [], CheckRequest(), at_once)
    assert [(one["board"], one["failed"]) for one in result["boards"]] == [(0, False), (1, True), (2, False), (3, True)]
    assert [one["node"] for one in result["lines"]] == ["board0", "board1", "board2"]
    assert "board1 failed: ram; board3: work inside it ended without an answer" in result["msg"]
    two = check_runs.check(disks.params, [2, 0], CheckRequest(), at_once)
    assert ([one["board"] for one in two["boards"]], two["changed"], two.get("failed")) == ([2, 0], True, None)


def test_only_idle_boards_are_taken_by_themselves(disks, monkeypatch):
    """Lost: the work of who has the others."""
    monkeypatch.setattr(check_runs.checks, "check", played)
    disks.claim(1, 3)
    result = check_runs.check(disks.params, [], CheckRequest())
    assert [one["board"] for one in result["boards"]] == [0, 2]
    assert result["not_checked"] == {"board1": "vm1 of jo has it", "board3": "vm3 of jo has it"}
    disks.claim(0, 2)
    none = check_runs.check(disks.params, [], CheckRequest())
    assert (none["boards"], none["changed"]) == ([], False)
    assert none["lines"][0]["text"].startswith("no board can be checked: board0: vm0 of jo has it; board1: ")
    why = {f"board{number}": "no RAM image" if number < 9 else f"vm{number} has it" for number in range(16)}
    monkeypatch.setattr(check_runs.checks, "idle", lambda _proxy: ([], why))
    (line,) = check_runs.check(disks.params, [], CheckRequest())["lines"]
    others = "; ".join(f"board{number}: vm{number} has it" for number in range(9, 13))
    assert line["text"] == f"no board can be checked: 9 boards: no RAM image; {others}; 3 more"
    with disks.proxy() as proxy, pytest.raises(BadInput, match="names a board twice"):
        check_runs.ids_of(proxy, [1, 1])
