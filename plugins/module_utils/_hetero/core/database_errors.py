# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What SQLite's errors mean to a person, and what to do about each."""

from __future__ import annotations

import os
import sqlite3
from typing import Any, Callable, NoReturn

from . import database_copy, reserve
from .errors import HeteroError
from .plays import play

#: The remedy where something that is no file is in the database's place.
NO_FILE = f"see what it is, and move it away or name another file; then {play('reconcile')} says what is known again"
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
#: What they say on a file system that is read-only.
CANNOT_WRITE = ("readonly", "unable to open", "disk i/o")
#: Of what may not stand beside a row of another: the database is whole, and as it was before.
CONTRARY = "has something else in place of what was to be written, of which nothing was (SQLite: {said})"
CONTRARY_WAY = f"run this again, for another may have been at work; if it says so again, {play('reconcile')} tells more"
HOLDER = "see who holds it (fuser -v {path}), then run this again"


class Explained:
    """Turns SQLite's errors in a block into HeteroErrors that say what is wrong and what to do; a context manager for
    any number of blocks, also within each other.

    :param path: the database.
    :param busy: seconds for which another process's transaction was waited for.
    :param restore: takes the path of a damaged file, returns what a person does about it.
    """

    def __init__(self, path: str, busy: float, restore: Callable[[str], str]) -> None:
        self._path, self._busy, self._restore = path, busy, restore

    def __enter__(self) -> None: ...

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, sqlite3.DatabaseError):
            self._explain(error)

    def _explain(self, error: sqlite3.DatabaseError) -> NoReturn:
        path, busy, restore = self._path, self._busy, self._restore
        said, folder = str(error), os.path.dirname(os.path.abspath(path))
        if "disk i/o" in said.lower() and reserve.is_short(path):
            said = f"database or disk is full, {said}"
        words: dict[str, Any] = {
            "path": path,
            "folder": folder,
            "busy": busy,
            "user": f"user id {os.geteuid()}",
            "broken": restore(path),
            "holder": HOLDER.format(path=path),
        }
        beside = [f"{path}{end}" for end in ("", "-wal", "-shm")]
        for name in [name for name in beside if os.path.lexists(name) and not os.path.isfile(name)]:
            raise HeteroError(f"is no file, nor leads to one (SQLite: {said})", name, NO_FILE) from error
        for part, what, remedy in MEANINGS:
            if part in said.lower():
                if part in CANNOT_WRITE and database_copy.is_read_only(folder):
                    what, remedy = database_copy.READ_ONLY
                what = f"{what.format(**words)} (SQLite: {said})"
                raise HeteroError(what, path, remedy.format(**words)) from error
        if isinstance(error, sqlite3.IntegrityError):
            raise HeteroError(CONTRARY.format(said=said), path, CONTRARY_WAY) from error
        raise HeteroError(f"SQLite says: {said}", path, words["broken"]) from error
