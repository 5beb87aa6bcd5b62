# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time as an argument: one deadline is made where the user's timeout comes in and handed down from there."""

from __future__ import annotations

import time

#: Default seconds between two looks at something whose change cannot be waited for.
LOOK_AGAIN = 0.1


class Deadline:
    """A point in time, `seconds` from now on the monotonic clock (a step of the wall clock does not move it)."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._start = time.monotonic()

    @property
    def spent(self) -> float:
        """Seconds since the deadline was set."""
        return time.monotonic() - self._start

    @property
    def left(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self.seconds - self.spent)

    @property
    def passed(self) -> bool:
        return self.left == 0.0

    def within(self, seconds: float) -> Deadline:
        """A shorter deadline that never outlives this one."""
        return Deadline(min(seconds, self.left))

    def nap(self, seconds: float = LOOK_AGAIN) -> None:
        """Sleep for a look-again interval, cut off at the deadline."""
        time.sleep(min(seconds, self.left))
