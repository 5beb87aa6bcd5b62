# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the kernel whether a time server keeps this machine's clock (adjtimex(2)).

The kernel forgets that at each boot and whenever the clock is set by hand; chrony, ntpd and systemd-timesyncd then tell
it again.
"""

from __future__ import annotations

import ctypes

#: The return value of adjtimex(2) where the clock is not synchronised.
TIME_ERROR = 5
#: Words of a struct timex, more than it has on any architecture. With all of them zero the call sets nothing.
WORDS = 64


def synchronised() -> bool:
    """Return whether a time server keeps the clock; False, too, where this process may not ask the kernel."""
    return 0 <= _adjtimex() < TIME_ERROR


def _adjtimex() -> int:
    return ctypes.CDLL(None).adjtimex((ctypes.c_long * WORDS)())
