# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot of an instance as a picture: an SVG bar with a piece for each phase, from the board's events.

The seconds of event `power` are what switching took; those of the others count from power on
(boards/boot/boot_progress.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Iterable, List, Tuple

from .html import Html, tag

if TYPE_CHECKING:
    from typing import TypeGuard

#: A boot: its phases, as their events name them, each with its seconds.
Boot = List[Tuple[Any, float]]

BEGINS, ENDS = "power", "running"
#: Phases that have a colour of their own; those of other boot drivers share one.
COLOURED = ("power", "tftp", "nfs", "running")
WIDTH, HEIGHT = 380, 20
#: A letter of the bar's type is about this wide.
LETTER = 5.8
#: Gridlines on a bar, at most.
LINES = 6


def is_seconds(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def last_boot(events: Iterable[dict[str, Any]], instance: str) -> Boot:
    """The newest boot of an instance that ended in running; [] where the events do not hold it.

    :param events: the oldest first.
    """
    found: Boot = []
    boot: Boot = []
    for event in events:
        phase, seconds = event.get("phase"), event.get("seconds")
        if event.get("instance") != instance or not is_seconds(seconds):
            continue
        if phase == BEGINS:
            boot = [(phase, seconds)]
        elif boot and phase == ENDS:
            found, boot = [boot[0], *(mark for mark in boot[1:] if mark[1] <= seconds), (phase, seconds)], []
        elif boot and (len(boot) == 1 or seconds >= boot[-1][1]):
            boot.append((phase, seconds))
    return found


class Scale:
    """Seconds as places on all bars of a page: power on is at the same place, switching lies left of it."""

    def __init__(self, boots: Iterable[Boot]) -> None:
        boots = [boot for boot in boots if boot]
        self.before = max((boot[0][1] for boot in boots), default=0.0)
        self.after = max((boot[-1][1] for boot in boots), default=0.0)
        self._unit = WIDTH / max(self.before + self.after, 0.001)

    def at(self, seconds: float) -> float:
        """The place of a moment, in seconds since power on."""
        return (self.before + seconds) * self._unit

    @property
    def lines(self) -> list[float]:
        """Round numbers of seconds since power on for gridlines."""
        sizes = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
        size = next((size for size in sizes if self.after <= size * LINES), self.after / LINES)
        # A number at the very edge would be cut off.
        return [size * number for number in range(LINES + 1) if size * number <= self.after * 0.98]


def words(boot: Boot) -> str:
    """The boot in words, for who cannot see the picture."""
    return " · ".join(f"{phase} {seconds:.1f}" for phase, seconds in boot) + " s"


def pieces(boot: Boot) -> list[tuple[str, float, float]]:
    """[(phase, from, to)] in seconds since power on."""
    found, at = [], 0.0
    for phase, seconds in boot:
        found.append((phase, -seconds, 0.0) if phase == BEGINS else (phase, at, seconds))
        at = found[-1][2]
    return found


def picture(boot: Boot, scale: Scale) -> Html:
    """The bar of a boot."""
    bars, texts = [], []
    for phase, start, end in pieces(boot):
        left, width = scale.at(start), scale.at(end) - scale.at(start)
        kind = phase if phase in COLOURED else "other"
        box = tag("rect", x=f"{left:.1f}", y=0, width=f"{max(width, 1.5):.1f}", height=HEIGHT, class_=f"p-{kind}")
        bars.append(tag("g", tag("title", f"{phase}: {end - start:.1f} s"), box))
        if width > (len(str(phase)) + 2) * LETTER:
            texts.append(tag("text", phase, x=f"{left + width / 2:.1f}", y=14, text_anchor="middle"))
    places = [f"{scale.at(line):.1f}" for line in scale.lines]
    grid = [tag("line", x1=place, x2=place, y1=0, y2=HEIGHT) for place in places]
    size = dict(viewBox=f"0 0 {WIDTH} {HEIGHT}", width=WIDTH, height=HEIGHT)
    return tag("svg", tag("title", words(boot)), bars, grid, texts, class_="boot", role="img", **size)


def axis(scale: Scale) -> Html:
    """The seconds over the bars."""
    texts = [tag("text", f"{line:g}", x=f"{scale.at(line):.1f}", y=10, text_anchor="middle") for line in scale.lines]
    size = dict(viewBox=f"0 0 {WIDTH} 12", width=WIDTH, height=12)
    return tag("svg", texts, class_="axis", aria_hidden="true", **size)
