# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.pci_table`: PCI devices, as pci_info returns them, in an aligned table."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.columns import aligned

HEADING = ("ADDRESS", "DRIVER", "GROUP", "NUMA", "TYPE", "STATE", "HOLDERS", "DEVICE")


def row(device: dict[str, Any]) -> list[str]:
    """A device's cells, as text."""
    cells = [device["address"]]
    cells += [device[name] for name in ("driver", "iommu_group", "numa_node", "type", "state")]
    who = dict.fromkeys(holder["command"] or holder["kind"] for holder in device["holders"])
    return [*("-" if cell is None else str(cell) for cell in cells), ", ".join(who) or "-", device["description"]]


def pci_table(devices: Any) -> list[str]:
    if isinstance(devices, (str, dict)) or not all(isinstance(one, dict) and "description" in one for one in devices):
        raise AnsibleFilterError(
            "hetero.compute.pci_table needs a list of devices, as pci_info returns them, before the bar"
        )
    return aligned([HEADING] + [row(device) for device in devices])
