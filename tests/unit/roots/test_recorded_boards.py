# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has a board by the records of claims. If these fail, a board on which an instance runs is switched off, given to
another one, or has its root removed, after the proxy's database was put back from before a move.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.recorded_boards import (
    is_recorded,
    of_its_record,
)


def claim(instance, board, created=5.0):
    one = SimpleNamespace(instance=instance, board=board, created=created)
    one.is_same = lambda other: (other.instance, other.created) == (instance, created)
    return one


def node(own=None, elsewhere=(), ended=()):
    """A proxy node of board 1's own record and of records that a person has put elsewhere."""

    def kept(board):
        if own == "damaged":
            raise HeteroError("what it says of a claim cannot be read", "/claims/board1.json", "correct it")
        return SimpleNamespace(claim=own) if own and own.board == board else None

    own_ones = [own] if own and own != "damaged" else []
    records = [("path", SimpleNamespace(claim=one)) for one in (*own_ones, *elsewhere)]
    store = SimpleNamespace(kept=kept, kept_anywhere=lambda: records, has_ended=lambda one: one.instance in ended)
    return SimpleNamespace(store=store)


EVE = claim("eve", 0)
HERS = claim("eve", 1)


@pytest.mark.parametrize("given", [dict(own=HERS), dict(elsewhere=[HERS])])
def test_a_claim_has_the_board_that_its_record_names_wherever_that_lies(given):
    """Lost: the root from which eve's board runs, to a person who put its record aside, or to a new root beside it."""
    proxy = node(**given)
    assert is_recorded(proxy, 1)
    assert not is_recorded(proxy, 0)
    said = str(of_its_record(proxy, 1, EVE, "eve"))
    assert said.startswith("eve: board1 is eve's by the record of its claim, though the database has it on board0: ")


def test_a_claim_of_whose_board_no_record_tells_may_have_another():
    """Lost: the same, where the record that a move wrote is gone, and the one before was removed by that move."""
    later = claim("eve", 0, created=6.0)
    said = str(of_its_record(node(own=HERS), 1, later, "eve"))
    assert said.startswith("eve: board1 may be eve's since a move: its root lies there, and that it has board0 says ")
    assert of_its_record(node(own=HERS, elsewhere=[later]), 1, later, "eve") is None


def test_what_cannot_be_read_may_be_anybodys():
    """Lost: the same, to a damaged record."""
    assert is_recorded(node("damaged"), 1)
    said = str(of_its_record(node("damaged", elsewhere=[EVE]), 1, EVE, "eve"))
    assert said == "eve: /claims/board1.json: what it says of a claim cannot be read: correct it"


def test_a_copy_of_a_record_of_a_claim_that_ended_keeps_no_board():
    """Lost: a board that is kept for nobody, for good, by a copy that a person has left in the folder."""
    assert not is_recorded(node(elsewhere=[HERS], ended=["eve"]), 1)
    assert not is_recorded(node(), 1)
    assert is_recorded(node(own=HERS, ended=["eve"]), 1), "its own record is believed whatever else says"
