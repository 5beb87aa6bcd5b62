# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.offers`: flavors, with how many instances of each there can be now, and at most. What is free
and nodes do not give to who asks (reserved, held for others, more than allowed) does not count, and is named.
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief, one_line
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.fit import describe
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.nodes import Verdict, verdicts
from ansible_collections.hetero.compute.plugins.plugin_utils.columns import aligned
from ansible_collections.hetero.compute.plugins.plugin_utils.heard import listed
from ansible_collections.hetero.compute.plugins.plugin_utils.plain_values import plain

HEADING = ("FLAVOR", "ID", "FREE", "OF", "ASKS FOR")


def offers(instance_types: Any, results: Any, table: bool = False) -> list[Any]:
    if not isinstance(instance_types, dict):
        raise AnsibleFilterError("hetero.compute.offers needs a mapping of flavors by name before the bar")
    asked = [result for result in listed(results) if "claims" in result]
    try:
        found = [_offer(name, flavor, asked) for name, flavor in sorted(plain(instance_types).items())]
    except HeteroError as error:
        raise AnsibleFilterError(str(error)) from error
    return [*aligned([HEADING, *map(_row, found)]), *_told(found)] if table else found


def _offer(name: str, flavor: dict[str, Any], asked: list[Any]) -> dict[str, Any]:
    nodes = [(result, verdicts(flavor, [result])) for result in asked]
    free = sum(one.room for _result, own in nodes for one in own)
    most = sum(one.most for _result, own in nodes for one in own)
    kept = [dict(one, node=result.get("item")) for result, own in nodes for one in _kept(name, result, own)]
    free -= sum(one["many"] for one in kept)
    asks = describe("", flavor).strip(" ()")
    return dict(name=name, flavorid=flavor.get("flavorid"), asks=asks, free=free, most=most, kept=kept)


def _kept(name: str, result: Mapping[str, Any], nodes: list[Verdict]) -> Iterator[dict[str, Any]]:
    """Yield how many instances of a flavor there is room for on a node, and are not given to who asks, and why."""
    offer = (result.get("offers") or {}).get(name)
    many = sum(one.room for one in nodes) - max(0, int(offer["may"])) if offer else 0
    if offer and many > 0:
        yield dict(many=many, why=[one_line(brief(why)) for why in offer["why"]])


def _told(found: list[dict[str, Any]]) -> Iterator[str]:
    for offer in found:
        for one in offer["kept"]:
            why = f": {'; '.join(one['why'])}" if one["why"] else ""
            node = f" on {one_line(brief(str(one['node'])))}" if one["node"] else ""
            yield f"{offer['name']}: {one['many']} more free{node}, not for you{why}"


def _row(offer: Mapping[str, Any]) -> tuple[str, ...]:
    number = "-" if offer["flavorid"] is None else str(offer["flavorid"])
    return (offer["name"], number, str(offer["free"]), str(offer["most"]), offer["asks"])
