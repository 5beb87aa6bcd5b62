# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One verb at a time on a board: a flock, which the kernel drops with its process, and a text in it naming the holder.

The text is for people. Whether the lock is held the kernel alone says, so what a killed holder left is no obstacle.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Callable, Iterable, Iterator

from . import askers
from .errors import FULL, HeteroError, Refused, TimedOut

if TYPE_CHECKING:
    from .deadline import Deadline

#: A holder that has the lock but has not written its name yet (microseconds), or one that was killed in between.
UNNAMED = "another process"
#: Text of a look at a thing on which another process works.
BUSY = "busy with {who}: not looked at"
PROCESS = re.compile(r" ?\bpid \d+$")
#: Files by whose flock processes take turns, for root alone. A folder in which they work, or a cgroup's, can be locked
#: as well, and for ever, by any account that may open it.
TURNS, MOST_TURNS = "/run/hetero-turns", 256
#: Paths of the locks that this process holds.
OURS: set[str] = set()
#: In /proc/PID/fdinfo/N, of a flock that came with the open file: who took it (0 for one that is gone, seen from within
#: a pid namespace), and of which file.
FLOCK = re.compile(r"^lock:\s+\d+: FLOCK\s+\S+\s+\S+\s+(\d+) (\S+) ", re.MULTILINE)


@contextmanager
def lock(
    run_folder: str,
    board_name: str,
    verb: str,
    actor: str,
    deadline: Deadline,
    waiting: Callable[[str], None] | None = None,
    quiet: float = 0.0,
) -> Iterator[None]:
    """Hold the lock of a board for the block.

    :param waiting: called with "held by …; waited for until … s are over" where somebody else holds it, and again for
        each further holder.
    :param quiet: seconds for which that is not done.
    :raises TimedOut: the deadline passed; the holder is named.
    :raises Refused: whoever asked for this process's work is gone, and nothing of it has begun.
    """
    file = _open(run_folder, board_name)
    try:
        _take(file, board_name, deadline, waiting, quiet)
        OURS.add(_path(run_folder, board_name))
        _write(file, json.dumps({"pid": os.getpid(), "verb": verb, "actor": actor, "since": round(time.time(), 3)}))
        try:
            yield
        finally:
            OURS.discard(_path(run_folder, board_name))
            askers.asked_by(None)
            _write(file, "")
    finally:
        # Closing ends the flock. The file stays: one that is unlinked while another waits would make two locks of one.
        os.close(file)


def is_ours(run_folder: str, board_name: str) -> bool:
    """Return whether this process works on a board."""
    return _path(run_folder, board_name) in OURS


def held_by_another(run_folder: str, board_name: str) -> bool:
    """Return whether another process than this one works on a board just now."""
    return not is_ours(run_folder, board_name) and held_by(run_folder, board_name) is not None


