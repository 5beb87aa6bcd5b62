# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A network namespace for a test: what it sees of packets and of sockets, those of LXC's monitors too, is its own."""

from __future__ import annotations

import ctypes
import os
import subprocess
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000  # sched.h


@contextmanager
def own_network():
    """Have a network with nothing but a loopback, for this thread and what it starts meanwhile. It needs root."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as before:
        assert libc.unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            assert libc.setns(before.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
