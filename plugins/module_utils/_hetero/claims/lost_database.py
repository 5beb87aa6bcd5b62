# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The refusal to work without a node's database if something on the node shows that it had one, and the way back.

An empty database in its place would say that nobody has anything. Each kind of node knows its own signs.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Callable, Sequence

from ..core.backups import aside, copies, folder_of, newest_good
from ..core.errors import HeteroError
from ..core.plays import play
from ..core.this_node import THIS_NODE

if TYPE_CHECKING:
    from ..core.backups import Rights

#: Number of signs that a message names.
SHOWN = 3
RECONCILE = play("reconcile")
#: Of something that is there, and whose claim the database does not have.
NO_CLAIM = f"no claim of it is in the database of {THIS_NODE}, which may be older than that (put back from a copy)"


def must_not_be_lost(
    database: str,
    signs: Callable[[], tuple[Sequence[str], str]],
    rights: Rights,
    mark: str | None = None,
) -> None:
    """Raise HeteroError if a database is missing, or has no tables, although there are signs that it had some.

    :param database: its path.
    :param signs: is called if it is missing; returns (texts of the signs, what else a person should know of a copy that
        is put in its place).
    :param rights: what of a copy must be readable for it to be put in its place.
    :param mark: path of a file that is there until reconcile has looked at the copy.
    """
    if _is_there(database):
        return
    there, besides = signs()
    # On a new node, another process may have made the database, and then the signs, meanwhile.
    if there and not _is_there(database):
        what = f"is not there, and instances were made on {THIS_NODE} ({listed(there)})"
        raise HeteroError(what, database, f"{_way_back(database, rights, mark)}{besides}")


def said_if_lost(database: str, look: Callable[[], object], begun: str, check: bool = False) -> str | None:
    """Return what reconcile says of a lost database that it makes anew, or None if it is not lost.

    :param look: raises HeteroError if the database is lost.
    :param begun: what the new database does not know, in words.
    :param check: whether this run makes nothing.
    :raises HeteroError: it is lost and there is a copy, which knows what the node itself cannot tell.
    """
    try:
        look()
    except HeteroError as error:
        if copies(database):
            raise
        return f"{database}: {error.what}: an empty one {'would be' if check else 'is'} begun; {begun}"
    return None


def listed(texts: Sequence[str]) -> str:
    """Return the first few texts and the number of the others."""
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more


def _is_there(database: str) -> bool:
    """Return whether there is a file with tables, or one that SQLite cannot read: opening that one says what is wrong.
    """
    if not (os.path.exists(database) and os.path.getsize(database)):
        return False
    try:
        # mode=ro would leave the log's files behind. Opened by SQLite itself, because closing another descriptor would
        # drop its locks.
        with closing(sqlite3.connect(f"file:{database}?mode=rw", uri=True)) as db:
            return db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0
    except sqlite3.DatabaseError:
        return True


def _way_back(database: str, rights: Rights, mark: str | None) -> str:
    newest = newest_good(database, rights)
    if newest is None and copies(database):
        way = f"run on {THIS_NODE}: {aside(database)} and then, where the inventory is: {RECONCILE}"
        return f"none of its copies is whole ({listed(copies(database)[::-1])}): {way}, which makes it anew"
    if newest is None:
        return f"no copy of it is there: {RECONCILE} makes it anew, and says what of it is known again"
    logs = [path for path in (f"{database}-wal", f"{database}-shm") if os.path.exists(path)]
    first = f"touch {mark} && " if mark else ""
    first += f"mv {' '.join(logs)} {folder_of(database)}/ && " if logs else ""
    return f"run on {THIS_NODE}: {first}cp -p {newest} {database} and then, where the inventory is: {RECONCILE}"
