# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of a node's database beside it, each checked before it counts; retention.py says which of them stay.

The commands `hetero backup` and `hetero gpu-backup` decide when a copy is made. A damaged database is never touched,
and neither is what somebody else put into the folder.
"""

from __future__ import annotations

import filecmp
import os
import re
import sqlite3
import stat
import sys
import time
from contextlib import closing, contextmanager, suppress
from typing import Any, Callable, Dict, Iterator, Mapping

from . import reserve, retention
from .deadline import Deadline
from .errors import HeteroError
from .locks import taken
from .plays import play
from .this_node import THIS_NODE

#: Seconds to wait for another process's copy: one of 1.4 GiB takes a minute.
OTHERS = 300.0
END = ".db"
#: The time in a copy's name; a number follows where the clock was set back.
STAMP = "%Y%m%dT%H%M%SZ"
OWN = re.compile(r"(\d{8}T\d{6}Z)(\+\d+)?")
#: Words in SQLite's errors about a damaged database; its other errors are about the disk, permissions or other
#: processes.
DAMAGED = ("malformed", "not a database", "encrypted")
#: {name of a table whose rows say what is whose: the function by which verbs read a row}. A copy that was made after
#: one of these rows was damaged, and so has it as well, is none to put back.
Rights = Mapping[str, Callable[[Dict[str, Any]], object]]
#: What such a function raises for values that no release writes.
UNREADABLE = (ValueError, TypeError, KeyError, OverflowError, RecursionError)


def folder_of(database: str) -> str:
    """Return the folder of a database's copies."""
    return os.path.join(os.path.dirname(os.path.abspath(database)), "backups")


def copies(database: str) -> list[str]:
    """Return the paths of all copies, the oldest first; a name is the database's and the UTC time of the copy.

    Before them are those that a person has put there under other names, of which nobody knows the time.
    """
    folder, stem = folder_of(database), _stem(database)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    there = sorted(name[: -len(END)] for name in names if name.startswith(stem) and name.endswith(END))
    return sorted((os.path.join(folder, name + END) for name in there), key=_is_own)


def newest_good(database: str, rights: Rights | None = None) -> str | None:
    """Return the path of the newest copy that is whole, has tables, and can be read; None where there is none."""
    return next((path for path in reversed(copies(database)) if _is_good(path, rights)), None)


def aside(database: str) -> str:
    """Return the shell command by which a person moves all copies of a database into the folder `aside`."""
    kept = _aside(database)
    return f"mkdir -p {kept} && mv {os.path.join(folder_of(database), _stem(database))}*{END} {kept}/"


def make(database: str, whole: bool = False) -> str | None:
    """Copy a database while others use it; return the copy's path, or None where nothing changed since the last copy.

    Copies of which newer ones take the place go first.

    :param whole: have SQLite check the copy's indexes too, which is done once a day in any case.
    :raises HeteroError: the database is damaged, or the copy could not be written. Earlier copies stay.
    """
    folder = folder_of(database)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with _alone(folder):
            return _made(database, folder, whole)
    except OSError as error:
        remedy = "free space there, or correct its permissions"
        raise HeteroError(f"no copy could be written ({error.strerror})", folder, remedy) from error


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Have one process at a time make copies: one by hand may meet that of the timer."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not taken(lock, Deadline(OTHERS)):
            what = f"another process has been making a copy for {OTHERS:g} s"
            raise HeteroError(what, folder, "wait for it, then run this again")
        yield
    finally:
        os.close(lock)


