# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much an owner may have of one node at once, and for how long, as the site says (owner_limits of the node's
configuration): instances in all, those of a flavor, and hours of a lease.

Instances count from the claim until it ends. What an owner has when a limit is set stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping, Protocol

from ..core.errors import Refused
from ..core.plays import play
from ..site.owner_limits import Limit
from ..site.owners import in_form, same

if TYPE_CHECKING:
    from .store import ClaimsStore

#: The name that stands for all owners whom the table does not name.
OTHERS = "*"
#: How many of an owner's instances are named.
TOLD = 4
HAS = "{owner} has {have} {thing}{s} of {node}, and may have {most} at once{which}"
WHICH = ": {names}; end {one} first, or wait for its end"
NEVER = "{owner} may have {most} {thing}{s} of {node} at once: {way}"
#: What helps a request for more than that, and one for what its owner may have none of.
FEWER = "ask for fewer, take what there is (-e partial=true), or ask an operator for more"
NONE_OF_IT = "ask an operator for more"
TOO_LONG = "{owner} may have {thing}s of {node} for {hours:g} h: give -e hours={hours:g} or less"
EXTENDED = "is {owner}'s, who may have it for {hours:g} h from now"


class Request(Protocol):
    """What a request says, whatever kind of node it asks."""

    @property
    def owner(self) -> str: ...

    @property
    def flavor(self) -> dict[str, Any]: ...

    @property
    def lease_hours(self) -> float | None: ...

    @property
    def partial(self) -> bool: ...

    @property
    def instances(self) -> list[str]: ...


@dataclass(frozen=True)
class OwnerLimits:
    """The limits of one node.

    :param limits: {owner, or OTHERS: what it may have}.
    :param store: the node's claims.
    :param node: the node's name, for people.
    :param thing: what is counted, such as "board".
    """

    limits: Mapping[str, Limit]
    store: ClaimsStore[Any]
    node: str
    thing: str

    def of(self, owner: str) -> Limit:
        """Return what an owner may have, without limits where the table names neither it nor all others.

        A letter with an accent is one character or two (Unicode's forms NFC and NFD), by what it was typed with.
        """
        spelt = {in_form(name): limit for name, limit in self.limits.items()}
        return spelt.get(in_form(owner)) or spelt.get(OTHERS) or Limit()

    def may_have(self, owner: str, flavor: str | None = None) -> int | None:
        """Return how many more instances an owner may have at present, None without a limit.

        :param flavor: the name of their flavor, whose own limit counts too; None for that of all alone.
        """
        limit = self.of(owner)
        pairs = [(limit.nodes, None), (limit.of(flavor), flavor)]
        left = [max(0, most - len(self._instances(owner, only))) for most, only in pairs if most is not None]
        return min(left, default=None)

    def why_no_more(self, owner: str, flavor: str) -> str:
        """Return in words what an owner has that may have no more of a flavor."""
        limit = self.of(owner)
        all_there = limit.nodes is None or len(self._instances(owner)) < limit.nodes
        only = flavor if all_there and limit.of(flavor) is not None else None
        have = self._instances(owner, only)
        names = ", ".join(have[:TOLD]) + (", …" if have[TOLD:] else "")
        which = WHICH.format(names=names, one="one of these" if have[1:] else "it") if have else ""
        most = limit.nodes if only is None else limit.of(only)
        return self._said(HAS, owner, only, most or 0, s=_s(len(have)), have=len(have), which=which)

    def never(self, request: Request) -> str | None:
        """Return why a request is too large or too long for its owner, whatever else that has; None where it is not."""
        limit, flavor = self.of(request.owner), request.flavor.get("name")
        least = 1 if request.partial else len(request.instances)
        for most, only in ((limit.nodes, None), (limit.of(flavor), flavor)):
            if most is not None and least > most:
                way = FEWER if most else NONE_OF_IT
                return self._said(NEVER, request.owner, only, most or "no", s=_s(most), way=way)
        if limit.hours is not None and (not request.lease_hours or request.lease_hours > limit.hours):
            return self._said(TOO_LONG, request.owner, None, hours=limit.hours)
        return None

    def longest(self, owner: str, expires: float | None, now: float) -> float | None:
        """Return the end of the longest lease that an owner may have now, at most `expires` (unix seconds).

        Of both None means no end.
        """
        most = self.of(owner).hours
        if most is None:
            return expires
        last = now + 3600 * most
        return last if expires is None else min(expires, last)

    def must_not_be_longer(self, instance: str, owner: str, hours: float) -> None:
        """Raise Refused for a lease that is longer than its owner may have one.

        :param hours: from now; 0 for no end.
        """
        most = self.of(owner).hours
        if most is not None and (not hours or hours > most):
            remedy = play("extend_instance", instance=instance, hours=f"{most:g}")
            raise Refused(EXTENDED.format(owner=owner, hours=most), instance, f"{remedy} is possible")

    def _said(self, text: str, owner: str, flavor: str | None, most: int | str = 0, **words: object) -> str:
        node = self.node if flavor is None else f"{self.node} with flavor {flavor}"
        return text.format(owner=owner, node=node, thing=self.thing, most=most, **words)

    def _instances(self, owner: str, flavor: str | None = None) -> list[str]:
        claims = [claim for claim in self.store.claims() if same(claim.owner, owner)]
        return sorted(one.instance for one in claims if flavor in (None, one.flavor.get("name")))


def _s(count: int) -> str:
    return "" if count == 1 else "s"
