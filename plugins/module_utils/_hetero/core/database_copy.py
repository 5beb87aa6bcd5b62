# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies in memory of a database that is only read, where the file itself cannot be: on a full disk or a read-only one,
or of an older release. Whoever reads one asks `written`, and copies anew what others have changed since.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from typing import Callable, ContextManager, List, NamedTuple, Tuple

from . import reserve
from .deadline import Deadline

#: What SQLite says where the file system has no space for what it writes beside the file.
NO_SPACE = ("disk is full", "disk i/o")
#: Seconds to wait for a writer, who makes the index that a look lacked.
SHORT = 0.1
#: Where a copy of the files is made; the nodes' own folder for temporary files may be on the same disk.
MEMORY = "/dev/shm"
#: Inode, size and time (ns) of a database's file and of its log.
Written = List[Tuple[int, int, int]]
#: Opens the file, or ":memory:"; with the locking mode and the seconds to wait for others.
Connect = Callable[[str, str, float], sqlite3.Connection]
#: What is wrong where a copy is read, and what a person does about it.
FULL = ("is on a full file system", reserve.SPACE)
#: As the kernel makes it where it finds errors.
READ_ONLY = (
    "is on a file system that is read-only",
    "see why the kernel made it so (dmesg), mend that, and mount the file system of {folder} to be written",
)


class Opened(NamedTuple):
    """A connection; if it is to a copy, what `written` returned before that was made, and why the copy is read."""

    db: sqlite3.Connection
    when: Written | None = None
    why: tuple[str, ...] = ()


def opened(path: str, connect: Connect, turn: Callable[[], ContextManager[None]], busy: float) -> Opened:
    """Open a file that is only read; as a copy in memory where SQLite's index of its log cannot be made.

    Who has the file for itself needs no index. What is kept for a full disk stays for those who end what fills it.

    :param turn: keeps others who look or make the file from it during a block.
    :param busy: seconds to wait for others.
    :raises sqlite3.OperationalError: it cannot be read.
    """
    deadline, folder = Deadline(busy), os.path.dirname(os.path.abspath(path))
    while True:
        try:
            return Opened(connect(path, "NORMAL", busy))
        except sqlite3.OperationalError as error:
            if is_read_only(folder):
                why = READ_ONLY[0], READ_ONLY[1].format(folder=folder)
                with suppress(OSError):  # there is no place for the copy
                    return Opened(*_of_files(path, connect), why)
            if not any(words in str(error).lower() for words in NO_SPACE):
                raise
        if deadline.passed:
            break
        with suppress(sqlite3.OperationalError), turn(), closing(connect(path, "EXCLUSIVE", SHORT)) as alone:
            return Opened(*copied(alone, path, connect), FULL)
        deadline.nap()
    reserve.spend(path)
    return Opened(connect(path, "NORMAL", busy))


def copied(source: sqlite3.Connection, path: str, connect: Connect) -> tuple[sqlite3.Connection, Written]:
    """Return a copy in memory, and what `written` returned before it was made."""
    before, memory = written(path), connect(":memory:", "NORMAL", 0.0)
    source.backup(memory)
    return memory, before


def _of_files(path: str, connect: Connect) -> tuple[sqlite3.Connection, Written]:
    """Return what `copied` does, of a file on a read-only file system, where SQLite reads no log without its index.

    :raises OSError: there is no place for the copy of the files from which it is made.
    """
    with tempfile.TemporaryDirectory(prefix="hetero-", dir=MEMORY if os.path.isdir(MEMORY) else None) as folder:
        before, copy = written(path), os.path.join(folder, os.path.basename(path))
        for end in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{end}", f"{copy}{end}")
        with closing(connect(copy, "EXCLUSIVE", SHORT)) as source:
            return copied(source, path, connect)[0], before


def written(path: str) -> Written:
    """Return what is different after each change of a database."""
    found: Written = []
    for name in (path, f"{path}-wal"):
        with suppress(FileNotFoundError, NotADirectoryError):
            seen = os.stat(name)
            if seen.st_size:
                found.append((seen.st_ino, seen.st_size, seen.st_mtime_ns))
    return found


def is_read_only(folder: str) -> bool:
    """Return whether a file system takes no new file; it gets none, for this one has no name."""
    try:
        os.close(os.open(folder, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o600))
    except OSError as error:
        return error.errno == errno.EROFS
    return False
