# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Space kept beside a node's database for a disk that is full: SQLite needs some even to read, and what frees the disk,
terminate and the reaper, is to be written down first.

It is given up when the file system has little left, and kept again when that is over. What takes more of the disk,
claims and copies of the database, asks `is_short` before.
"""

from __future__ import annotations

import contextlib
import os

from .errors import HeteroError

#: Bytes that are kept: some hundred verbs, of which each writes a log of some 10 pages and a claim's record.
SIZE = 2 << 20
#: Bytes that are little: more than one verb takes.
LITTLE = 512 << 10
#: Bytes above which it is kept again, so that what was freed is not taken at once.
ENOUGH = 4 * SIZE


def path_of(database: str) -> str:
    """Where the space of a node with this database is kept."""
    return f"{os.path.splitext(os.path.abspath(database))[0]}.reserve"


def spend(database: str) -> None:
    """Give it up where little is left."""
    if _left(database) < LITTLE:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path_of(database))


def keep(database: str) -> None:
    """Have it, where there is enough; a file system that can promise no space has none."""
    path = path_of(database)
    if os.path.exists(path) or _left(database) < ENOUGH:
        return
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(file, 0, SIZE)
        finally:
            os.close(file)


def is_short(database: str, more: int = 0) -> bool:
    """Whether nothing that takes space is to be begun: what is kept was given up, or would be.

    :param more: bytes that are about to be written.
    """
    kept = SIZE if os.path.exists(path_of(database)) else 0
    return kept + _left(database) - more < SIZE


def must_not_be_short(database: str, more: int = 0) -> None:
    """HeteroError where it is."""
    if is_short(database, more):
        raise HeteroError(*said(database))


def said(database: str) -> tuple[str, str, str]:
    """(what, thing, remedy) of an error."""
    folder = os.path.dirname(os.path.abspath(database))
    what = f"its file system is full ({_left(database) >> 10} KiB left), and what is left is for ending instances"
    return what, folder, "free space on it, or terminate what can go"


def _left(database: str) -> int:
    """Bytes that we may write."""
    seen = os.statvfs(os.path.dirname(os.path.abspath(database)))
    return seen.f_frsize * (seen.f_bfree if os.geteuid() == 0 else seen.f_bavail)
