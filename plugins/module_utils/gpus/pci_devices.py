# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The PCI devices of this machine, as sysfs shows them: numbers, class, driver, NUMA node and IOMMU group."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .paths import HERE, link_name, names_in, text_of

NVIDIA, AMD, INTEL = 0x10DE, 0x1002, 0x8086
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
    def is_display(self):
        return self.pci_class >> 16 == DISPLAY


def devices(paths=HERE):
    """All of them, by address."""
    found = []
    for address in names_in(paths.sys, "bus", "pci", "devices"):
        folder = os.path.join(paths.sys, "bus", "pci", "devices", address)
        numbers = [text_of(folder, name) for name in ("vendor", "device", "class")]
        # a device that is just being taken away has no files any more
        if all(numbers):
            vendor, device, pci_class = (int(number, 16) for number in numbers)
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
