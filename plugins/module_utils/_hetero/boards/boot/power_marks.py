# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell whether this node's clock was stepped since a board's boot began.

used_root.py compares the times of a root's files with the time of the boot. If the clock was set back in between, what
a tenant wrote looks older than the boot, also when the clock has long passed that time again. The kernel counts seconds
since the machine's boot (CLOCK_BOOTTIME), and the difference between that count and the clock changes by nothing but a
step. So the difference is written down before each boot, in the run folder, which is lost when the machine boots.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Callable

from ..records import boot_marks

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ..records.proxy import Proxy

#: The folder below the run folder that holds one file for each board.
FOLDER = "powered"
#: Seconds by which two differences may differ without a step: the kernel answers each clock in less than a microsecond,
#: and a process that is interrupted between the two readings reads them again.
EXACT = 1e-3
#: Number of readings, of which the fastest counts.
READINGS = 5


def begins(proxy: Proxy, board: Board) -> Callable[[], None]:
    """Read the clocks' difference, before the event is written with which a boot begins.

    Where the mark cannot be written, an older one stays or there is none; neither hides a step.

    :returns: writes the mark; to be called once that event is committed.
    """
    return partial(boot_marks.keep, proxy, FOLDER, board.name, {"apart": _apart()})


def was_stepped(proxy: Proxy, board: Board) -> bool:
    """Return whether the clock may have been stepped since a board's newest mark; True where there is no good mark."""
    mark = boot_marks.kept(proxy, FOLDER, board.name)
    try:
        return mark is None or not abs(float(mark["apart"]) - _apart()) <= EXACT
    except (KeyError, TypeError, ValueError, OverflowError):
        return True


def _apart() -> float:
    """Return the seconds that the clock is ahead of CLOCK_BOOTTIME."""
    return min(_reading() for _reading_again in range(READINGS))[1]


def _reading() -> tuple[float, float]:
    """Return (seconds that reading both clocks took, seconds that they are apart)."""
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    now = time.time()
    after = time.clock_gettime(time.CLOCK_BOOTTIME)
    return after - before, now - (before + after) / 2
