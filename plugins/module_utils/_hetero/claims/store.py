# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the databases of proxy nodes and of compute hosts have in common: who acts, one file, claims by request.

Each store knows its own tables and what a claim is.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ContextManager, Generic, Mapping, Sequence, TypeVar

from ..core import reserve
from ..core.backups import UNREADABLE
from ..core.database import Database
from ..core.errors import HeteroError
from ..site.image_names import default_name, is_source
from ..site.instance import INSTANCE
from . import ended
from .pruning import RECORDS, Kept, prune
from .record_files import LATEST, of_other_columns
from .tickets import Tickets

if TYPE_CHECKING:
    import sqlite3
    from typing import Self

    from ..core.database import Layout
    from .record_files import Types


#: Most ends of instances that one name is looked up in.
FEW = 200
#: A row of the table of claims as the store returns it.
AnyClaim = TypeVar("AnyClaim")


class ClaimsStore(ABC, Generic[AnyClaim]):
    """A database with claims; a context manager.

    :param actor: who acts, for events (default: user and process).
    :param create: as of Database: with False a missing file reads as empty and stays missing.
    :param busy: seconds to wait for another process's transaction.
    :param write: as of Database: whether a file of an older release is upgraded (default: as `create`).
    """

    #: The tables, the name of the table of claims, its column of order, the type of a row, and those of its columns.
    layout: Layout
    table: str
    order: str
    claim_type: type[AnyClaim]
    types: Types

    def __init__(
        self, path: str, actor: str | None = None, create: bool = True, busy: float = 10.0, write: bool | None = None
    ) -> None:
        self.path = path
        self.actor = actor or f"user id {os.geteuid()} pid {os.getpid()}"
        self._db = Database(path, self.layout, create=create, busy=busy, write=write)
        #: Those who wait.
        self.tickets = Tickets(self._db)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def must_be_whole(self) -> None:
        """Raise HeteroError if pages of the database are damaged, also pages that no query reads."""
        self._db.must_be_whole()

    @property
    def is_short(self) -> bool:
        """Return whether the database's file system is too full for work that takes more space."""
        return reserve.is_short(self.path)

    def followed(self) -> dict[str, Any]:
        """Return what it takes to be told of the events from now on (core/job_watch.py)."""
        newest = self._db.rows("SELECT max(id) FROM events")[0][0]
        return dict(state_db=self.path, after=newest or 0)

    def newest_time(self) -> float | None:
        """Return the newest time that events, claims and records of claims have, or None.

        What was written last may have an earlier time: the clock was behind then.
        """
        times = f"SELECT time FROM events UNION ALL SELECT created FROM {self.table}"
        rows = self._db.rows(f"SELECT max(time) FROM ({times}) WHERE time BETWEEN 0 AND ?", (LATEST,))
        in_database = [row[0] for row in rows if row[0] is not None]
        return max([*in_database, *self._times_of_records()], default=None)

    def prune(self, days: float, now: float) -> tuple[int, bool]:
        """Remove events that are older than so many days, but for those on which somebody may yet depend.

        The life of each claim stays, the newest events of each board or GPU, and what tells of lost records.

        :param now: the unix time that it certainly is by now.
        :returns: the number of removed events, and whether none is left for the next turn. Nothing is removed from a
            copy in memory, nor while the disk is full.
        """
        if self._db.is_copy or self.is_short:
            return 0, False
        return prune(self._db, self._kept_events(), days, now)

    @abstractmethod
    def _kept_events(self) -> Kept:
        """Return which events stay, whatever their age."""

    def transaction(self, dry: bool = False) -> ContextManager[None]:
        """Make several calls one: all or nothing. `dry` takes all back at the end (check mode)."""
        return self._db.transaction(dry)

    def together(self) -> ContextManager[None]:
        """Commit what this thread writes in the block as one, as Database.together does; other threads wait."""
        return self._db.together()

    def commit(self) -> None:
        """Commit at once what was written together so far (Database.commit)."""
        self._db.commit()

    def claims(self, request: str | None = None) -> list[AnyClaim]:
        """Return all claims, or those of one request."""
        return self._claims() if request is None else self._claims("WHERE request = ?", (request,))

    def claim_of(self, instance: str) -> AnyClaim | None:
        """Return the claim of an instance, or None."""
        return next(iter(self._claims("WHERE instance = ?", (instance,))), None)

    def ended(self, request: str) -> list[dict[str, Any]]:
        """Return, as ended.read does, which instances of a request were ended with their lease.

        The last FEW ends count.

        :param request: the name of an instance, or of several NAME-N.
        """
        rows = self._db.rows(
            "SELECT instance, phase, text, time FROM events WHERE phase IN (?, ?)"
            " AND (instance = ? OR instance GLOB ?) ORDER BY id DESC LIMIT ?",
            (ended.REAP_PHASE, ended.RELEASE_PHASE, request, f"{request}-[0-9]*", FEW),
        )
        return ended.read(map(dict, rows))

    def _times_of_records(self) -> Sequence[float]:
        """Return the times in the records of claims that can be read; a store that keeps no records has none."""
        return ()

    def _keeps_all(self) -> bool:
        """Return whether the records of claims of an earlier release, which kept none, were written."""
        return bool(self._db.rows("SELECT 1 FROM events WHERE phase = ? LIMIT 1", (RECORDS,)))

    def _claims(self, where: str = "", values: Sequence[Any] = ()) -> list[AnyClaim]:
        rows = self._db.rows(f"SELECT * FROM {self.table} {where} ORDER BY {self.order}", values)
        return [self._claim(row) for row in rows]

    def _claim(self, row: sqlite3.Row | Mapping[str, Any]) -> AnyClaim:
        try:
            return self.claim_type(**read_claim(row, self.types))
        except UNREADABLE as error:
            raise self._damaged(f"what it says of the claim of {row['instance']} cannot be read") from error

    def _damaged(self, why: str) -> HeteroError:
        """Return the error of a row that SQLite finds whole and whose contents make no sense."""
        return HeteroError(f"is damaged ({why})", self.path, self.layout.restore(self.path))


def read_claim(row: sqlite3.Row | Mapping[str, Any], types: Types) -> dict[str, Any]:
    """Return the fields of a claim's row. Before images had names it held the path of the image's file, which then
    gives the name.

    :param types: of its columns.
    :raises UNREADABLE: it says what no release writes.
    """
    image = default_name(row["image"]) if is_source(row["image"]) else row["image"]
    read = dict(row, flavor=json.loads(row["flavor"]), image=image)
    wrong = of_other_columns(read, types)
    if wrong or not (INSTANCE.fullmatch(read["instance"]) and INSTANCE.fullmatch(read["request"])):
        raise ValueError(", ".join(wrong))
    return read
