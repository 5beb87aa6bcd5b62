# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether somebody still waits for what this process was asked to do: what nobody waits for does not begin.

What has begun goes on, whoever is gone. A process that nobody asked (a timer, a command) begins in any case.
"""

from __future__ import annotations

import os
import time
from typing import Protocol

from .deadline import LOOK_AGAIN, Deadline
from .errors import Refused
from .job_watch import is_read

#: So long after a sign of whoever follows a job he still counts as there (seconds). A look leaves one with each tick.
FRESH = 1.0
#: So long without a sign he is gone: one to whom the node is silent asks again by a new connection after half a minute,
#: and waits as long for that (plugin_utils/progress.py).
LOST = 120.0
WHAT = "nobody waits for it any more (the play was ended, or its connection cut off): not begun"
REMEDY = "run this again where it is still wanted"


class Asker(Protocol):
    """Who asked."""

    @property
    def is_there(self) -> bool:
        """Whether he certainly waits."""

    @property
    def is_gone(self) -> bool:
        """Whether he certainly does not."""


class Reader:
    """Who started a module, and reads what it prints.

    :param output: the descriptor to which it prints.
    """

    def __init__(self, output: int = 1) -> None:
        self._output = output

    @property
    def is_gone(self) -> bool:
        return not is_read(self._output)  # threads ask at once, each of which takes its turn at a PDU

    @property
    def is_there(self) -> bool:
        return not self.is_gone


class Follower:
    """Who follows a job: each look of his touches its file (job_watch.py). The clock, which may jump, has no say in it.

    :param job: the descriptor of the file.
    """

    def __init__(self, job: int = 1) -> None:
        self._job = job
        self._touched, self._seen = self._mark, time.monotonic()

    @property
    def _mark(self) -> int:
        return os.fstat(self._job).st_mtime_ns

    @property
    def _silent(self) -> float:
        """Seconds since his last sign."""
        if self._mark != self._touched:
            self._touched, self._seen = self._mark, time.monotonic()
        return time.monotonic() - self._seen

    @property
    def is_there(self) -> bool:
        return self._silent < FRESH

    @property
    def is_gone(self) -> bool:
        return self._silent > LOST


_asker: Asker | None = None


def asked_by(asker: Asker | None) -> None:
    """Set who waits for what this process does: from now on nothing begins once he is gone.

    :param asker: None for work that has begun, or that nobody asked for.
    """
    global _asker  # noqa: PLW0603 - one a process
    _asker = asker


def asker() -> Asker | None:
    """Return who waits for what this process does; None once that has begun."""
    return _asker


def still_waits(one: Asker | None) -> bool:
    """Wait until somebody certainly waits, or certainly does not, and return which; True where nobody asked.

    The first look tells only that there was a sign since the last look, which may be long ago.
    """
    if one is not None and one.is_there:
        until = Deadline(FRESH)
        while not until.passed and not one.is_gone:
            until.nap()
    while one is not None and not one.is_there:
        if one.is_gone:
            return False
        time.sleep(LOOK_AGAIN)
    return True


def must_not_be_gone(thing: str) -> None:
    """Raise Refused where whoever asked is gone."""
    if _asker is not None and _asker.is_gone:
        raise Refused(WHAT, thing, REMEDY)


def are_there() -> bool:
    """Return whether what was waited for may begin now: whoever asked certainly waits."""
    return _asker is None or _asker.is_there