def held_by(run_folder: str, board_name: str, instance: str | None = None) -> str | None:
    """Return, in words, who works on a board just now; None for nobody. It waits for nothing and writes nothing.

    :param instance: whose board it is.
    """
    try:
        file = os.open(_path(run_folder, board_name), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        name = _named(file, everywhere=True)
        return name.replace(" (", f" of {instance} (", 1) if instance else name
    finally:
        os.close(file)
    return None


def open_turn(kind: str, folder: str) -> int:
    """Return the open file by whose flock processes take turns at a folder.

    :param kind: of their work. Several folders have one turn, so nobody may take two of a kind.
    :raises OSError: there is no such folder, or no file can be opened.
    """
    name = f"{kind}-{os.stat(folder).st_ino % MOST_TURNS}"
    os.makedirs(TURNS, mode=0o700, exist_ok=True)
    return os.open(os.path.join(TURNS, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def taken(file: int, deadline: Deadline) -> bool:
    """Take the flock of an open file for this process alone; return False where another has it until the deadline."""
    while not is_taken(file):
        if deadline.passed:
            return False
        deadline.nap()
    return True


def is_taken(file: int) -> bool:
    """Take the flock of an open file for this process alone, if nobody else has it just now; return whether it is."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def holder_of(file: int) -> str:
    """Return who has the flock of an open file that names nobody, as its process id.

    That is who took it, or where that one was killed, the children that it left it to: all of them have to end.

    :returns: UNNAMED where that cannot be told: nobody has it any more, or a process outside this one's view.
    """
    return _in_words(_takers(file, _all()))


def _in_words(takers: dict[int, int]) -> str:
    first = [pid for pid, taker in takers.items() if pid == taker]
    return " and ".join(f"pid {pid}" for pid in first or sorted(takers)) or UNNAMED


def _all() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _takers(file: int, among: Iterable[int]) -> dict[int, int]:
    """Return {process: who took it} of those that have the flock of an open file; a fork leaves it to the child, too.

    :param among: the process ids that are looked at.
    """
    there, found = os.fstat(file), {}
    place = f"{os.major(there.st_dev):02x}:{os.minor(there.st_dev):02x}:{there.st_ino}"
    for pid in among:
        folder = f"/proc/{pid}/fdinfo"
        with suppress(OSError):  # it ended
            for name in os.listdir(folder):
                with suppress(OSError), open(os.path.join(folder, name), encoding="ascii", errors="replace") as info:
                    found.update((pid, int(taker)) for taker, of in FLOCK.findall(info.read()) if of == place)
    return found


def _path(run_folder: str, board_name: str) -> str:
    return os.path.join(run_folder, "locks", board_name)


def _open(run_folder: str, board_name: str) -> int:
    folder = os.path.join(run_folder, "locks")
    try:
        os.makedirs(run_folder, mode=0o700, exist_ok=True)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return os.open(os.path.join(folder, board_name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        remedy = f"free space on the file system of {run_folder}"
        if error.errno not in FULL:
            remedy = f"make {run_folder} writable for this user"
        raise HeteroError(f"lock cannot be opened in {folder} ({error.strerror})", board_name, remedy) from error


def _take(file: int, board_name: str, deadline: Deadline, waiting: Callable[[str], None] | None, quiet: float) -> None:
    told = said = None
    begun, waited = deadline.spent, False
    while True:
        try:
            askers.must_not_be_gone(board_name)
        except Refused as error:
            if waiting is not None:
                waiting(error.what)
            raise
        try:
            if not waited or askers.are_there() or deadline.passed:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
        except BlockingIOError as error:
            name = _named(file)
            if name == UNNAMED and told is None and not deadline.passed:
                deadline.nap(0.01)
                name = _named(file)
            if name == UNNAMED and (told is None or deadline.passed):
                name = _named(file, everywhere=True)
            if name == UNNAMED and told is not None:
                name = told  # it is about to let go
            if name != said and waiting is not None and deadline.spent - begun >= quiet:
                until = "" if deadline.passed else f"; waited for until {deadline.seconds:g} s are over"
                waiting(f"held by {name}{until}")
                said = name
            told = name
            if deadline.passed:
                raise TimedOut(
                    f"still held by {name} after {deadline.seconds:g} s", board_name, "wait for it, or end that process"
                ) from error
        waited = True
        deadline.nap()


def _named(file: int, everywhere: bool = False) -> str:
    """Return the holder in words. The text of a process that has the lock no more names nobody.

    :param everywhere: whether to look at all processes (some 0.05 s) where that one has it no more. A child of it that
        works on is named in its place.
    """
    try:
        held = json.loads(os.pread(file, 4096, 0).decode("utf-8", "replace"))
        pid = int(held["pid"])
        since = time.strftime("%H:%M:%S", time.localtime(held["since"]))
        # An actor without a name is called by a process: the one that has the lock, or the one that started that.
        name = PROCESS.sub("", held["actor"])
        before, after = f"{held['verb']} ({f'{name}, ' if name else ''}", f", since {since})"
    except (ValueError, KeyError, TypeError):
        return holder_of(file) if everywhere else UNNAMED
    takers = _takers(file, [pid]) or (_takers(file, _all()) if everywhere else {})
    who = _in_words(takers)
    # Another that took it is about to write its own name over that of one who is gone.
    return f"{before}{who}{after}" if takers and {*takers.values()} <= {pid, 0} else who


def _write(file: int, text: str) -> None:
    """Write who holds the lock. On a full file system the holder has no name, and holds the lock all the same."""
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, text.encode(), 0)
    except OSError as error:
        if error.errno not in FULL:
            raise
