# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a time server keeps this machine's clock, by the kernel's word (adjtimex(2)).

It forgets that at each boot, and whenever the clock is set by hand; chrony, ntpd and systemd-timesyncd tell it anew.
"""

from __future__ import annotations

import ctypes

#: What adjtimex(2) answers where the clock is not synchronised.
TIME_ERROR = 5
#: Words of its struct timex: more than any architecture has. All zero asks, and sets nothing.
WORDS = 64


def synchronised() -> bool:
    """Whether the clock is known to be right; False, too, where the kernel may not be asked."""
    return 0 <= _adjtimex() < TIME_ERROR


def _adjtimex() -> int:
    return ctypes.CDLL(None).adjtimex((ctypes.c_long * WORDS)())
