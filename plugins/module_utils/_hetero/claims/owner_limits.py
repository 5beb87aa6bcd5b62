# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much an owner may have of one node at once, as the site says (owner_limits of the node's configuration).

Instances count from the claim until it ends. What an owner has when a limit is set stays.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping, Protocol

from ..site.owners import FORM

if TYPE_CHECKING:
    from .store import ClaimsStore

#: The name that stands for all owners whom the table does not name.
OTHERS = "*"
#: How many of an owner's instances are named.
TOLD = 4
HAS = "{owner} has {have} {thing}{s} of {node}, and may have {most} at once{which}"
NEVER = "{owner} may have {most} {thing}{s} of {node} at once"


class Request(Protocol):
    """What a request says, whatever kind of node it asks."""

    @property
    def owner(self) -> str: ...

    @property
    def partial(self) -> bool: ...

    @property
    def instances(self) -> list[str]: ...


@dataclass(frozen=True)
class OwnerLimits:
    """The limits of one node.

    :param limits: {owner, or OTHERS: how many it may have at once}.
    :param store: the node's claims.
    :param node: the node's name, for people.
    :param thing: what is counted, such as "board".
    """

    limits: Mapping[str, int]
    store: ClaimsStore[Any]
    node: str
    thing: str

    def most_of(self, owner: str) -> int | None:
        """Return how many an owner may have at once, None without a limit.

        A letter with an accent is one character or two (Unicode's forms NFC and NFD), by what it was typed with.
        """
        spelt = {unicodedata.normalize(FORM, name): most for name, most in self.limits.items()}
        return spelt.get(unicodedata.normalize(FORM, owner), spelt.get(OTHERS))

    def may_have(self, owner: str) -> int | None:
        """Return how many more an owner may have at present, None without a limit."""
        most = self.most_of(owner)
        return None if most is None else max(0, most - len(self._instances(owner)))

    def why_no_more(self, owner: str) -> str:
        """Return in words what an owner with a limit has."""
        have = self._instances(owner)
        names = ", ".join(have[:TOLD]) + (", …" if have[TOLD:] else "")
        which = f": {names}" if have else ""
        return self._said(HAS, owner, len(have), have=len(have), which=which)

    def never(self, request: Request) -> str | None:
        """Return why a request is too large for its owner, whatever else that has; None where it is not."""
        most = self.most_of(request.owner)
        if most is None or (1 if request.partial else len(request.instances)) <= most:
            return None
        return self._said(NEVER, request.owner, most)

    def _said(self, text: str, owner: str, count: int, **words: object) -> str:
        s, most = "" if count == 1 else "s", self.most_of(owner)
        said = most if most or "have" in words else "no"
        return text.format(owner=owner, node=self.node, thing=self.thing, s=s, most=said, **words)

    def _instances(self, owner: str) -> list[str]:
        return sorted(claim.instance for claim in self.store.claims() if claim.owner == owner)
