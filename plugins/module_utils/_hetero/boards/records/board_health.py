# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often each board did what was asked of it: a row for each boot of a claim, each fault and each check.

A row says whether the board passed, and what failed. Whose fault a failure is, is decided where the row is written:
faults of the proxy, of the network and of images leave none. The score is made of the newest rows only, and lies in the
board's own row: claims and status of thousands of boards read no history.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Collection, Iterable, Mapping

from ...claims.record_files import LATEST, sound
from ...claims.store import ClaimsStore
from ...core.printable import brief, printable
from ...site import board_states
from .claim_records import Claim

if TYPE_CHECKING:
    import sqlite3

#: What a row is of: the boot of an instance that came up; a fault for which the board was kept out of use; a check.
BOOT, FAULT, CHECK = "boot", "fault", "check"
#: The newest rows of a board of which its score is made: a fault is forgotten after as many good boots.
COUNTED = 20
#: The newest rows of a board that are kept. Others are removed as soon as a further one is written.
KEPT = 100
#: Failures that are told of a board, and characters of each.
TOLD, LONGEST = 3, 200
#: The score of a board without a row, and of one that never failed.
FULL = 100


class BoardHealth(ClaimsStore[Claim]):
    """The part of a proxy's database (store.py) that keeps the history of boards."""

    def outcome(
        self, board: int, what: str, passed: bool, text: str = "", figures: Mapping[str, Any] | None = None
    ) -> None:
        """Write down that a board passed or failed, and remove its rows that are too many.

        :param what: BOOT, FAULT or CHECK.
        :param text: what failed.
        :param figures: what a check measured, by the names of its tests.
        """
        with self._db.transaction():
            row = (time.time(), board, what, int(passed), printable(text), json.dumps(figures or {}, sort_keys=True))
            self._db.write(
                "INSERT INTO health (time, board, what, passed, text, figures) VALUES (?, ?, ?, ?, ?, ?)", row
            )
            self._db.write(
                "DELETE FROM health WHERE board = ? AND id <= ("
                "SELECT id FROM health WHERE board = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
                (board, board, KEPT),
            )
            self._db.write("INSERT OR IGNORE INTO boards (board, state) VALUES (?, ?)", (board, board_states.POWER_OFF))
            self._db.write(
                "UPDATE boards SET score = ? WHERE board = ?", (_score(self._history(board)[:COUNTED]), board)
            )

    def health(self, boards: Iterable[int]) -> dict[int, dict[str, Any]]:
        """Return {board id: its health} of those of these boards that have a history.

        :returns: of each `score` (0 to 100), `passed` and `of` (the newest rows), `failures` (the newest first: time,
            what, text) and `check`, the newest check (time, passed, text, figures), None where there was none.
        """
        told = {board: self._history(board) for board in boards}
        return {board: _told(rows) for board, rows in told.items() if rows}

    def scores(self) -> dict[int, int]:
        """Return {board id: its score} of boards below FULL."""
        rows = self._db.rows("SELECT board, score FROM boards WHERE score BETWEEN 0 AND ?", (FULL - 1,))
        return {row[0]: int(row[1]) for row in rows}

    def checked(self) -> dict[int, float]:
        """Return {board id: unix time of its newest check}, of boards that were checked."""
        times = "SELECT board, max(time) FROM health WHERE what = ? AND time BETWEEN 0 AND ? GROUP BY board"
        return {row[0]: row[1] for row in self._db.rows(times, (CHECK, LATEST))}

    def prune(self, days: float, now: float) -> tuple[int, bool]:
        """Remove old events, as ClaimsStore does, and with them rows of boards that are as old and count no more."""
        removed, is_all = super().prune(days, now)
        if not (self._db.is_copy or self.is_short):
            with self._db.transaction():
                self._db.write(
                    "DELETE FROM health WHERE time < ? AND (SELECT count(*) FROM health AS newer"
                    " WHERE newer.board = health.board AND newer.id > health.id) >= ?",
                    (now - days * 86400.0, COUNTED),
                )
        return removed, is_all

    def _history(self, board: int) -> list[sqlite3.Row]:
        """Return the rows of a board, the newest first; there are no more than KEPT. A damaged one tells nothing."""
        rows = self._db.rows("SELECT * FROM health WHERE board = ? ORDER BY id DESC", (board,))
        return [row for row in rows if _is_sound(row)]


def _is_sound(row: sqlite3.Row) -> bool:
    """Return whether a row says when a board passed or failed: SQLite keeps what it is given, of any type."""
    texts = all(isinstance(row[name], str) for name in ("what", "text"))
    return texts and sound(row["time"]) is not None and row["passed"] in (0, 1)


def _score(rows: Collection[sqlite3.Row]) -> int:
    """Return the share of rows that passed, in per cent. One that failed never rounds up to FULL."""
    return FULL * sum(1 for row in rows if row["passed"]) // len(rows)


def _told(rows: list[sqlite3.Row]) -> dict[str, Any]:
    counted = rows[:COUNTED]
    failed = [row for row in counted if not row["passed"]][:TOLD]
    check = next((row for row in rows if row["what"] == CHECK), None)
    return dict(
        score=_score(counted),
        passed=sum(1 for row in counted if row["passed"]),
        of=len(counted),
        failures=[dict(time=row["time"], what=row["what"], text=brief(row["text"], LONGEST)) for row in failed],
        check=None if check is None else _checked(check),
    )


def _checked(row: sqlite3.Row) -> dict[str, Any]:
    try:
        figures = json.loads(row["figures"], parse_constant=_no_figure)
    except (ValueError, TypeError, RecursionError):
        figures = {}
    figures = figures if isinstance(figures, dict) else {}
    return dict(time=row["time"], passed=bool(row["passed"]), text=brief(row["text"], LONGEST), figures=figures)


def _no_figure(name: str) -> None:
    """Raise ValueError for NaN and Infinity, which Python's JSON takes, and no play."""
    raise ValueError(name)
