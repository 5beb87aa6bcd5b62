# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The turn to write to a database, which many processes wait for at the same time.

SQLite lets each of them ask again and again for its few seconds, and refuses those that were never lucky. Here they
wait for as long as others are served. A process that cannot have a turn asks SQLite
by itself.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import Callable, Iterator

from .deadline import Deadline
from .locks import is_taken

#: The end of the name of the file with the lock, beside the database.
TURN = "-turn"
#: Seconds between two looks whether the turn is free: each costs some 10 µs, of hundreds of plays.
AGAIN = 0.05
#: Seconds for which who writes again and again leaves the turn to others that wait: each of them looks once more.
GIVE_WAY = 1.2 * AGAIN


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
        deadline = Deadline(seconds)
        while not is_taken(file) and not deadline.passed:
            _mark(file)
            deadline.nap(AGAIN)
        own = os.fstat(file).st_mtime_ns
        yield lambda: os.fstat(file).st_mtime_ns != own
    finally:
        os.close(file)


def _mark(file: int) -> None:
    """Change the file's time, by which who has the turn sees that somebody waits for it."""
    with suppress(OSError):  # a disk on which not even that has space
        os.utime(file)


def _nobody() -> bool:
    return False
