# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A move to another board, one step by itself. Whole moves are in verbs/test_migrated.py.

Tests boards/verbs/migration.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import migration
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.migration import Migration
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states


@dataclass(frozen=True)
class Claim:
    instance: str = "jackie"
    board: int = 0

    def is_same(self, other):
        return self == other


@pytest.mark.parametrize("note", ["its fan rattles", board_states.GOES_THERE.format(name="eve"), ""])
def test_a_board_that_is_not_kept_any_more_is_not_taken(note):
    """Lost: the board of who got it since, or an operator's hand in it, to a move that found it free before."""
    records = {
        0: SimpleNamespace(claim=Claim(), state="shutting down", note=""),
        1: SimpleNamespace(claim=None, state="error", note=note),
    }
    changed = []
    store = SimpleNamespace(record=records.get, move=lambda *given: changed.append(given), has_run=lambda claim: True)
    old, new = (SimpleNamespace(board=SimpleNamespace(id=number, name=f"board{number}")) for number in records)
    move = Migration(SimpleNamespace(store=store), Claim(), SimpleNamespace())
    with pytest.raises(Refused, match=r"board1: .*it is not kept any more"):
        move._give(Claim(), old, new)
    assert changed == []


def test_a_board_that_another_got_is_not_switched_off_for_a_root_that_was_left(monkeypatch):
    """Lost: the running board of who got it while a move that was killed is taken up, and waited for its lock."""
    ended = []
    monkeypatch.setattr(migration, "switch_off", lambda proxy, works, options: ended.append(works))
    monkeypatch.setattr(migration, "replace", lambda options, **more: options)
    old, new = (SimpleNamespace(board=SimpleNamespace(name=f"board{number}"), failed=True) for number in (0, 1))
    old.claim = Claim("eve")
    move = Migration(SimpleNamespace(), Claim(board=1), SimpleNamespace())
    with pytest.raises(Refused, match=r"board0: was claimed for eve meanwhile"):
        move._bring_left(old, new)
    assert ended == []
    old.claim = None
    move._bring_left(old, new)
    assert ended == [[old]]
