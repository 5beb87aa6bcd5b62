# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI devices that are GPUs, or that tell about them, as sysfs shows them: numbers, class, driver, NUMA node, IOMMU
group.

Only these files of only these vendors are read, because giving a GPU waits for it. devices/pci/sysfs.py reads all
devices.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .paths import HERE, link_name, names_in, text_of

if TYPE_CHECKING:
    from .paths import Folders

NVIDIA, AMD, INTEL, MELLANOX = 0x10DE, 0x1002, 0x8086, 0x15B3
#: Base class of display controllers: VGA 0x0300, 3D 0x0302, other 0x0380 (PCI Code and ID Assignment Specification).
DISPLAY = 0x03


@dataclass(frozen=True)
class PciDevice:
    address: str
    folder: str
    vendor: int
    device: int
    pci_class: int
    driver: str | None
    numa_node: int | None
    iommu_group: str | None

    @property
    def is_display(self) -> bool:
        return self.pci_class >> 16 == DISPLAY


def devices(paths: Folders = HERE) -> list[PciDevice]:
    """Return the GPUs of these vendors, and all devices of NVIDIA and Mellanox, by address."""
    found = []
    for address in names_in(paths.sys, "bus", "pci", "devices"):
        folder = os.path.join(paths.sys, "bus", "pci", "devices", address)
        # a device that is just being removed has no files any more
        vendor = _number(folder, "vendor")
        if vendor not in (NVIDIA, AMD, INTEL, MELLANOX):
            continue
        pci_class = _number(folder, "class")
        # most of a machine's devices are Intel's or AMD's, and no GPUs
        if pci_class is None or (vendor in (AMD, INTEL) and pci_class >> 16 != DISPLAY):
            continue
        device = _number(folder, "device")
        if device is not None:
            node = int(text_of(folder, "numa_node") or -1)
            found.append(
                PciDevice(
                    address.lower(),
                    folder,
                    vendor,
                    device,
                    pci_class,
                    driver=link_name(folder, "driver"),
                    # -1: the machine has one node, or its firmware says nothing
                    numa_node=node if node >= 0 else None,
                    iommu_group=link_name(folder, "iommu_group"),
                )
            )
    return found


def _number(folder: str, name: str) -> int | None:
    text = text_of(folder, name)
    return int(text, 16) if text else None
