# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many of several demands can be served with what there is, where each thing would do for some of them: the most
(augmenting paths, Ford and Fulkerson 1956), over things that are alike counted together.
"""

from __future__ import annotations

from collections import deque
from typing import FrozenSet, Mapping, Sequence

#: The demands that a thing could serve, by their numbers.
Serves = FrozenSet[int]


def served(needs: Sequence[int], there: Mapping[Serves, int]) -> list[int]:
    """Return with how many things each demand is served; in all there cannot be more.

    :param needs: how many things each demand wants.
    :param there: how many there are of those that could serve the same demands.
    """
    kinds = list(there)
    left = [there[serves] for serves in kinds]
    given = [[0] * len(kinds) for _need in needs]
    has = [0] * len(needs)
    for demand, need in enumerate(needs):
        while has[demand] < need:
            path = _path(demand, kinds, left, given)
            if path is None:
                break
            # each on the path gets of a kind what the next one gives up of it; the last gets what is left
            freed = [(after, kind) for (_demand, kind), (after, _kind) in zip(path, path[1:])]
            many = min(need - has[demand], left[path[-1][1]], *(given[one][kind] for one, kind in freed))
            for one, kind in freed:
                given[one][kind] -= many
            for one, kind in path:
                given[one][kind] += many
            left[path[-1][1]] -= many
            has[demand] += many
    return has


def _path(
    demand: int, kinds: Sequence[Serves], left: Sequence[int], given: Sequence[Sequence[int]]
) -> list[tuple[int, int]] | None:
    """Return the shortest [(demand, the kind of which it gets more)], or None where no more can be served."""
    paths: deque[tuple[int, list[tuple[int, int]]]] = deque([(demand, [])])
    seen = {demand}
    while paths:
        one, path = paths.popleft()
        for kind, serves in enumerate(kinds):
            if one not in serves:
                continue
            if left[kind] > 0:
                return [*path, (one, kind)]
            for other in sorted(serves - seen):
                if given[other][kind]:
                    seen.add(other)
                    paths.append((other, [*path, (one, kind)]))
    return None
