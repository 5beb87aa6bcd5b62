# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which boards that are kept for a move count as left. If these fail, the board that an instance moves to is cut and
cleaned under it, or nobody ever gets the board that it moved from.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import ended_moves
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states

THERE, LEFT = (note.format(name="jackie") for note in (board_states.GOES_THERE, board_states.LEFT))
CLAIM = SimpleNamespace(instance="jackie", board=1)
RECORD = SimpleNamespace(claim=SimpleNamespace(instance="jackie", board=0))


def record(note, state=board_states.SHUTTING_DOWN, claim=None):
    """What the database says of the board that is kept."""
    return SimpleNamespace(board=0, state=state, note=note, claim=claim)


def proxy(state, kept=lambda board: None, elsewhere=()):
    """A proxy on which jackie has board 1 in this state; None where jackie has ended.

    :param kept: what it returns is the record of a claim in the place of the board that is kept.
    :param elsewhere: records of claims that lie elsewhere.
    """
    claims, boards = {"jackie": CLAIM} if state else {}, {1: SimpleNamespace(state=state)}
    store = SimpleNamespace(claim_of=claims.get, record=boards.__getitem__, kept=kept)
    store.kept_anywhere = lambda: [("path", one) for one in elsewhere]
    store.has_ended = lambda claim: False
    return SimpleNamespace(store=store)


def unreadable(_board):
    raise HeteroError("cannot be read", "board0.json")


@pytest.mark.parametrize(
    ("note", "state", "is_left"),
    [
        (LEFT, board_states.RUNNING, True),
        (LEFT, None, True),
        (THERE, None, True),
        # it runs where it was, and its next move goes on with this board
        (THERE, board_states.RUNNING, False),
        # it may need the way back
        *((LEFT, state, False) for state in board_states.TRANSITIONS if state != board_states.RUNNING),
        *((THERE, state, False) for state in board_states.TRANSITIONS),
    ],
)
def test_a_board_is_left_when_its_instance_runs_elsewhere_or_has_ended(note, state, is_left):
    """Lost: the way back of an instance that does not come up on its new board; or a board, for ever."""
    assert ended_moves.is_left(proxy(state), record(note)) is is_left


@pytest.mark.parametrize("given", [dict(kept=unreadable), dict(kept=lambda board: RECORD), dict(elsewhere=[RECORD])])
@pytest.mark.parametrize(("note", "state"), [(LEFT, board_states.RUNNING), (LEFT, None), (THERE, None)])
def test_a_board_that_may_be_somebodys_by_its_record_is_not_left(note, state, given):
    """Lost: the root of an instance that runs there by now, to a database that was put back from before that."""
    assert not ended_moves.is_left(proxy(state, **given), record(note))


@pytest.mark.parametrize(
    "board",
    [
        record(LEFT, claim=SimpleNamespace(instance="eve")),
        record(LEFT, board_states.MAINTENANCE),
        record(LEFT, board_states.RUNNING),
        record(None),
        record(""),
        record("it is kept for jackie"),
        record(board_states.CHECKING),
    ],
)
def test_a_board_that_is_not_kept_for_a_move_is_none_that_was_left(board):
    """Lost: the board of somebody else, of an operator, or of a check, to the end of a move of another one."""
    assert not ended_moves.is_left(proxy(None), board)


def test_what_is_found_names_the_instance():
    """Lost: whose root may have been on the board that reconcile frees."""
    assert ended_moves.told(record(THERE)) == ended_moves.told(record(LEFT))
    assert ended_moves.told(record(LEFT)) == "it was kept for jackie, which needs it no more"
