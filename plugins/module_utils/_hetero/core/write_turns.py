# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The turn to write to a database, which many processes wait for at the same time.

SQLite lets each of them ask again and again for its few seconds, and refuses those that were never lucky. Here they
wait in the kernel's queue, for as long as others are served, and come in the order in which they asked (Linux 5.0 and
later: fs/locks.c has each wait for the one before). A process that cannot have a turn asks SQLite by itself.
"""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import contextmanager, suppress
from functools import partial
from typing import Callable, Iterator

from .deadline import Deadline
from .locks import is_taken

#: The end of the name of the file with the lock, beside the database.
TURN = "-turn"
#: Seconds between two marks by which who has the turn sees that others wait.
AGAIN = 0.05
#: Seconds for which who writes again and again leaves the turn to others that wait: the first of them wakes up.
GIVE_WAY = AGAIN


@contextmanager
def turn(path: str, seconds: float) -> Iterator[Callable[[], bool]]:
    """Run the block as the one process that writes to a database, or after so many seconds without a turn.

    :param path: the database's file.
    :returns: tells whether another process has waited for the turn since the block was entered.
    """
    deadline = Deadline(seconds)
    for is_last in (False, False, True):
        try:
            file = os.open(f"{path}{TURN}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:  # a disk that is full, or read-only
            break
        over = threading.Event()
        try:
            with suppress(OSError):  # a file system, or a kernel, that has no locks
                if not is_taken(file):
                    _queue(file, deadline, over)
            if not is_last and not deadline.passed and _was_removed(file, path):
                continue  # who comes now waits by another file
            yield partial(_is_wanted, file, os.fstat(file).st_mtime_ns)
            return
        finally:
            try:
                over.set()
                with suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_UN)  # which a child that another thread has begun meanwhile would keep
            finally:  # also where a signal raises here
                os.close(file)
    yield _nobody


def _is_wanted(file: int, marked: int) -> bool:
    return os.fstat(file).st_mtime_ns != marked


def _was_removed(file: int, path: str) -> bool:
    try:
        return not os.path.samestat(os.fstat(file), os.stat(f"{path}{TURN}"))
    except OSError:
        return True


def _queue(file: int, deadline: Deadline, over: threading.Event) -> None:
    """Wait in the kernel's queue until the lock is ours, at most until the deadline.

    flock(2) knows no limit, so a thread waits in it, by a descriptor of its own. Where that comes too late the thread
    gives the lock back: the kernel would leave it to a child that was begun meanwhile and has the file open, too.

    :param over: set once the turn is, before its lock is given back.
    """
    is_ours = threading.Event()
    try:
        waiting = os.dup(file)
    except OSError:  # as many files as the process may have open
        return

    def wait() -> None:
        with suppress(OSError):
            fcntl.flock(waiting, fcntl.LOCK_EX)
            if over.is_set():
                fcntl.flock(waiting, fcntl.LOCK_UN)
        os.close(waiting)
        is_ours.set()

    try:
        threading.Thread(target=wait, daemon=True).start()
    except RuntimeError:  # as many threads as the process may have
        os.close(waiting)
        return
    while True:
        _mark(file)
        if is_ours.wait(min(AGAIN, deadline.left)) or deadline.passed:
            return


def _mark(file: int) -> None:
    """Change the file's time, by which who has the turn sees that somebody waits for it."""
    with suppress(OSError):  # a disk on which not even that has space
        os.utime(file)


def _nobody() -> bool:
    return False
