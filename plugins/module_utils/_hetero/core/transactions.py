# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Transactions of a database: each by itself, within another one, or several that are committed together.

database.py opens the file and knows where what is written goes.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Iterator

from .deadline import Deadline
from .errors import HeteroError
from .write_turns import GIVE_WAY, turn

if TYPE_CHECKING:
    import threading

READ, WRITE = "BEGIN DEFERRED", "BEGIN IMMEDIATE"
#: So many times the wait for one other process's transaction, while many are served.
TURNS = 12
#: Seconds for which other processes wait at most for what is committed together, but for the part that is running.
LONGEST = 0.1


class Group:
    """Transactions that are committed together: whether one is open in the database, and whether one of them runs.

    :ivar turn: the turn among all processes that write, while it is open.
    :ivar is_wanted: tells whether another process waits for that turn.
    :ivar since: counts from when the turn was taken.
    :ivar failed: why what was done so far could not be committed.
    """

    def __init__(self) -> None:
        self.is_open = self.in_part = False
        self.turn = ExitStack()
        self.is_wanted: Callable[[], bool] | None = None
        self.since = Deadline(LONGEST)
        self.failed: BaseException | None = None


class Transactions(ABC):
    """The part of a Database that begins and ends its transactions."""

    path: str
    busy: float
    #: What a transaction changed, by names of the store's own. The store's function is called with it before the
    #: commit; it is not called where the transaction is rolled back or nothing is kept.
    touched: dict[Any, Any]
    before_commit: Callable[[dict[Any, Any]], None] | None = None
    _copied: tuple[str, ...]
    _writes: bool
    _turn: threading.RLock
    _db: Any
    _group: Group | None = None
    #: Counts from when the turn was given back and another process waited for it.
    _given_way: Deadline = Deadline(0)

    @property
    @abstractmethod
    def _is_kept(self) -> bool:
        """Return whether writes go to the file, and not to a copy in memory."""

    @abstractmethod
    def _explained(self) -> ContextManager[None]:
        """Make HeteroErrors of SQLite's errors."""

    @abstractmethod
    def _see_what_is_new(self) -> None:
        """Read the file anew where it is read as a copy and others have written to it."""

    @abstractmethod
    def _spend(self) -> None:
        """Give up a part of the kept space where the disk is full."""

    def transaction(self, dry: bool = False) -> ContextManager[None]:
        """Run the block as one transaction, which locks out other writers from its first line.

        A transaction inside another one becomes part of that.

        :param dry: roll everything back at the end (check mode).
        """
        return self._block(WRITE, dry)

    def snapshot(self) -> ContextManager[None]:
        """Let all reads in the block see the same moment of the database; others may write meanwhile."""
        return self._block(READ)

    @contextmanager
    def _block(self, begin: str, dry: bool = False) -> Iterator[None]:
        with self._turn, self._explained():
            group = self._group
            if self._is_within or (begin == READ and self._db.in_transaction):
                yield
                return
            if group is not None and begin != READ and not dry:
                with self._part(group):
                    yield
                return
            self.commit()
            with self._alone_with(begin, dry):
                yield

    @property
    def _is_within(self) -> bool:
        """Return whether a transaction has begun that takes in what is done now; none has between two of a group."""
        group = self._group
        return self._db.in_transaction and (group is None or group.in_part or not group.is_open)

    @contextmanager
    def _alone_with(self, begin: str, dry: bool) -> Iterator[None]:
        """Run the block as a transaction of its own."""
        with self._turn_to_write(begin, dry):
            self._see_what_is_new()
            if begin != READ and self._writes and not dry:
                self._spend()
            try:  # also what a signal raises as soon as it has begun (KeyboardInterrupt) must not leave it open
                self._db.execute(begin)
                self.touched.clear()
                before = self._db.total_changes
                yield
                if self._copied and not dry and self._db.total_changes != before:
                    why, remedy = self._copied
                    raise HeteroError(f"{why} and was opened only to be read: nothing is written", self.path, remedy)
                if self.touched and self.before_commit and not dry and self._is_kept:
                    self.before_commit(dict(self.touched))
                self._db.execute("ROLLBACK" if dry else "COMMIT")
            finally:
                self.touched.clear()
                self._take_back()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Commit all transactions that this thread begins in the block as one, at its end, and at each `commit`.

        Each is whole or not at all by itself: one that fails takes back what it wrote, and no more. What was done
        before is committed also where the block ends by an error. Other threads wait until then; other processes that
        write wait for LONGEST, for after that what was done is committed sooner.

        :raises HeteroError: at the end, where any of it could not be committed, also if that was told before.
        """
        with self._turn:
            if self._group is not None or self._db.in_transaction or not (self._writes and self._is_kept):
                yield
                return
            group = Group()
            try:
                self._group = group
                try:
                    yield
                finally:
                    self.commit()
            finally:
                self._group = None
                with group.turn:
                    self._take_back()
            if group.failed is not None:
                with self._explained():
                    raise group.failed

    def commit(self) -> None:
        """Commit at once what was done together so far; do nothing outside of `together`, or within a transaction.

        :raises HeteroError: that could not be done, or a part of it took all of it back.
        """
        with self._turn:
            group = self._group
            if group is None or group.in_part or not group.is_open:
                return
            try:
                with self._explained():
                    self._db.execute("COMMIT")
            except HeteroError as error:
                group.failed = group.failed or error
                self._take_back()
                raise
            finally:
                if not self._db.in_transaction:  # else a signal came first (KeyboardInterrupt): that is to come
                    group.is_open = False
                    if group.is_wanted is not None and group.is_wanted():
                        self._given_way = Deadline(GIVE_WAY)
                    group.turn.close()

    def _take_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _take_back_part(self) -> None:
        try:
            self._db.execute("ROLLBACK TO part")
            self._db.execute("RELEASE part")
        except sqlite3.OperationalError as error:  # a signal came before it began, or when it had ended
            if "no such savepoint" not in str(error):
                raise

    def _open_group(self, group: Group) -> None:
        self._given_way.nap(GIVE_WAY)
        with ExitStack() as stack:
            group.is_wanted = stack.enter_context(self._turn_to_write(WRITE, False))
            group.since = Deadline(LONGEST)
            self._spend()
            try:
                self._db.execute(WRITE)
                group.turn, group.is_open = stack.pop_all(), True
            except BaseException:  # such as KeyboardInterrupt, before or after it is said to be open
                group.is_open = False
                with group.turn:
                    self._take_back()
                raise

    @contextmanager
    def _part(self, group: Group) -> Iterator[None]:
        """Run the block as one of the transactions that are committed together."""
        if not group.is_open:
            self._open_group(group)
        try:
            group.in_part = True
            self._db.execute("SAVEPOINT part")
            self.touched.clear()
            yield
            if self.touched and self.before_commit:
                self.before_commit(dict(self.touched))
            self._db.execute("RELEASE part")
        except BaseException as error:
            if self._db.in_transaction:
                self._take_back_part()
            else:  # SQLite took back all of it, such as on a full disk
                group.failed, group.is_open = group.failed or error, False
                group.turn.close()
            raise
        finally:
            self.touched.clear()
            group.in_part = False
        if group.since.passed:
            self.commit()

    def _turn_to_write(self, begin: str, dry: bool) -> ContextManager[Callable[[], bool] | None]:
        """Return the turn among all processes that write; none is needed within a transaction, or for a copy."""
        writes = begin != READ and self._writes and not dry
        if writes and not self._db.in_transaction and self._is_kept:
            return turn(self.path, TURNS * self.busy)
        return nullcontext()
