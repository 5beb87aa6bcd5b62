# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The places in the queue that plays keep on a node, in the node's database.

A play that waits renews its ticket each time it asks. One that does not come back loses its place when the ticket is
over, by this node's clock; until then a play for the same request takes the place over. scheduling/queue.py knows who
is served first.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Collection, Sequence

from ..core.errors import BadInput
from ..core.this_node import THIS_NODE
from ..site.owners import in_form, same
from .record_files import NONE, NUMBER, TEXT, of_other_types

if TYPE_CHECKING:
    import sqlite3

    from ..core.database import Database
    from ..scheduling.turns import Steps

TABLE = """CREATE TABLE tickets (
    request TEXT NOT NULL, owner TEXT NOT NULL, asked REAL NOT NULL, priority INTEGER NOT NULL, wish TEXT NOT NULL,
    elsewhere TEXT NOT NULL, renewed REAL NOT NULL, lasts REAL NOT NULL, others INTEGER,
    PRIMARY KEY (request, owner))"""
#: That column came later.
OTHERS = "ALTER TABLE tickets ADD COLUMN others INTEGER"
#: Claims that went before others, as their lease is over when those start.
FIRST = "CREATE TABLE went_first (instance TEXT PRIMARY KEY, created REAL NOT NULL)"
TABLES = (TABLE, FIRST)
#: The tables as they were first.
FIRST_TABLES = (TABLE.replace(", others INTEGER", ""), FIRST)
#: Seconds that a place is kept for a play that does not ask again.
LASTS = 60.0
#: Most seconds of that, for plays that look seldom.
LONGEST = 86400.0
#: Seconds that a request may have waited: `wait` is below a million minutes (playbooks/vars/request.yml).
OLDEST = 60e6
#: Seconds by which the clocks of controller and node may differ, as in answers of nodes (plugin_utils/answers.py).
CLOCKS = 86400.0
#: Highest and lowest priority.
PRIORITIES = 1000
#: Most entries of `elsewhere`: each is the end of a lease, of the boards of the largest boards file (board_fit.MOST).
MOST = 10000


@dataclass(frozen=True)
class Ticket:
    """A place in the queue. Its owner's name has the form in which such names are compared.

    :param asked: when it was asked for, by the controller's clock (unix seconds).
    :param wish: what is asked for, with flavor and count, as the kind of node needs it.
    :param elsewhere: what other nodes can give it by when.
    :param others: how many of it other nodes can give at all, as long as no operator does anything; None where the
        controller does not know it.
    :param renewed: when it was asked for last, by this node's clock (unix seconds).
    :param lasts: seconds after that for which it counts.
    """

    request: str
    owner: str
    asked: float
    wish: dict[str, Any]
    priority: int = 0
    elsewhere: Steps = ()
    renewed: float = 0.0
    lasts: float = LASTS
    others: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "owner", in_form(self.owner))

    def check(self) -> None:
        """Raise BadInput for a time, a priority or a length of time that cannot be."""
        if not (0 < self.asked < math.inf):
            raise BadInput(f"is {self.asked:g}", "asked", "give the unix seconds at which it was asked for")
        must_be_priority(self.priority)
        if not 0 < self.lasts <= LONGEST:
            raise BadInput(f"is {self.lasts:g}", "seconds", f"give more than 0 and at most {LONGEST:g}")
        if len(self.elsewhere) > MOST:
            raise BadInput(f"has {len(self.elsewhere)} entries", "elsewhere", f"give {MOST} at most")
        if self.others is not None and not 0 <= self.others <= MOST:
            raise BadInput(f"is {self.others}", "others", f"give 0 to {MOST}")

    def lives(self, now: float) -> bool:
        """Return whether it counts. A clock that was set back makes no ticket count for longer."""
        return abs(now - self.renewed) <= self.lasts

    def goes_on(self, before: Ticket) -> bool:
        """Return whether this keeps the place of an earlier ticket, which it does where it asks for no more."""
        same = self.wish["flavor"] == before.wish["flavor"]
        return bool(same and self.many <= before.many)

    @property
    def many(self) -> int:
        """Return how many instances are asked for: of NAME-1 … NAME-N those of `numbers`, if there are any."""
        return len(self.wish.get("numbers") or ()) or int(self.wish["count"])


def must_be_asked(asked: float | None) -> None:
    """Raise BadInput for a time at which no request that waits was asked for. None is none."""
    now = time.time()
    if asked is None or now - OLDEST - CLOCKS <= asked <= now + CLOCKS:
        return
    what = f"is {asked:.0f}, and the clock of {THIS_NODE} says {now:.0f}"
    raise BadInput(what, "asked", "give the unix seconds at which it was asked for, and see that both clocks are right")


