# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file beside a node's database that keeps space for when the disk is full.

Terminate and the reaper, which free the disk, must write to the database first. While the file system has little space
left, each opening by somebody who may write, and each transaction, gives up a part of the file, and no more: those who
fill the disk take what is free. Who only reads does without (database.py). The file is made whole again when there is
enough. Work that takes more of the disk (claims, copies of the database) asks `is_short` first.
"""

from __future__ import annotations

import contextlib
import os

from .errors import HeteroError

#: Bytes that are kept: 32 times a PART, of which a verb beside who goes on filling takes one to three; and enough for
#: some hundred verbs beside nobody, as each writes some 10 pages of log and a claim's record.
SIZE = 2 << 20
#: Bytes free below which a part of the file is given up: more than one verb takes.
LITTLE = 256 << 10
#: Bytes that are given up at once: enough for a transaction, or for SQLite's index of its log (32 KiB) and a record.
PART = 64 << 10
#: Bytes free from which the file is made again: more than SIZE, so that freed space is not taken again at once.
ENOUGH = 4 * SIZE
#: What a person does about a full file system.
SPACE = "free space on it, or terminate what can go"


def path_of(database: str) -> str:
    """Return the path of the file that keeps the space for this database."""
    return f"{os.path.splitext(os.path.abspath(database))[0]}.reserve"


def spend(database: str) -> None:
    """Give up a part of the file where less than LITTLE is free."""
    if _left(database) >= LITTLE:
        return
    path, rest = path_of(database), _kept(database) - PART
    with contextlib.suppress(FileNotFoundError):
        if rest > 0:
            os.truncate(path, rest)
        else:
            os.unlink(path)


def keep(database: str) -> None:
    """Make the file whole where ENOUGH is free; make none on a file system that cannot promise space."""
    if _kept(database) >= SIZE or _left(database) < ENOUGH:
        return
    with contextlib.suppress(OSError):
        file = os.open(path_of(database), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(file, 0, SIZE)
        finally:
            os.close(file)


def is_short(database: str, more: int = 0) -> bool:
    """Return whether no work that takes space may begin: less than SIZE is free, the kept space counted as free.

    :param more: bytes that are about to be written.
    """
    return min(_kept(database), SIZE) + _left(database) - more < SIZE


def must_not_be_short(database: str, more: int = 0) -> None:
    """Raise HeteroError where is_short is true.

    :param more: bytes that are about to be written.
    """
    if is_short(database, more):
        raise HeteroError(*said(database))


def said(database: str) -> tuple[str, str, str]:
    """Return (what, thing, remedy) of the error for a full file system."""
    folder = os.path.dirname(os.path.abspath(database))
    what = f"its file system is full ({_left(database) >> 10} KiB left), and what is left is for ending instances"
    return what, folder, SPACE


def _kept(database: str) -> int:
    """Return the bytes of the file, 0 where there is none."""
    try:
        return os.stat(path_of(database)).st_size
    except FileNotFoundError:
        return 0


def _left(database: str) -> int:
    """Return the bytes that this process may still write on the database's file system."""
    seen = os.statvfs(os.path.dirname(os.path.abspath(database)))
    return seen.f_frsize * (seen.f_bfree if os.geteuid() == 0 else seen.f_bavail)
