# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many boards of a proxy node an owner may have at once, as the site says (owner_limits of its configuration).

Boards count from the claim until it ends. What an owner has when a limit is set stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from ...core.this_node import THIS_NODE

if TYPE_CHECKING:
    from ..records.proxy import Proxy
    from .board_fit import ClaimRequest

#: The name that stands for all owners whom the table does not name.
OTHERS = "*"
#: How many of an owner's instances are named.
TOLD = 4
HAS = "{owner} has {have} board{s} of {node}, and may have {most} at once{which}"
NEVER = "{owner} may have {most} board{s} of {node} at once"


def most_of(proxy: Proxy, owner: str) -> int | None:
    """Return how many boards an owner may have at once, None without a limit."""
    limits = proxy.config.owner_limits
    return limits.get(owner, limits.get(OTHERS))


def may_have(proxy: Proxy, owner: str) -> int | None:
    """Return how many boards more an owner may have at present, None without a limit."""
    most = most_of(proxy, owner)
    return None if most is None else max(0, most - len(_instances(proxy, owner)))


def why_no_more(proxy: Proxy, owner: str) -> str:
    """Return in words what an owner with a limit has."""
    have = _instances(proxy, owner)
    names = ", ".join(have[:TOLD]) + (", …" if have[TOLD:] else "")
    which, s = f": {names}" if have else "", "" if len(have) == 1 else "s"
    return HAS.format(node=THIS_NODE, owner=owner, have=len(have), s=s, most=most_of(proxy, owner), which=which)


def never(proxy: Proxy, request: ClaimRequest) -> str | None:
    """Return why a request is too large for its owner, whatever else that has; None where it is not."""
    most = most_of(proxy, request.owner)
    if most is None or (1 if request.partial else len(request.instances)) <= most:
        return None
    return NEVER.format(node=THIS_NODE, owner=request.owner, most=most or "no", s="" if most == 1 else "s")


def _instances(proxy: Proxy, owner: str) -> Sequence[str]:
    return sorted(claim.instance for claim in proxy.store.claims() if claim.owner == owner)
