# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of devices as Nova's pci_stats counts them (nova/pci/stats.py of Nova 34): one for each kind and place.

This file does not know which devices Nova may use (device_spec).
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

#: State of devices that are in a pool.
FREE = "available"


def pools(shown: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the pools of devices that pci_info shows, in the order of addresses.

    Since Placement, Nova gives each card its own pool; virtual functions share one with those of their card. A card is
    in no pool while one of its functions is given away, nor are its functions while the card is.
    """
    taken = {device["address"] for device in shown if device["state"] in ("allocated", "claimed")}
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for device in shown:
        if device["state"] != FREE or device["parent"] in taken:
            continue
        if any(other["parent"] == device["address"] and other["address"] in taken for other in shown):
            continue
        keys = dict(
            vendor_id=device["vendor_id"],
            product_id=device["product_id"],
            numa_node=device["numa_node"],
            dev_type=device["type"],
            address=device["parent"] or device["address"],
        )
        if device["type"] != "type-PCI":
            keys["remote_managed"] = "false"
        if device.get("parent_interface"):
            keys["parent_ifname"] = device["parent_interface"]
        pool = found.setdefault(tuple(keys.items()), dict(keys, count=0, devices=[]))
        pool["count"] += 1
        pool["devices"].append(device["address"])
    return list(found.values())
