# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SQLite file below a store: opening, its schema number, transactions, and what SQLite's errors mean to a person.

Which tables there are and what their rows mean is the stores' business. The file is never deleted or repaired here:
that is a person's decision.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable

from .deadline import Deadline
from .errors import HeteroError, TimedOut


@dataclass(frozen=True)
class Layout:
    """The tables of one kind of database.

    :param schema: raised with each change of the tables; kept in the file as PRAGMA user_version.
    :param set_up: what a person does about a file of another schema.
    :param restore: from the path of a damaged file to what a person does about it.
    """

    schema: int
    tables: tuple
    set_up: str
    restore: Callable[[str], str]


#: What SQLite says (any Python from 3.8 has the text, only 3.11 the code) → (what is wrong, what to do).
MEANINGS = (
    ("locked", "has been locked by another process for {busy:g} s", "{holder}"),
    ("busy", "has been locked by another process for {busy:g} s", "{holder}"),
    ("not a database", "is no SQLite database", "{broken}"),
    ("malformed", "is damaged", "{broken}"),
    ("file is encrypted", "is no SQLite database", "{broken}"),
    ("readonly", "cannot be written", "make the file and its folder writable for {user}"),
    ("unable to open", "cannot be opened", "make the file and its folder readable and writable for {user}"),
    ("disk is full", "cannot grow, its disk is full", "free space on the file system of {folder}"),
    ("disk i/o", "cannot be read or written (disk I/O error)", "look at the disk of {folder}: space, dmesg"),
)
HOLDER = "see who holds it (fuser -v {path}), then run this again"


class Database:
    """An open database; one connection that threads may share.

    :param layout: its tables.
    :param create: make a missing file (0600) and its folder (0700). With False a missing or still empty file reads as
        empty and nothing written is kept, so that check mode and information leave no trace.
    :param busy: seconds to wait for another process's transaction.
    :raises HeteroError: locked, damaged, unreadable, or of another schema; the file is left as it is.
    """

    def __init__(self, path, layout, create=True, busy=10.0):
        self.path = path
        self.layout = layout
        self.busy = busy
        self._turn = threading.RLock()
        self._db: Any = None  # a sqlite3.Connection, until close
        with self._explained():
            if create:
                self._create_file()
            self._db = self._connect(path if create or os.path.exists(path) else ":memory:")
            if not self._is_ready():
                if create:
                    self._create_tables()
                else:
                    self._db.close()
                    self._db = self._connect(":memory:")
                    self._write_tables()

    def close(self):
        if self._db is not None:
            self._db.close()
            self._db = None

    def transaction(self, dry=False):
        """All of the block, or nothing; from its first line nobody else writes. Inside another one it joins that.

        :param dry: take everything back at the end (check mode).
        """
        return self._block("BEGIN IMMEDIATE", dry)

    def snapshot(self):
        """Reads in the block see one moment of the database; nobody is kept from writing."""
        return self._block("BEGIN DEFERRED")

    @contextmanager
    def _block(self, begin, dry=False):
        with self._turn, self._explained():
            if self._db.in_transaction:
                yield
                return
            self._db.execute(begin)
            try:
                yield
                self._db.execute("ROLLBACK" if dry else "COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def rows(self, sql, values=()):
        """The rows of a query, as a list."""
        with self._turn, self._explained():
            return self._db.execute(sql, values).fetchall()

    def write(self, sql, values=()):
        """Run one statement; returns the id of the row it inserted."""
        with self.transaction():
            return self._db.execute(sql, values).lastrowid

    def _connect(self, name):
        # isolation_level None: transactions are begun and ended here, never by the sqlite3 module.
        db = sqlite3.connect(name, timeout=self.busy, isolation_level=None, check_same_thread=False)
        db.row_factory = sqlite3.Row
        # FULL: a transaction that was reported done survives a power cut (NORMAL under WAL may lose it).
        db.execute("PRAGMA synchronous = FULL")
        return db

    def _create_file(self):
        """Only a missing file is opened here: closing one that is in use drops SQLite's locks of this process."""
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

    def _is_ready(self):
        """True: our tables, our number. False: a new file. Anything else is an error."""
        with self.snapshot():  # another process may be writing the tables just now
            number = self._db.execute("PRAGMA user_version").fetchone()[0]
            tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if number == self.layout.schema:
            return True
        if number:
            older = "an older" if number < self.layout.schema else "a newer"
            what = f"has schema {number}, written by {older} release (this one reads {self.layout.schema})"
            raise HeteroError(what, self.path, self.layout.set_up)
        if tables:
            raise HeteroError("is a database of something else", self.path, "set state_db to another path")
        return False

    def _create_tables(self):
        """Switch to WAL and write the tables, one process at a time: the switch does not wait for a lock by itself."""
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._take_turn(folder)
            mode = self._db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode != "wal":
                raise HeteroError(
                    f"cannot have a write-ahead log here (journal mode stays {mode})",
                    self.path,
                    "put state_db on a local disk",
                )
            if not self._is_ready():
                self._write_tables()
        finally:
            os.close(folder)

    def _take_turn(self, folder):
        deadline = Deadline(self.busy)
        while True:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError as error:
                if deadline.passed:
                    raise TimedOut(
                        f"another process has been creating it for {self.busy:g} s",
                        self.path,
                        HOLDER.format(path=self.path),
                    ) from error
            deadline.nap()

    def _write_tables(self):
        with self.transaction():
            for table in self.layout.tables:
                self._db.execute(table)
            self._db.execute(f"PRAGMA user_version = {self.layout.schema}")

    @property
    def _folder(self):
        return os.path.dirname(os.path.abspath(self.path))

    @contextmanager
    def _explained(self):
        """Say in words what SQLite refused."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            said = str(error)
            words = {
                "path": self.path,
                "folder": self._folder,
                "busy": self.busy,
                "user": f"user id {os.geteuid()}",
                "broken": self.layout.restore(self.path),
                "holder": HOLDER.format(path=self.path),
            }
            for part, what, remedy in MEANINGS:
                if part in said.lower():
                    what = f"{what.format(**words)} (SQLite: {said})"
                    raise HeteroError(what, self.path, remedy.format(**words)) from error
            raise HeteroError(f"SQLite says: {said}", self.path, words["broken"]) from error
