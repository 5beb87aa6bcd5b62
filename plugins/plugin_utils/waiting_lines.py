# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who waits, as `status` tells it below its table: one line for each request, whichever nodes keep its place."""

from __future__ import annotations

import time
from typing import Any, Iterable

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief, one_line
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.turns import ordinal
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import age

#: Lines of a queue; the others are only counted.
TOLD = 20
#: Nodes of a request's line that only an operator can make free.
STUCK = 2
#: Within so many seconds a time of day is that of no other day, to who reads it.
HALF_A_DAY = 43200.0


def waiting(seen: Iterable[Any]) -> list[str]:
    """Return the lines of all who wait.

    :param seen: what nodes said, as snapshots.py keeps it.
    """
    now = time.time()
    places: dict[tuple[float, float, str, str], list[dict[str, Any]]] = {}
    for one in seen:
        for place in (one.get("queue") or []) if isinstance(one, dict) else []:
            rank = (-place["priority"], place["asked"], place["request"], place["owner"])
            places.setdefault(rank, []).append(place)
    lines = [_line(those, now) for _rank, those in sorted(places.items(), key=lambda both: both[0])]
    more = [f"and {len(lines) - TOLD} more wait"] if lines[TOLD:] else []
    return lines[:TOLD] + more


def clock(when: float, now: float) -> str:
    """Return a time of day for people at this machine, with its date where it could be taken for another day's."""
    return time.strftime("%H:%M" if abs(when - now) < HALF_A_DAY else "%Y-%m-%d %H:%M", time.localtime(when))


def _line(places: list[dict[str, Any]], now: float) -> str:
    """Return `waits: lab of ann, 8 tp64.8x8, 1st in the queue since 5 min, 3 free and held for it: expected 14:20`."""
    first = places[0]
    need, held = max(one["need"] for one in places), sum(one["held"] for one in places)
    position = max(one["position"] for one in places)
    starts = [one["expected"] for one in places if one["expected"] is not None and one["expected"] > now]
    who = f"{first['request']} of {one_line(brief(first['owner']))}"
    what = first["flavor"] if need == 1 else f"{need} {first['flavor']}"
    free = f"{held} free and held for it" if held else "none free for it"
    if not all(one.get("enough", True) for one in places):
        free, starts = "; ".join(["nothing is held for it", *_stuck(places)]), []
    when = f": expected {clock(min(starts), now)}" if starts else ""
    return f"waits: {who}, {what}, {ordinal(position)} in the queue since {age(now - first['asked'])}, {free}{when}"


def _stuck(places: list[dict[str, Any]]) -> list[str]:
    """Return which nodes only an operator can make free, and why."""
    all_of_them = [one for place in places for one in place.get("stuck", ())]
    texts = list(dict.fromkeys(f"{one['name']} {one_line(brief(one['why']))}" for one in all_of_them))
    return [*texts[:STUCK], *(["…"] if texts[STUCK:] else [])]
