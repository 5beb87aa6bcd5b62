# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of the table of boards. If these fail, a board whose row is damaged is given to the next who asks, or a time
that cannot be read ends every verb.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.board_health import FULL
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.board_rows import read_board
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states

ROW = dict(state="running", power="on", note="", since=5.0, power_seen=6.0, score=FULL)


@pytest.mark.parametrize("state", sorted(board_states.TRANSITIONS))
@pytest.mark.parametrize("power", [None, "on", "off"])
def test_a_row_is_read_as_it_was_written(state, power):
    """Lost: the state of a board, or what its outlet was."""
    assert read_board(dict(ROW, state=state, power=power)) == dict(ROW, state=state, power=power)


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        *[("state", wrong, "{board} is in no state of ours there") for wrong in (None, "", "free", 5, "RUNNING")],
        *[("power", wrong, "what it says of the outlet or the note of {board}") for wrong in ("", "up", 1, True)],
        *[("note", wrong, "what it says of the outlet or the note of {board}") for wrong in (None, 5, b"x")],
    ],
)
def test_what_a_board_is_somebodys_by_must_be_read(column, value, why):
    """Lost: a tenant's board, to a row that says nothing of ours."""
    with pytest.raises(ValueError, match="board") as wrong:
        read_board(dict(ROW, **{column: value}))
    assert str(wrong.value).startswith(why)


@pytest.mark.parametrize("wrong", [None, "5", b"x", -1.0, float("nan"), float("inf")])
def test_a_time_or_score_that_cannot_be_read_ends_no_verb(wrong):
    """Lost: each verb of a proxy node, to a number in one row."""
    assert read_board(dict(ROW, since=wrong, power_seen=wrong)) == dict(ROW, since=None, power_seen=None)
    assert read_board(dict(ROW, score=wrong))["score"] == FULL
    assert read_board(dict(ROW, score=FULL + 1))["score"] == FULL
    assert read_board(dict(ROW, score=0))["score"] == 0
