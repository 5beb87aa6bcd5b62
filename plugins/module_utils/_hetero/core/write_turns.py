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
    try:
        file = os.open(f"{path}{TURN}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:  # a disk that is full, or read-only
        yield _nobody
        return
    try:
        if not is_taken(file):
            _queue(file, Deadline(seconds))
        own = os.fstat(file).st_mtime_ns
        yield lambda: os.fstat(file).st_mtime_ns != own
    finally:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)  # which a child that another thread has begun meanwhile would keep
        os.close(file)


def _queue(file: int, deadline: Deadline) -> None:
    """Wait in the kernel's queue until the lock is ours, at most until the deadline.

    flock(2) knows no limit, so a thread waits in it. Where that comes too late the file is closed, and the kernel drops
    the lock with the end of that call, which had the file open last.
    """
    is_ours = threading.Event()

    def wait() -> None:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        is_ours.set()

    try:
        threading.Thread(target=wait, daemon=True).start()
    except RuntimeError:  # as many threads as the process may have
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
