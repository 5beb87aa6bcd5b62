# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's database that is gone although something on the node shows that it had one: the refusal, and the way back.

An empty database in its place would say that nobody has anything. What shows it is each kind of node's own.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import Callable, Sequence

from ..core.backups import aside, copies, folder_of, newest_good
from ..core.errors import HeteroError
from ..core.plays import play
from ..core.this_node import THIS_NODE

#: So many of each kind are named.
SHOWN = 3
RECONCILE = play("reconcile")


def must_not_be_lost(database: str, signs: Callable[[], tuple[Sequence[str], str]], mark: str | None = None) -> None:
    """HeteroError where a database is missing, or has no tables, and there are signs that it was not so.

    :param database: its path.
    :param signs: called where it is missing; returns (texts of what shows that it was there, what a person should know
        besides of a copy that is put in its place).
    :param mark: a file that is to be there as long as reconcile has not seen the copy.
    """
    if _is_there(database):
        return
    there, besides = signs()
    # The first of several at once on a new node has made it meanwhile, and what shows that it was there.
    if there and not _is_there(database):
        what = f"is not there, and instances were made on {THIS_NODE} ({listed(there)})"
        raise HeteroError(what, database, f"{_way_back(database, mark)}{besides}")


def said_if_lost(database: str, look: Callable[[], object], begun: str, check: bool = False) -> str | None:
    """What reconcile says of a database that it makes anew; None where it is there.

    :param look: raises where it is lost.
    :param begun: what is not known in the new one.
    :param check: nothing is made in this run.
    :raises HeteroError: it is lost, and a copy is there, which knows what the node itself does not tell.
    """
    try:
        look()
    except HeteroError as error:
        if copies(database):
            raise
        return f"{database}: {error.what}: an empty one {'would be' if check else 'is'} begun; {begun}"
    return None


def listed(texts: Sequence[str]) -> str:
    """The first few of them."""
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more


def _is_there(database: str) -> bool:
    """Whether there is a file with tables, or one that SQLite cannot read: what is wrong with that its opening says."""
    if not (os.path.exists(database) and os.path.getsize(database)):
        return False
    try:
        # Not mode=ro, which would leave the log's files behind. SQLite's own open: another would drop its locks.
        with closing(sqlite3.connect(f"file:{database}?mode=rw", uri=True)) as db:
            return db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0
    except sqlite3.DatabaseError:
        return True


def _way_back(database: str, mark: str | None) -> str:
    newest = newest_good(database)
    if newest is None and copies(database):
        way = f"run on {THIS_NODE}: {aside(database)} and then, where the inventory is: {RECONCILE}"
        return f"none of its copies is whole ({listed(copies(database)[::-1])}): {way}, which makes it anew"
    if newest is None:
        return f"no copy of it is there: {RECONCILE} makes it anew, and says what of it is known again"
    logs = [path for path in (f"{database}-wal", f"{database}-shm") if os.path.exists(path)]
    first = f"touch {mark} && " if mark else ""
    first += f"mv {' '.join(logs)} {folder_of(database)}/ && " if logs else ""
    return f"run on {THIS_NODE}: {first}cp -p {newest} {database} and then, where the inventory is: {RECONCILE}"
