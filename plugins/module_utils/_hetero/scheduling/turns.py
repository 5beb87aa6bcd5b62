# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When it is the turn of a request that waits, by what the nodes say of it. Of the queue the controller needs no more,
and each of its plays imports that.
"""

from __future__ import annotations

from typing import Sequence, Tuple

#: [(unix seconds, instances that a request can have by then)], the earliest first.
Steps = Tuple[Tuple[float, int], ...]


def many_by(steps: Steps, when: float) -> int:
    """Return how many instances can be had by a time."""
    return max((many for at, many in steps if at <= when), default=0)


def expected(now: float, nodes: Sequence[Steps], least: int) -> float | None:
    """Return when so many instances can be had on several nodes together, or None where that is not known.

    :param nodes: the Steps of each node.
    """
    for when in sorted({max(now, when) for steps in nodes for when, _many in steps}):
        if sum(many_by(steps, when) for steps in nodes) >= least:
            return when
    return None


def ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 4th …"""
    teens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
