# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SQLite file below a store: opening, its schema number, queries (transactions.py: what is written).

The stores know which tables there are and what their rows mean. The file is never deleted or repaired here:
that is a person's decision.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, ContextManager, Iterator, Sequence

from . import backups, database_copy, reserve
from .database_errors import HOLDER, Explained
from .deadline import Deadline
from .errors import HeteroError, TimedOut
from .locks import taken
from .release import RELEASE, as_number, as_text
from .transactions import Transactions


@dataclass(frozen=True)
class Layout:
    """The tables of one kind of database.

    :param schema: the schema's number, raised with each change of the tables. The file has it as PRAGMA user_version,
        and the newest release that wrote the file as PRAGMA application_id.
    :param set_up: what a person does about a file of another schema.
    :param restore: takes the path of a damaged file, returns what a person does about it.
    :param upgrades: {schema: statements that upgrade its tables to the next schema}. A file of an older schema is
        copied and upgraded when it is first opened to be written.
    """

    schema: int
    tables: tuple[str, ...]
    set_up: str
    restore: Callable[[str], str]
    upgrades: dict[int, tuple[str, ...]] = field(default_factory=dict)


UPGRADE = "have a verb that changes something upgrade it (without check mode)"


class Database(Transactions):
    """An open database; one connection that threads may share.

    :param layout: its tables.
    :param create: make a missing file (0600) and its folder (0700). With False a missing or still empty file reads as
        empty and nothing written is kept, so that check mode and information leave no trace.
    :param write: upgrade a file of an older schema (default: as `create`). With False such a file is read as a copy in
        memory, which refuses what would be written: it would be lost.
    :param busy: seconds to wait for another process's transaction.
    :raises HeteroError: locked, damaged, unreadable, or of another schema; the file is left as it is.
    """

    def __init__(
        self, path: str, layout: Layout, create: bool = True, busy: float = 10.0, write: bool | None = None
    ) -> None:
        self.path = path
        self.layout = layout
        self.busy = busy
        self._explains = Explained(path, busy, layout.restore)
        #: Why the file is read as a copy in memory, which keeps no writes, and what a person does to have it written.
        #: () where it is the file itself.
        self._copied: tuple[str, ...] = ()
        self._copied_when: database_copy.Written = []
        self._missing = False  # whether there was no file yet, or an empty one, and something in memory is read instead
        self.touched = {}
        self._create, self._writes = create, bool(create if write is None else write)
        self._turn = threading.RLock()
        self._db: Any = None  # a sqlite3.Connection, until close
        with self._explained():
            if create:
                self._create_file()
            self._open()
            if create and self._pragma("application_id") < as_number(RELEASE):
                self._sign()
            if self._writes:
                self._keep()

    def _open(self) -> None:
        is_there = os.path.exists(self.path)
        if self._create or (self._writes and is_there):
            self._spend()
            self._db = self._connect(self.path)
        elif is_there:
            self._look()
        else:
            self._db = self._connect(":memory:")
        missing = not (self._create or is_there)
        if self._upgradable():
            self._upgrade(self._writes)
        elif not self._is_ready():
            if self._create:
                self._create_tables()
            else:
                self._db.close()
                self._db, missing = self._connect(":memory:"), True
                self._write_tables()
        self._missing = missing

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def must_be_whole(self) -> None:
        """Raise HeteroError where SQLite finds a damaged page, also one that no query of ours reads."""
        found = " ".join(self.rows("PRAGMA quick_check(1)")[0][0].split())
        if found != "ok":
            raise HeteroError(f"is damaged (SQLite: {found})", self.path, self.layout.restore(self.path))

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """Return the rows of a query, as a list."""
        with self._turn, self._explains:
            self._see_what_is_new()
            return self._db.execute(sql, values).fetchall()

    def write(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run one statement; return the id of the row that it inserted."""
        with self._turn, self._explains:
            if self._is_within:
                return self._db.execute(sql, values).lastrowid
        with self.transaction():
            return self._db.execute(sql, values).lastrowid

    @property
    def is_copy(self) -> bool:
        """Return whether the file is read as a copy in memory: of an older release, on a full or read-only disk."""
        return bool(self._copied)

    @property
    def _is_kept(self) -> bool:
        """Return whether writes go to the file, and not to a copy in memory."""
        return bool(self._db.execute("PRAGMA database_list").fetchone()["file"])

    def _spend(self) -> None:
        if os.path.exists(self.path):
            reserve.spend(self.path)

    def _keep(self) -> None:
        if os.path.exists(self.path):
            reserve.keep(self.path)

    def _look(self) -> None:
        self._db, when, why = database_copy.opened(self.path, self._connect, self._alone, self.busy)
        if when is not None:
            self._copied, self._copied_when = why, when

    def _see_what_is_new(self) -> None:
        """Copy the file once more where others have written to it since; read one that others have made.

        :raises HeteroError: it is gone, or empty: that nobody has anything is not what it said.
        """
        if self._copied and not self._db.in_transaction and database_copy.written(self.path) != self._copied_when:
            if not (os.path.exists(self.path) and os.path.getsize(self.path)):
                raise HeteroError("is gone or empty since it was read", self.path, self.layout.restore(self.path))
            self._copied = ()
            self._db.close()
            self._open()
        elif self._missing and not self._db.in_transaction and database_copy.written(self.path):
            self._missing = False
            self._db.close()
            self._open()

    def _connect(self, name: str, locking: str = "NORMAL", busy: float | None = None) -> sqlite3.Connection:
        timeout = self.busy if busy is None else busy
        # isolation_level None: transactions are begun and ended here, never by the sqlite3 module.
        db = sqlite3.connect(name, timeout=timeout, isolation_level=None, check_same_thread=False)
        db.row_factory = sqlite3.Row
        try:
            db.execute(f"PRAGMA locking_mode = {locking}")
            # FULL: a transaction that was reported as done survives a power cut (NORMAL under WAL may lose it).
            db.execute("PRAGMA synchronous = FULL")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def _create_file(self) -> None:
        """Create the file where it is missing, and open no other: to close one in use drops SQLite's locks on it.

        (POSIX drops all of a process's locks on a file when the process closes any descriptor of it.)
        """
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            if not os.path.exists(self.path):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            return  # another process was first; whether it is a database shows when it is read
        except OSError as error:
            what = f"cannot be made ({error.strerror})"
            remedy = f"make {self._folder} writable for user id {os.geteuid()}"
            raise HeteroError(what, self.path, remedy) from error

    def _number(self) -> int:
        return self._pragma("user_version")

    def _pragma(self, name: str) -> int:
        return self._db.execute(f"PRAGMA {name}").fetchone()[0]

    def _sign(self) -> None:
        """Write this release's number into the file, so that an older release, which cannot read it, can name it."""
        with self.transaction():
            self._db.execute(f"PRAGMA application_id = {as_number(RELEASE)}")

    def _upgradable(self) -> bool:
        """Return whether the file's schema is an older one, and upgrades lead from it to the present one."""
        number = self._number()
        return 0 < number < self.layout.schema and {*range(number, self.layout.schema)} <= {*self.layout.upgrades}

    def _upgrade(self, write: bool) -> None:
        """Upgrade the tables to the present schema.

        :param write: upgrade the file, after a copy; with False only a copy in memory.
        """
        if not write:
            memory, when = database_copy.copied(self._db, self.path, self._connect)
            self._db.close()
            self._db = memory
            self._write_upgrades()
            self._copied, self._copied_when = ("is of an older release", UPGRADE), when
            return
        with self._alone():
            if self._upgradable():
                backups.make(self.path, whole=True)
                self._write_upgrades()

    def _write_upgrades(self) -> None:
        with self.transaction():
            for number in range(self._number(), self.layout.schema):
                for statement in self.layout.upgrades[number]:
                    self._db.execute(statement)
            self._db.execute(f"PRAGMA application_id = {as_number(RELEASE)}")
            self._db.execute(f"PRAGMA user_version = {self.layout.schema}")

    def _is_ready(self) -> bool:
        """Return True for a file with our tables and schema number, False for a new file.

        :raises HeteroError: the file is any other.
        """
        with self.snapshot():  # another process may be writing the tables just now
            number = self._number()
            tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if number == self.layout.schema:
            return True
        if number:
            release, needed = as_text(self._pragma("application_id")), "a newer release"
            if number < self.layout.schema:
                needed = "an older release"
            elif release and release != RELEASE:
                needed = f"release {release}"
            what = f"has schema {number}, written by {needed} (this one, {RELEASE}, reads {self.layout.schema})"
            with_it = f"install {needed} of hetero.compute and " if number > self.layout.schema else ""
            raise HeteroError(what, self.path, f"{with_it}{self.layout.set_up}")
        if tables:
            raise HeteroError("is a database of something else", self.path, "set state_db to another path")
        return False

    def _create_tables(self) -> None:
        """Switch to WAL and write the tables, one process at a time: the switch does not wait for a lock by itself."""
        with self._alone():
            mode = self._switched()
            if mode != "wal":
                raise HeteroError(
                    f"cannot have a write-ahead log here (journal mode stays {mode})",
                    self.path,
                    "put state_db on a local disk",
                )
            if not self._is_ready():
                self._write_tables()

    def _switched(self) -> str:
        """Switch to WAL and return the mode; wait for who looks whether tables are there, as the switch does not."""
        deadline = Deadline(self.busy)
        while True:
            try:
                return str(self._db.execute("PRAGMA journal_mode = WAL").fetchone()[0])
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or deadline.passed:
                    raise
            deadline.nap()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes from making or upgrading this file during the block."""
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if not taken(folder, Deadline(self.busy)):
                what = f"another process has been making it for {self.busy:g} s"
                raise TimedOut(what, self.path, HOLDER.format(path=self.path))
            yield
        finally:
            os.close(folder)

    def _write_tables(self) -> None:
        with self.transaction():
            for table in self.layout.tables:
                self._db.execute(table)
            self._db.execute(f"PRAGMA application_id = {as_number(RELEASE)}")
            self._db.execute(f"PRAGMA user_version = {self.layout.schema}")

    @property
    def _folder(self) -> str:
        return os.path.dirname(os.path.abspath(self.path))

    def _explained(self) -> ContextManager[None]:
        return self._explains
