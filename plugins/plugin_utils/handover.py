# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a verb hands over at its end: which nodes did not do their part, the instances that the others brought up, and
the lines that tell people how each is reached and until when it is lent.
"""

from __future__ import annotations

import os
import shlex
from typing import Any, Iterable, Mapping, Sequence

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance_states import LEAVING

#: What one node has of an instance, as the steps of a request say it (request_steps.py).
Part = Mapping[str, Any]
#: {node: result of module `instance`}.
Said = Mapping[str, Mapping[str, Any]]

NOT_DONE = "{nodes} did not do it, or broke off, as is said above. What the others did is done: run this again"
#: Of one that moved as it was ended. What ended was where it had been, or only its claim there.
MOVES_ON = (
    "{instance} moved to {host} while it was ended on {node}, and may run there: run this again, which ends it there"
)


def undone(said: Said) -> list[str]:
    """Return the nodes that did not do their part: one that cannot be reached does not end a play, nor does one that
    fails in a free strategy.
    """
    return [node for node, result in said.items() if not result or result.get("failed") or result.get("unreachable")]


def moved_on(parts: Iterable[Part], said: Said) -> list[str]:
    """Return in words which instances left a node that was to end them, and were ended on no other one.

    Of those that were known to leave when they were looked up, whoever left out the other node knows of it.
    """
    names = {claim["instance"] for part in parts for claim in part["claims"] if claim.get("state") != LEAVING}
    ended = {
        node: {one.get("instance") for one in result.get("instances") or () if one} for node, result in said.items()
    }
    return [
        MOVES_ON.format(instance=name, host=host, node=node)
        for node, result in said.items()
        for name, host in sorted((result.get("left") or {}).items())
        if name in names and not any(name in ended[other] for other in said if other != node)
    ]


def brought_up(parts: Iterable[Part], said: Said) -> list[dict[str, Any]]:
    """Return the instances, as the verb left them. What a node says of others' is none of this request's."""
    names = {claim["instance"] for part in parts for claim in part["claims"]}
    given = [one for result in said.values() for one in result.get("instances") or ()]
    return [dict(one) for one in given if one.get("instance") in names]


def ways(instances: Iterable[Mapping[str, Any]], folder: str) -> list[str]:
    """Return a line for each instance that says how it is reached.

    :param folder: where its file for `ssh -F` is kept; "" for none. Of such a file ssh knows the host key, and the
        options that it needs.
    """
    file = shlex.quote(os.path.relpath(folder)) if folder else ""
    lines = []
    for one in instances:
        name = one["instance"]
        how = f"ssh -F {file}/{name} {name}" if file else f"ssh root@{one.get('ip')}"
        lines.append(f"{name} is running on {one.get('name')}: {how}")
    return lines


def leases(instances: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each instance that has a lease with an end, or one without, in words of its node."""
    return [f"{one['instance']} has {one.get('name')}, lease: {one['until']}" for one in instances if one.get("until")]
