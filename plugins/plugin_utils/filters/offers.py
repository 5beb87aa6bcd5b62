# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.offers`: flavors, with how many instances of each there can be now, and at most."""

from __future__ import annotations

from typing import Any, Mapping

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.fit import describe
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.nodes import verdicts
from ansible_collections.hetero.compute.plugins.plugin_utils.columns import aligned

HEADING = ("FLAVOR", "ID", "FREE", "OF", "ASKS FOR")


def offers(instance_types: Any, results: Any, table: bool = False) -> list[Any]:
    if not isinstance(instance_types, dict):
        raise AnsibleFilterError("hetero.compute.offers needs a mapping of flavors by name before the bar")
    asked = [result for result in results if "claims" in result]
    try:
        found = [_offer(name, flavor, asked) for name, flavor in sorted(instance_types.items())]
    except HeteroError as error:
        raise AnsibleFilterError(str(error)) from error
    return aligned([HEADING, *map(_row, found)]) if table else found


def _offer(name: str, flavor: dict[str, Any], asked: list[Any]) -> dict[str, Any]:
    nodes = verdicts(flavor, asked)
    free, most = sum(node.room for node in nodes), sum(node.most for node in nodes)
    asks = describe("", flavor).strip(" ()")
    return dict(name=name, flavorid=flavor.get("flavorid"), asks=asks, free=free, most=most)


def _row(offer: Mapping[str, Any]) -> tuple[str, ...]:
    number = "-" if offer["flavorid"] is None else str(offer["flavorid"])
    return (offer["name"], number, str(offer["free"]), str(offer["most"]), offer["asks"])
