# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cabling check found of one outlet, and the verdicts on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

#: The verdict on an outlet that feeds another board than the wiring says.
OTHER = "other"
RIGHT, SEVERAL, NOTHING, ON = "right", "several", "nothing", "on"
UNSURE, SKIPPED, FAILED, UNTESTED = "unsure", "skipped", "failed", "not tested yet"
#: Verdicts with which the check as a whole fails.
WRONG = (OTHER, SEVERAL, NOTHING, ON, FAILED)


class OutletWork(Protocol):
    """The work on one outlet: that of its board (work/board_work.py), or of an outlet of which no board is known."""

    @property
    def pdu(self) -> str: ...
    @property
    def outlet(self) -> str: ...
    @property
    def outlet_name(self) -> str: ...
    @property
    def over(self) -> bool: ...
    @property
    def error(self) -> str | None: ...
    @property
    def lines(self) -> list[dict[str, Any]]: ...

    def say(self, phase: str, text: str, seconds: float | None = None) -> None:
        """Write an event, for those who follow, and add a line to the result."""

    def power_seen(self, power: str) -> None:
        """Note the outlet's state as it was just read."""

    def move(self, state: str, note: str = "") -> None:
        """Keep what the outlet feeds out of use."""


W = TypeVar("W", bound=OutletWork)


@dataclass
class Finding(Generic[W]):
    """The result for one outlet: what it turned out to feed."""

    work: W
    verdict: str = UNTESTED
    found: list[int] = field(default_factory=list)  # ids of the boards that came up
    text: str = ""
    seconds: float | None = None
    macs: list[str] = field(default_factory=list)  # of machines that are in no boards file, and asked (learning.py)
