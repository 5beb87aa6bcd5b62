# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the records of boards: state, power, claim and events. Events are also written here."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Collection, Iterable, Sequence

from ...claims import ended
from ...claims.record_files import LATEST, sound
from ...core.plays import play
from ...core.printable import printable
from ...site import board_states
from .board_health import FULL, BoardHealth
from .board_rows import read_board
from .claim_records import TYPES, Claim
from .tables import LAYOUT

if TYPE_CHECKING:
    import sqlite3

    from ...roots.proxy_node import RootClaim

#: Phase of the event that each change of state leaves.
STATE_PHASE = "state"
#: Phase of the event with which a claim gets its board.
CLAIM_PHASE = "claim"
#: Phase of the event with which a claim ends.
RELEASE_PHASE = ended.RELEASE_PHASE
#: The text of that event where nobody ended it by a mere word.
RELEASED = "released by {name}"
#: Seconds within which the event of a claim is written.
AT_ONCE = 5.0
#: Phase of the event that goes before the removal of what a claim's board boots from.
REMOVE_PHASE = "remove"
#: Phase of the event that goes before each switching.
SWITCH = "switch"
#: The end of the text of that event. Where the outlet has this state at the next look, a process that was killed right
#: after may have switched it.
TO_BE = "is to be switched {state}"
#: The text behind TO_BE in the event of an outlet that is switched off for a boot.
AND_ON = ", and on again"
#: The text before TO_BE, where boards answer until then.
ANSWER = "{boards} answer: "
#: Phase of the event that says what came of a switching, also for the boards beside.
POWER = "power"
#: Phase of the event that a board had power while nobody looked whether it came up.
UNWATCHED = "unwatched"
#: Most boards that a query names one by one; for more than that all boards are read.
FEW = 100
#: The texts of STATE_PHASE events of a board whose instance had power until then.
HAD_POWER = (f"{board_states.BOOTING} → %", f"{board_states.RUNNING} → %")
#: The query for the event with which a claim got its board, by board, instance and CLAIM_PHASE.
CLAIMED_AT = "SELECT max(id) FROM events WHERE board = ? AND instance = ? AND phase = ?"
#: The text of an UNWATCHED event, and that of a board which showed no use of its root: it may be cut, the root stays.
MAY_HAVE_RUN = "its board had power while no play watched it, so {name} may have run"
NO_USE_SEEN = "its board had power while no play watched it, and nothing was written to the root of {name} since"
#: The text on a board that is on and was never switched on for its claim.
NOBODYS = (
    "its outlet is on, and {name} was never started here: not switched, somebody may be at work there "
    f"({play('reconcile')} says who)"
)


@dataclass(frozen=True)
class Record:
    """The record of a board; one that was never used is in state power off, and `since` is None.

    :ivar score: as of board_health.py.
    """

    board: int
    state: str = board_states.POWER_OFF
    since: float | None = None
    power: str | None = None
    power_seen: float | None = None
    note: str = ""
    claim: Claim | None = None
    score: int = FULL


@dataclass(frozen=True)
class Event:
    """Something that happened, for people and for `events`."""

    id: int
    time: float
    actor: str
    board: int | None
    instance: str | None
    phase: str
    text: str
    seconds: float | None


#: The columns of a board and of its claim, and the query for those of one board, which is one row in any case.
RECORDED = ("state", "since", "power", "power_seen", "note", "score")
CLAIMED = tuple(field.name for field in fields(Claim))
ONE = (
    f"SELECT {', '.join(f'boards.{name}' for name in RECORDED)}, "
    f"{', '.join(f'claims.{name}' for name in CLAIMED)} FROM (SELECT ? AS id) "
    "LEFT JOIN boards ON boards.board = id LEFT JOIN claims ON claims.board = id"
)


