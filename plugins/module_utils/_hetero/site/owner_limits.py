# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node's configuration says that one owner may have: a number of instances, or that, hours and flavors.

claims/owner_limits.py has the rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

from ..core.errors import HeteroError
from ..core.typed_keys import Key, Kind, Record, TableOf, number, whole
from .leases import LONGEST


@dataclass(frozen=True)
class Limit:
    """What one owner may have. None, and a flavor that is not named, is no limit.

    :param nodes: how many instances at once.
    :param hours: the longest lease, from now.
    :param flavors: {name of a flavor: how many of them at once}.
    """

    nodes: int | None = None
    hours: float | None = None
    flavors: Mapping[str, int] = field(default_factory=dict)

    def of(self, flavor: str | None) -> int | None:
        """Return how many instances of a flavor at once; None for no limit of that flavor."""
        return None if flavor is None else self.flavors.get(flavor)


_PARTS = Record({"nodes": Key(whole()), "hours": Key(number(0.01, LONGEST)), "flavors": Key(TableOf(whole()))})


class _Limit(Kind):
    """A whole number, or a mapping of its parts."""

    def read(self, value: Any, place: str, mistakes: list[HeteroError]) -> Limit:
        if not isinstance(value, dict):
            return Limit(whole().read(value, place, mistakes))
        for key in value:
            if key not in _PARTS.keys:
                Kind(" or ".join(_PARTS.keys), lambda _value: None).read(key, f"{place}, key", mistakes)
        read = _PARTS.read({key: one for key, one in value.items() if key in _PARTS.keys}, place, mistakes)
        return Limit(read.get("nodes"), read.get("hours"), read.get("flavors") or {})


#: The limits of owners, by their names.
LIMITS = TableOf(_Limit("a whole number, or nodes, hours and flavors", lambda value: value))