def _made(database: str, folder: str, whole: bool) -> str | None:
    new, mark = (os.path.join(folder, f".{_stem(database)}{name}") for name in ("new", "checked"))
    thin(database)
    reserve.must_not_be_short(database, os.path.getsize(database))
    if os.path.exists(new):
        os.unlink(new)  # left by a copy that was cut off
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    whole = whole or not _is_recent(mark)
    _copy(database, new, whole)
    if whole:
        os.close(os.open(mark, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        os.utime(mark, (time.time(),) * 2)
    before = copies(database)
    if before and filecmp.cmp(before[-1], new, shallow=False):
        os.unlink(new)
        return None
    path = os.path.join(folder, _name(database, before))
    os.rename(new, path)
    return path


def thin(database: str) -> list[str]:
    """Remove copies that need not stay (retention.py), and return their paths.

    A copy stays nevertheless if the next newer copy that stays is damaged: it may be the last good one of its time.
    """
    every = [path for path in copies(database) if _is_own(path)]
    too_many = retention.surplus([_stamp(path) for path in every])
    gone: list[str] = []
    good: dict[int, bool] = {}
    for position in too_many:
        heir = min({*range(position + 1, len(every))} - {*too_many})
        if heir not in good:
            good[heir] = _is_good(every[heir])
        with suppress(FileNotFoundError):  # another process makes a copy before it upgrades the database
            if good[heir] and stat.S_ISREG(os.lstat(every[position]).st_mode):
                os.unlink(every[position])
                gone.append(every[position])
    return gone


def _own(copy: str) -> re.Match[str] | None:
    return OWN.fullmatch(os.path.basename(copy)[: -len(END)].rpartition("-")[2])


def _is_own(copy: str) -> bool:
    """Return whether a copy has a name that only ours have."""
    return _own(copy) is not None


def _stamp(copy: str) -> str:
    """Return when a copy was made. The name of one made after the clock was set back has the time of another."""
    found = _own(copy)
    if found and found[2] is None:
        return found[1]
    with suppress(FileNotFoundError):
        return time.strftime(STAMP, time.gmtime(os.lstat(copy).st_mtime))
    return ""


def _is_recent(mark: str) -> bool:
    """Return whether all of a copy was checked within a day. A time to come, as of a clock set back, does not count."""
    try:
        return 0 <= time.time() - os.lstat(mark).st_mtime < retention.WHOLE_CHECK
    except FileNotFoundError:
        return False


def say(database: str) -> int:
    """Make a copy and name it on standard output, for the `hetero` commands; return their exit status."""
    if not os.path.exists(database):
        sys.stdout.write(f"{database} is not there yet: nothing was ever claimed\n")
        return 0
    path = make(database)
    sys.stdout.write(f"{path}\n" if path else "nothing changed since the last copy\n")
    return 0


def _name(database: str, before: list[str]) -> str:
    """Return the name of a new copy. It sorts after all others, also where the clock was set back.

    :param before: paths of the copies that are there.
    """
    name = _stem(database) + time.strftime(STAMP, time.gmtime())
    last = os.path.basename(before[-1])[: -len(END)] if before and _is_own(before[-1]) else ""
    if name <= last:
        stamp, _plus, number = last.partition("+")
        name = f"{stamp}+{int(number or 0) + 1:06}"
    return name + END


def _stem(database: str) -> str:
    """Return how the names of a database's copies begin; a machine of two kinds has two databases in one folder."""
    return f"{os.path.splitext(os.path.basename(database))[0]}-"


def _copy(database: str, new: str, whole: bool) -> None:
    """Copy by SQLite's own online backup, and have SQLite check every page of the copy.

    :param whole: whether it compares indexes with their tables too, which takes several times as long.
    """
    check = "integrity_check" if whole else "quick_check"
    try:
        original = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        with closing(original) as source, closing(sqlite3.connect(new)) as target:
            source.backup(target)
            found = " ".join(target.execute(f"PRAGMA {check}").fetchone()[0].split())
    except sqlite3.DatabaseError as error:
        found = str(error)
        if not any(word in found for word in DAMAGED):
            remedy = "free space there, or correct its permissions; the database is as it was"
            raise HeteroError(f"no copy could be written (SQLite: {found})", os.path.dirname(new), remedy) from error
    if found != "ok":
        os.unlink(new)
        raise HeteroError(f"was not copied (SQLite: {found})", database, how_to_restore(database))


def _is_good(copy: str, rights: Rights | None = None) -> bool:
    try:
        with closing(sqlite3.connect(f"file:{copy}?mode=ro&immutable=1", uri=True)) as db:
            tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            whole = tables > 0 and db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
            return whole and all(_makes_sense(db, table, read) for table, read in (rights or {}).items())
    except sqlite3.DatabaseError:
        return False


def _makes_sense(db: sqlite3.Connection, table: str, read: Callable[[Dict[str, Any]], object]) -> bool:
    """Return whether verbs could read all rows of a table."""
    found = db.execute(f"SELECT * FROM {table}")
    columns = [name for name, *_rest in found.description]
    try:
        for row in found:
            read(dict(zip(columns, row)))
    except UNREADABLE:
        return False
    return True


def how_to_restore(
    database: str, copy: str | None = None, mark: str | None = None, rights: Rights | None = None
) -> str:
    """Return the commands by which a person moves a bad database aside and puts a copy in its place.

    :param copy: path of the copy (default: the newest one that is whole).
    :param mark: a file that must exist until reconcile has seen the copy.
    """
    copy = copy or newest_good(database, rights)
    kept = _aside(database)
    ways = [f"mkdir -p {kept}", f"mv --backup=numbered {database}* {kept}/"]
    if copy:
        ways += [f"touch {mark}"] if mark else []
        ways.append(f"cp -p {copy} {database}")
    what = f"run on {THIS_NODE}: {' && '.join(ways)} and then, where the inventory is: {play('reconcile')}"
    return f"{what}, which says what of it is known again"


def _aside(database: str) -> str:
    """Return the folder into which a person moves a database and copies that are no longer used, but kept."""
    return os.path.join(folder_of(database), "aside")
