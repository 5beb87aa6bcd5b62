# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a row of the table of boards says. Copies of the database are judged by it too (tables.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

from ...claims.record_files import sound
from ...site import board_states
from .board_health import FULL

if TYPE_CHECKING:
    import sqlite3


def read_board(row: sqlite3.Row | Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a board's row. A time or score that is none is not known, and ends no verb.

    :raises ValueError: its state, outlet or note, by which it is somebody's, is nothing that we write; says which in
        words, with {board} for the board.
    """
    if row["state"] not in board_states.TRANSITIONS:
        raise ValueError("{board} is in no state of ours there")
    if row["power"] not in (None, "on", "off") or not isinstance(row["note"], str):
        raise ValueError("what it says of the outlet or the note of {board} cannot be read")
    score = row["score"]
    is_score = isinstance(score, int) and 0 <= score <= FULL
    times = {name: sound(row[name]) for name in ("since", "power_seen")}
    return dict(times, state=row["state"], power=row["power"], note=row["note"], score=score if is_score else FULL)
