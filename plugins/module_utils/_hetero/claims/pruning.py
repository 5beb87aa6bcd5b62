# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removal of old events from a node's database, in steps between which others write.

An event is old if it is older than the node keeps events for, and none that is younger was written before it: what was
written last is not old, whatever a clock that jumped dated it. The pages become free for new events; the file does not
shrink.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping

from ..core import retention
from ..core.deadline import Deadline
from . import ended

if TYPE_CHECKING:
    import sqlite3

    from ..core.database import Database

#: The phase and text of the event from which on each claim has a record: one that is missing later was lost.
RECORDS, RECORDS_BEGIN = "records", "each claim has a record of its own from now on"
#: Words of the event that says whose a container was that lies in another folder (compute_host/moved_instances.py).
MOVED = "is not in its place, and is its container no more"
NEVER = float("inf")
#: Rows that one query reads; a reader holds up no writer.
READ = 2000
#: A table's values of a column, found by its index without a look at each row.
THINGS = (
    "WITH RECURSIVE things (thing) AS (SELECT min({column}) FROM events UNION ALL"
    " SELECT (SELECT min({column}) FROM events WHERE {column} > thing) FROM things WHERE thing IS NOT NULL)"
    " SELECT thing FROM things WHERE thing IS NOT NULL"
)


@dataclass
class Kept:
    """Which old events stay.

    :param thing: the column that names boards, or GPUs: the newest events of each stay.
    :param since: {board: id of the event with which its claim got it}: its events stay from this one on.
    :param lives: {instance or request: unix time of its claim}: its events stay from that time on.
    :param ends: {(board, instance): unix time of a claim}: the event of its end stays.
    """

    thing: str
    since: dict[Any, int] = field(default_factory=dict)
    lives: dict[str, float] = field(default_factory=dict)
    ends: dict[tuple[Any, str], float] = field(default_factory=dict)


def prune(
    db: Database, kept: Kept, days: float, now: float, rest: Callable[[float], object] = time.sleep
) -> tuple[int, bool]:
    """Remove events older than so many days.

    :param now: the unix time that it certainly is by now (site/node_clock.py).
    :param rest: waits for so many seconds between two steps.
    :returns: their number, and whether none is left for the next turn.
    """
    turn, removed = Deadline(retention.TURN), 0
    for ids in _steps(db, kept, now - days * 86400.0, now):
        if turn.passed:
            return removed, False
        with db.transaction():
            begun = time.monotonic()  # others wait from here on
            db.write(f"DELETE FROM events WHERE id IN ({', '.join(map(str, ids))})")
        removed += len(ids)
        rest(retention.REST * (time.monotonic() - begun))
    return removed, True


def _firsts(db: Database, kept: Kept) -> dict[Any, int]:
    """Return {thing: id of its first event that stays}: of its newest ones, or since its claim, whichever is older."""
    firsts = dict(kept.since)
    last = f"SELECT id FROM events WHERE {kept.thing} = ? ORDER BY id DESC LIMIT 1 OFFSET ?"
    for thing in [row[0] for row in db.rows(THINGS.format(column=kept.thing))]:
        rows = db.rows(last, (thing, retention.EVENTS_OF_EACH - 1))
        first = rows[0]["id"] if rows else 0
        firsts[thing] = min(first, firsts.get(thing, first))
    return firsts


def _steps(db: Database, kept: Kept, before: float, now: float) -> Iterator[list[int]]:
    """Yield the ids of the events to remove, the oldest first, those of one transaction at a time.

    :param before: events from this time on end the search, up to `now`: a later one was written by a clock ahead.
    """
    firsts = _firsts(db, kept)
    newest = db.rows("SELECT max(id) FROM events")[0][0] or 0
    after, last, ids = 0, newest - retention.EVENTS_NEWEST, []
    columns = f"id, time, phase, instance, text, {kept.thing}"
    query = f"SELECT {columns} FROM events WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
    while True:
        rows = db.rows(query, (after, last, READ))
        for row in rows:
            after = row["id"]
            # SQLite keeps what it is given: a time that is none says nothing of an age
            if not isinstance(row["time"], float) or row["time"] > now:
                continue
            if row["time"] >= before:
                rows = []
                break
            if not _stays(row, kept, firsts):
                ids.append(after)
        while len(ids) >= retention.STEP or (ids and not rows):
            yield ids[: retention.STEP]
            del ids[: retention.STEP]
        if not rows:
            return


def _stays(row: sqlite3.Row, kept: Kept, firsts: Mapping[Any, int]) -> bool:
    """Return whether an old event stays: one of the newest of its thing, of a claim's life, or of a claim's records."""
    thing, instance = row[kept.thing], row["instance"]
    if row["id"] >= firsts.get(thing, row["id"] + 1) or row["phase"] == RECORDS or MOVED in str(row["text"]):
        return True
    since = kept.ends.get((thing, instance), NEVER) if row["phase"] == ended.RELEASE_PHASE else NEVER
    return row["time"] >= min(since, kept.lives.get(instance, NEVER))