def agreed(own: float, said: Sequence[float]) -> float:
    """Return since when a request waits on all nodes: the earliest time that more than half of them say.

    So a node that says what is not true puts no request before those of other nodes, nor behind what others say. One
    node alone decides only of what is its own.

    :param own: when its play began to wait; no later time counts, nor one at which nobody can have asked.
    :param said: since when each node has its place.
    """
    times = sorted(one if own - OLDEST <= one <= own else own for one in said)
    return times[len(times) // 2]


def must_be_priority(priority: int) -> None:
    """Raise BadInput for a number that is no priority."""
    if not -PRIORITIES <= priority <= PRIORITIES:
        raise BadInput(f"is {priority}", "priority", f"give -{PRIORITIES} to {PRIORITIES}")


#: {field of a ticket, and of its wish: the types that it may have}; lists are of the types in LISTS.
TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("request", "owner"), TEXT),
    **dict.fromkeys(("asked", "renewed", "lasts"), NUMBER),
    "others": (int, *NONE),
}
WISH: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("image", "boot_source", "kind"), TEXT),
    "flavor": (dict,),
    "count": (int,),
    "partial": (bool,),
    "board": (int, *NONE),
    "lease_hours": NUMBER + NONE,
}
FIELDS = ("request", "owner", "asked", "priority", "renewed", "lasts", "others")
LISTS: dict[str, type] = {"numbers": int, "devices": str}


class Tickets:
    """The tickets of one node."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def living(self) -> list[Ticket]:
        """Return those that count, in no order."""
        now = time.time()
        found = map(_ticket, self._db.rows("SELECT * FROM tickets"))
        return [one for one in found if one is not None and one.lives(now)]

    def of(self, request: str, owner: str) -> Ticket | None:
        """Return the ticket of a request that counts, or None."""
        return next((one for one in self.living() if (one.request, one.owner) == (request, in_form(owner))), None)

    def keep(self, ticket: Ticket, takes_over: bool = True) -> Ticket:
        """Write a ticket down, new or renewed, and remove those that are over, or damaged.

        :param takes_over: whether it keeps the time of a place that is there, where that is earlier.
        :returns: the ticket with the time that counts.
        """
        ticket.check()
        with self._db.transaction():
            before, now = self.of(ticket.request, ticket.owner), time.time()
            goes_on = takes_over and before is not None and ticket.goes_on(before)
            asked = min(ticket.asked, before.asked) if before and goes_on else ticket.asked
            row = dict(vars(ticket), asked=asked, renewed=now)
            row.update(wish=json.dumps(ticket.wish, sort_keys=True), elsewhere=json.dumps(ticket.elsewhere))
            self._db.write("DELETE FROM tickets WHERE abs(? - renewed) > lasts", (now,))
            for one in self._db.rows("SELECT rowid AS number, * FROM tickets"):
                if _ticket(one) is None:
                    self._db.write("DELETE FROM tickets WHERE rowid = ?", (one["number"],))
            self.end(ticket.request, ticket.owner)  # also one whose owner was written down as typed
            places = ", ".join("?" for column in row)
            words = f"INSERT INTO tickets ({', '.join(row)}) VALUES ({places})"
            self._db.write(words, tuple(row.values()))
            return Ticket(**dict(vars(ticket), asked=asked, renewed=now))

    def end(self, request: str, owner: str) -> bool:
        """Give a place up; return whether there was one."""
        with self._db.transaction():
            rows = self._db.rows("SELECT rowid AS number, owner FROM tickets WHERE request = ?", (request,))
            found = [row["number"] for row in rows if same(str(row["owner"]), owner)]
            for number in found:
                self._db.write("DELETE FROM tickets WHERE rowid = ?", (number,))
            return bool(found)

    def note_first(self, instance: str, created: float, there: Collection[str]) -> None:
        """Write down that a claim went before others, and forget those of instances that are not there any more."""
        with self._db.transaction():
            for row in self._db.rows("SELECT instance FROM went_first"):
                if row["instance"] not in there:
                    self._db.write("DELETE FROM went_first WHERE instance = ?", (row["instance"],))
            self._db.write("INSERT OR REPLACE INTO went_first VALUES (?, ?)", (instance, created))

    def went_first(self, instance: str, created: float) -> bool:
        """Return whether a claim went before others."""
        return bool(self._db.rows("SELECT 1 FROM went_first WHERE (instance, created) = (?, ?)", (instance, created)))


def _ticket(row: sqlite3.Row) -> Ticket | None:
    """Return the ticket of a row, or None for a damaged one, which holds nothing: its play asks again soon."""
    try:
        wish = json.loads(row["wish"])
        elsewhere = tuple((float(when), int(many)) for when, many in json.loads(row["elsewhere"]))
        fields = {name: row[name] for name in FIELDS}
        ticket = Ticket(**fields, wish=wish, elsewhere=elsewhere)
        if of_other_types(fields, TYPES) or not isinstance(ticket.priority, int) or not _is_wish(wish):
            return None
        ticket.check()
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, BadInput):
        return None
    return ticket


def _is_wish(wish: Any) -> bool:
    """Return whether a wish says what a request of ours says; it is made of these words alone."""
    if not isinstance(wish, dict):
        return False
    plain = {name: value for name, value in wish.items() if name not in LISTS}
    if not plain.keys() <= WISH.keys() or of_other_types(plain, {name: WISH[name] for name in plain}):
        return False
    lists = [(wish[name], its) for name, its in LISTS.items() if name in wish]
    return (
        bool(wish["flavor"])
        and wish["count"] > 0
        and all(isinstance(values, list) and all(isinstance(value, its) for value in values) for values, its in lists)
    )