class Recorded(BoardHealth):
    """The reading part of a proxy's database (store.py)."""

    layout, table, order, claim_type, types = LAYOUT, "claims", "board", Claim, TYPES

    def record(self, board_id: int) -> Record:
        """Return the record of one board."""
        row = self._db.rows(ONE, (board_id,))[0]
        claim = None if row["instance"] is None else self._claim({name: row[name] for name in CLAIMED})
        if row["state"] is None:
            return Record(board_id, claim=claim)
        return Record(board_id, claim=claim, **self._recorded(board_id, row))

    def records(self, ids: Collection[int]) -> dict[int, Record]:
        """Return {id: Record}, in the order of `ids`."""
        # Numbers in the text: SQLite before 3.32 takes only 999 of them as values.
        few = f"WHERE board IN ({', '.join(str(int(board)) for board in ids)})" if len(ids) <= FEW else ""
        return self._records(ids, few)

    def _records(self, ids: Iterable[int], where: str = "", values: Sequence[Any] = ()) -> dict[int, Record]:
        with self._db.snapshot():
            found = self._db.rows(f"SELECT * FROM boards {where}", values)
            claims = {claim.board: claim for claim in self._claims(where, values)}
        rows = {row["board"]: self._recorded(row["board"], row) for row in found}
        return {board: Record(board, claim=claims.get(board), **rows.get(board, {})) for board in ids}

    def _recorded(self, board: int, row: sqlite3.Row) -> dict[str, Any]:
        """Return the fields of a board's row; raise HeteroError where it cannot be told whose the board is."""
        try:
            return read_board(row)
        except ValueError as error:
            raise self._damaged(str(error).format(board=f"board{board}")) from error

    def event(
        self, board: int | None, phase: str, text: str, seconds: float | None = None, instance: str | None = None
    ) -> int:
        """Write an event down and return its id; `instance` defaults to the one that has the board."""
        with self._db.transaction():
            if instance is None:
                rows = self._db.rows("SELECT instance FROM claims WHERE board = ?", (board,))
                instance = rows[0]["instance"] if rows else None
            return self._db.write(
                "INSERT INTO events (time, actor, board, instance, phase, text, seconds) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (time.time(), self.actor, board, instance, phase, printable(text), seconds),
            )

    def events(
        self, after: int = 0, boards: Iterable[int] | None = None, instance: str | None = None, limit: int = 500
    ) -> list[Event]:
        """Return at most `limit` events with an id above `after`, the oldest first.

        :param boards: only of these board ids.
        """
        return self._events("id > ?", [after], boards, instance, "ASC", limit)

    def newest_events(self, board: int | None, limit: int) -> list[Event]:
        """Return the last `limit` events of a board, or of all (None), the oldest of them first."""
        return self._events("id > ?", [0], None if board is None else [board], None, "DESC", limit)[::-1]

    def first_since_claim(self, claim: RootClaim, phase: str, text: str = "%", newest: bool = False) -> Event | None:
        """Return the first event of a phase since a claim has its board, or None.

        :param text: a pattern of SQL's LIKE, which the event's text fits.
        :param newest: return the last one instead.
        """
        rows = self._db.rows(
            f"SELECT * FROM events WHERE board = ? AND phase = ? AND text LIKE ? AND id > ({CLAIMED_AT}) "
            f"ORDER BY id {'DESC' if newest else 'ASC'} LIMIT 1",
            (claim.board, phase, text, claim.board, claim.instance, CLAIM_PHASE),
        )
        return _event(rows[0]) if rows else None

    def has_had(self, claim: RootClaim, signs: Iterable[tuple[str, str]]) -> bool:
        """Return whether there is an event since a claim has its board that is of one of these (phase, pattern)."""
        signs = list(signs)
        either = " OR ".join(["phase = ? AND text LIKE ?"] * len(signs))
        rows = self._db.rows(
            f"SELECT 1 FROM events WHERE board = ? AND id > ({CLAIMED_AT}) AND ({either}) LIMIT 1",
            (claim.board, claim.board, claim.instance, CLAIM_PHASE, *(word for sign in signs for word in sign)),
        )
        return bool(rows)

    def newest_told(self, phase: str, text: str, board: int | None = None) -> Event | None:
        """Return the newest event of a phase whose text fits a pattern of SQL's LIKE.

        :param board: of this board; None for any board, or none.
        """
        boards = None if board is None else [board]
        found = self._events("phase = ? AND text LIKE ?", [phase, text], boards, None, "DESC", 1)
        return found[0] if found else None

    def newest_of_outlet(self, phase: str, outlet: str) -> Event | None:
        """Return the newest event of a phase that names an outlet, or None.

        :param outlet: its name with its PDU, as a whole: what ends alike is another PDU's.
        """
        where = "phase = ? AND instr(' ' || text || ' ', ?) > 0"
        found = self._events(where, [phase, f" {outlet} "], None, None, "DESC", 1)
        return found[0] if found else None

    def checks_begun(self) -> dict[int, float]:
        """Return {board id: unix time at which its newest check began}, as far as the events go back."""
        begun = f"%{board_states.CHECKING}"
        what = "SELECT board, max(time) FROM events WHERE phase = ? AND text LIKE ? GROUP BY board"
        return {row[0]: row[1] for row in self._db.rows(what, (STATE_PHASE, begun))}

    def begin_end(self, claim: RootClaim) -> None:
        """Write down that what a claim's board boots from is to be removed by somebody's word, before it goes."""
        self.event(claim.board, REMOVE_PHASE, f"what {claim.instance} boots from is to be removed")

    def is_ending(self, claim: RootClaim) -> bool:
        """Return whether that removal was begun, and the claim's instance had no power since.

        The state "shutting down" does not tell that: a stop leaves it as well.
        """
        begun = self.first_since_claim(claim, REMOVE_PHASE, newest=True)
        if begun is None:
            return False
        later = [self.first_since_claim(claim, STATE_PHASE, text, newest=True) for text in HAD_POWER]
        return all(event is None or event.id < begun.id for event in later)

    def unseen_cut(self, board: int) -> Event | None:
        """Return the event of an outlet that was to be switched off, where nothing tells what came of it, else None.

        Its process was killed, or lost the PDU, before it saw which boards that cut. There is none where the board was
        seen to run since. That it was to be switched on since tells nothing: that may have come to nothing, too.
        """
        rows = self._db.rows(
            "SELECT * FROM events WHERE board = ? AND (phase IN (?, ?) OR (phase = ? AND text NOT LIKE ?) "
            "OR (phase = ? AND text LIKE ?)) ORDER BY id DESC LIMIT 1",
            (
                *(board, POWER, board_states.RUNNING, SWITCH, f"%{TO_BE.format(state='on')}"),
                *(STATE_PHASE, f"% → {board_states.RUNNING}%"),
            ),
        )
        last = _event(rows[0]) if rows else None
        if last is None or last.phase != SWITCH or TO_BE.format(state="off") not in last.text:
            return None
        return last

    def has_since(self, board: int, phase: str, event: Event) -> bool:
        """Return whether a board has an event of a phase after that of any board, whatever the clock did meanwhile."""
        what = "SELECT 1 FROM events WHERE board = ? AND phase = ? AND id > ? LIMIT 1"
        return bool(self._db.rows(what, (board, phase, event.id)))

    def last_said(self, board: int, text: str) -> float | None:
        """Return the unix time of the newest event of a board with this text, or None."""
        rows = self._db.rows(
            "SELECT time FROM events WHERE board = ? AND text = ? ORDER BY id DESC LIMIT 1", (board, text)
        )
        return rows[0]["time"] if rows else None

    def has_ended(self, claim: Claim) -> bool:
        """Return whether the events tell of the end of a claim."""
        where = "board = ? AND instance = ? AND phase = ? AND time >= ?"
        values = (claim.board, claim.instance, RELEASE_PHASE, claim.created)
        return bool(self._db.rows(f"SELECT 1 FROM events WHERE {where} LIMIT 1", values))

    def was_released(self, claim: Claim) -> bool:
        """Return whether the events tell how just this claim got its board, and that it gave the board back.

        The end alone may be that of an earlier claim of that name, dated by a clock that was ahead.
        """
        rows = self._db.rows(
            "SELECT 1 FROM events AS got JOIN events AS gave ON gave.board = got.board AND gave.id > got.id "
            "WHERE got.board = ? AND got.instance = ? AND got.phase = ? AND got.time BETWEEN ? AND ? "
            "AND gave.instance = got.instance AND gave.phase = ? AND gave.text = ? LIMIT 1",
            (
                *(claim.board, claim.instance, CLAIM_PHASE, claim.created, claim.created + AT_ONCE),
                *(RELEASE_PHASE, RELEASED.format(name=claim.instance)),
            ),
        )
        return bool(rows)

    def begun(self) -> dict[int, float]:
        """Return {id of each board that somebody has: unix time of its claim}."""
        rows = self._db.rows("SELECT board, created FROM claims")
        return {row["board"]: row["created"] for row in rows if sound(row["created"]) is not None}

    def claimed_since(self) -> float | None:
        """Return the unix time of the first claim or end that this database knows of; None where it knows of none."""
        times = "SELECT min(time) FROM events WHERE phase IN (?, ?) AND time BETWEEN 1 AND ?"
        first = self._db.rows(times, (CLAIM_PHASE, RELEASE_PHASE, LATEST))
        return min((time for time in (first[0][0], *self.begun().values()) if time is not None), default=None)

    def _events(
        self,
        where: str,
        values: Sequence[Any],
        boards: Iterable[int] | None,
        instance: str | None,
        order: str,
        limit: int,
    ) -> list[Event]:
        if boards is not None:
            # Numbers in the text: SQLite before 3.32 takes only 999 of them as values.
            where += f" AND board IN ({', '.join(str(int(board)) for board in boards)})"
        if instance is not None:
            where += " AND instance = ?"
            values = [*values, instance]
        rows = self._db.rows(f"SELECT * FROM events WHERE {where} ORDER BY id {order} LIMIT ?", [*values, limit])
        return [_event(row) for row in rows]


def _event(row: sqlite3.Row) -> Event:
    """Return the event of a row. Values that cannot be right are left out: a damaged row is shown, and ends no verb."""
    texts = {name: row[name] if isinstance(row[name], str) else "" for name in ("actor", "phase", "text")}
    instance = row["instance"] if isinstance(row["instance"], str) else None
    board = row["board"] if isinstance(row["board"], int) else None
    when, seconds = sound(row["time"]) or 0.0, sound(row["seconds"])
    return Event(row["id"], when, board=board, instance=instance, seconds=seconds, **texts)
