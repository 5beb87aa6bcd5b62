# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies in memory of a database that is only read, where the file itself cannot be: on a full disk, or of an older
release. Whoever reads one asks `written`, and copies anew what others have changed since.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from typing import Callable, ContextManager, List, Tuple

from . import reserve
from .deadline import Deadline

#: What SQLite says where the file system has no space for what it writes beside the file.
NO_SPACE = ("disk is full", "disk i/o")
#: Seconds to wait for a writer, who makes the index that a look lacked.
SHORT = 0.1
#: Inode, size and time (ns) of a database's file and of its log.
Written = List[Tuple[int, int, int]]
#: Opens the file, or ":memory:"; with the locking mode and the seconds to wait for others.
Connect = Callable[[str, str, float], sqlite3.Connection]


def opened(
    path: str, connect: Connect, turn: Callable[[], ContextManager[None]], busy: float
) -> tuple[sqlite3.Connection, Written | None]:
    """Open a file that is only read; as a copy in memory where there is no space for SQLite's index of its log.

    Who has the file for itself needs no index. What is kept for a full disk stays for those who end what fills it.

    :param turn: keeps others who look or make the file from it during a block.
    :param busy: seconds to wait for others.
    :returns: the connection, and with one to a copy what `written` returned before it was made.
    :raises sqlite3.OperationalError: it cannot be read.
    """
    deadline = Deadline(busy)
    while True:
        try:
            return connect(path, "NORMAL", busy), None
        except sqlite3.OperationalError as error:
            if not any(words in str(error).lower() for words in NO_SPACE):
                raise
        if deadline.passed:
            break
        with suppress(sqlite3.OperationalError), turn(), closing(connect(path, "EXCLUSIVE", SHORT)) as alone:
            return copied(alone, path, connect)
        deadline.nap()
    reserve.spend(path)
    return connect(path, "NORMAL", busy), None


def copied(source: sqlite3.Connection, path: str, connect: Connect) -> tuple[sqlite3.Connection, Written]:
    """Return a copy in memory, and what `written` returned before it was made."""
    before, memory = written(path), connect(":memory:", "NORMAL", 0.0)
    source.backup(memory)
    return memory, before


def written(path: str) -> Written:
    """Return what is different after each change of a database."""
    found: Written = []
    for name in (path, f"{path}-wal"):
        with suppress(FileNotFoundError, NotADirectoryError):
            seen = os.stat(name)
            if seen.st_size:
                found.append((seen.st_ino, seen.st_size, seen.st_mtime_ns))
    return found
