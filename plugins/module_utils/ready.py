# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for sockets and pipes, however many files are open: select(2) takes no descriptor above 1023."""

from __future__ import annotations

import math
import select


def readable(files, seconds=None):
    """Those of `files` that have something to read, or their end, as a list; empty after `seconds` (None: no limit)."""
    return _ready(files, select.POLLIN, seconds)


def writable(files, seconds=None):
    """Those of `files` that take something, or whose reader is gone; as readable."""
    return _ready(files, select.POLLOUT, seconds)


def _ready(files, event, seconds):
    poll = select.poll()
    for file in files:
        poll.register(file, event)
    limit = None if seconds is None else max(0, math.ceil(seconds * 1000))
    found = {number for number, _event in poll.poll(limit)}
    return [file for file in files if (file if isinstance(file, int) else file.fileno()) in found]
