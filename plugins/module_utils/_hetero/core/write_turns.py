# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The turn to write to a database, which many processes wait for at the same time.

SQLite lets each of them ask again and again for its few seconds, and refuses those that were never lucky. Here they
wait for as long as others are served. Who cannot have a turn asks SQLite by itself.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Iterator

from .deadline import Deadline
from .locks import taken

#: The end of the name of the file with the lock, beside the database.
TURN = "-turn"


@contextmanager
def turn(path: str, seconds: float) -> Iterator[None]:
    """Run the block as the one process that writes to a database, or after so many seconds without a turn.

    :param path: the database's file.
    """
    try:
        file = os.open(f"{path}{TURN}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:  # a disk that is full, or read-only
        yield
        return
    try:
        taken(file, Deadline(seconds))
        yield
    finally:
        os.close(file)
