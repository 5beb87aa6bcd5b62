# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What exists on nodes of instances without a claim there, after several nodes were asked; also of one that has moved,
where the databases of both hosts were put back from before that.
"""

from __future__ import annotations

from typing import Any, Collection, Container, Iterable, Iterator, Mapping

from .instance_states import LEAVING
from .kinds import OF_HOSTS
from .owners import Claim, Result

#: What is said beside the node where nothing there tells for which claim it was made.
MAY_BE = ", which may be that of {nodes}, moved"


def unclaimed(
    results: Collection[Result], names: Container[str] | None = None, moved: bool = False, ends: bool = False
) -> list[str]:
    """Return as texts what exists of instances of which no node has a claim, or another one by an older database.

    :param results: as of `owners.holders`. Each may have `unclaimed`, dicts with `instance` and `text`. What a node
        says of an instance that it has a claim of itself counts too, because that claim is the older one.
    :param names: only these instances; None for all.
    :param moved: only those of which another node has a claim.
    :param ends: whether they are to end: what the node to which one moves has of it is a part of it, and may run.
    """
    claims = [(claim, str(result["item"])) for result in results for claim in result["claims"]]
    told = []
    for item, one in _unclaimed(results, harmless=False):
        asked = names is None or one["instance"] in names
        theirs = [(claim, other) for claim, other in claims if claim["instance"] == one["instance"] and other != item]
        left = sorted(there for claim, there in theirs if _has_left(claim, there, one, item if ends else None))
        if asked and (left or not (theirs or moved or one.get("half"))):
            is_known = not left or one.get("created") is not None
            what = "" if is_known else MAY_BE.format(nodes=" and ".join(left))
            told.append(f"{one['instance']} on {item}{what}: {one['text']}")
    return told


def _has_left(claim: Claim, there: str, one: Mapping[str, Any], to: str | None) -> bool:
    """Return whether what exists without a claim is, or may be, the very instance of another node's claim, which does
    not say that it leaves: it has moved, and the databases of both nodes are older than that. It is none that has left
    for that one. So is that of one that leaves for the node `to`.

    What is half there runs nowhere, and is told where all of it is to end.

    Where the record of its claim is damaged or gone, nobody can say that it is another, but of a guest that it is no
    container. What has a board does not move so.
    """
    may_be = claim.get("kind") in OF_HOSTS and "created" in one and one["created"] in (None, claim["created"])
    may_be = may_be and one.get("kind") in (None, claim["kind"]) and (to is not None or not one.get("half"))
    is_part = claim.get("state") != LEAVING or claim.get("leaves_for") == to
    return may_be and is_part and one.get("leaves_for") != there


def notes(results: Iterable[Result]) -> list[str]:
    """Return as texts what lies on nodes, belongs to no instance and should be looked at.

    :param results: as of `unclaimed`.
    """
    told = [f"{one['name']} on {item}: {one['text']}" for item, one in _unclaimed(results, harmless=True)]
    halves = [(item, one) for item, one in _unclaimed(results, harmless=False) if one.get("half")]
    return told + [f"{one['instance']} on {item}: {one['text']}" for item, one in halves]


def _unclaimed(results: Iterable[Result], harmless: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    for result in results:
        for one in result.get("unclaimed", ()):
            if one.get("harmless", False) == harmless:
                yield str(result["item"]), one
