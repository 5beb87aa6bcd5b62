# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A limit for what may wait for ever if the code under test is wrong."""

from __future__ import annotations

import signal
from contextlib import contextmanager


@contextmanager
def in_time(seconds=60):
    """Fail where the block takes longer than these seconds; what it waits for is cut off."""

    def give_up(*_signal):
        raise AssertionError(f"still waits after {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
