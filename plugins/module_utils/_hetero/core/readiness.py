# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for sockets and pipes, however many files are open: select(2) takes no descriptor above 1023."""

from __future__ import annotations

import math
import select
from typing import Collection, Protocol, TypeVar, Union


class HasDescriptor(Protocol):
    """Anything with a file descriptor: a socket, a pipe or a Child."""

    def fileno(self) -> int: ...


File = TypeVar("File", bound=Union[int, HasDescriptor])


def readable(files: Collection[File], seconds: float | None = None) -> list[File]:
    """Return those of `files` that can be read, or have ended; an empty list after `seconds` (None: no limit)."""
    return _ready(files, select.POLLIN, seconds)


def writable(files: Collection[File], seconds: float | None = None) -> list[File]:
    """Return those of `files` that can be written, or whose reader is gone; an empty list after `seconds`."""
    return _ready(files, select.POLLOUT, seconds)


def _ready(files: Collection[File], event: int, seconds: float | None) -> list[File]:
    poll = select.poll()
    for file in files:
        poll.register(file, event)
    limit = None if seconds is None else max(0, math.ceil(seconds * 1000))
    found = {number for number, _event in poll.poll(limit)}
    return [file for file in files if (file if isinstance(file, int) else file.fileno()) in found]
