# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot of an instance as a picture: a bar with a piece for each phase, from the board's events.

The seconds of event `power` are the time that switching took; those of other events count from power on
(boards/boot/boot_progress.py). templates/boot.html.j2 draws a bar.
"""

from __future__ import annotations

from typing import Any, Iterable, List, NamedTuple, Tuple

from .text import is_seconds

#: A boot: its phases, as their events name them, each with its seconds.
Boot = List[Tuple[Any, float]]

BEGINS, ENDS = "power", "running"
#: Phases that have a colour of their own; those of other boot drivers share one.
COLOURED = ("power", "tftp", "nfs", "running")
#: The size of a bar in CSS pixels.
WIDTH, HEIGHT = 380, 20
#: Least width of a piece in pixels, so that a phase that took no time is seen, too.
NARROWEST = 1.5
#: The width of a letter of the bar's type, about, in pixels.
LETTER = 5.8
#: Most gridlines on a bar.
LINES = 6


class Piece(NamedTuple):
    """A phase on a bar. `left` and `width` are pixels, as SVG has them."""

    kind: str
    said: str
    left: str
    width: str


class Mark(NamedTuple):
    """A word on a bar or above it; its middle is `place`, in pixels."""

    text: Any
    place: str


class Bar(NamedTuple):
    """A boot in words, for people who cannot see the picture; its pieces, and the names of those with room for one."""

    said: str
    pieces: list[Piece]
    names: list[Mark]


def last_boot(events: Iterable[dict[str, Any]], instance: str) -> Boot:
    """Return the newest boot of an instance that ended in running; [] where the events do not have it.

    :param events: events, the oldest first.
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
    """Turns seconds into places on all bars of a page: power on is at the same place, and switching is left of it.

    `width` and `height` are a bar's, in pixels; `marks` are gridlines at round numbers of seconds since power on.
    """

    width, height = WIDTH, HEIGHT

    def __init__(self, boots: Iterable[Boot]) -> None:
        boots = [boot for boot in boots if boot]
        self.before = max((boot[0][1] for boot in boots), default=0.0)
        self.after = max((boot[-1][1] for boot in boots), default=0.0)
        self._unit = WIDTH / max(self.before + self.after, 0.001)
        self.marks = [Mark(f"{line:g}", f"{self.at(line):.1f}") for line in self._lines()]

    def at(self, seconds: float) -> float:
        """Return the place, in pixels, of a moment in seconds since power on."""
        return (self.before + seconds) * self._unit

    def _lines(self) -> list[float]:
        sizes = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
        size = next((size for size in sizes if self.after <= size * LINES), self.after / LINES)
        # A number at the very edge would be cut off.
        return [size * number for number in range(LINES + 1) if size * number <= self.after * 0.98]


def words(boot: Boot) -> str:
    """Return the boot in words: each phase with its seconds."""
    return " · ".join(f"{phase} {seconds:.1f}" for phase, seconds in boot) + " s"


def pieces(boot: Boot) -> list[tuple[str, float, float]]:
    """Return [(phase, from, to)] in seconds since power on."""
    found, at = [], 0.0
    for phase, seconds in boot:
        found.append((phase, -seconds, 0.0) if phase == BEGINS else (phase, at, seconds))
        at = found[-1][2]
    return found


def bar_of(boot: Boot, scale: Scale) -> Bar:
    """Return the bar of a boot."""
    shown, names = [], []
    for phase, start, end in pieces(boot):
        left, width = scale.at(start), scale.at(end) - scale.at(start)
        kind = phase if phase in COLOURED else "other"
        shown.append(Piece(kind, f"{phase}: {end - start:.1f} s", f"{left:.1f}", f"{max(width, NARROWEST):.1f}"))
        if width > (len(str(phase)) + 2) * LETTER:
            names.append(Mark(phase, f"{left + width / 2:.1f}"))
    return Bar(words(boot), shown, names)
