# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of vendors, products and classes from the system's pci.ids, whose beginning explains its format."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Collection, Dict, Iterable, NamedTuple, Tuple

if TYPE_CHECKING:
    from .paths import Paths
    from .sysfs import Device


class Names(NamedTuple):
    """Known names. Keys are hexadecimal ids as sysfs writes them, without 0x."""

    vendors: Dict[str, str]
    products: Dict[Tuple[str, str], str]
    classes: Dict[str, str]

    def vendor(self, device: Device) -> str | None:
        return self.vendors.get(device.vendor_id)

    def product(self, device: Device) -> str | None:
        return self.products.get((device.vendor_id, device.product_id))

    def device_class(self, device: Device) -> str | None:
        return self.classes.get(device.class_code[:4]) or self.classes.get(device.class_code[:2])


def names(devices: Iterable[Device], paths: Paths) -> Names:
    """Return the names for these devices; none if the system has no pci.ids (Debian package pci.ids)."""
    found = Names({}, {}, {})
    vendors = {device.vendor_id for device in devices}
    products = {(device.vendor_id, device.product_id) for device in devices}
    for path in filter(os.path.exists, paths.ids):
        with open(path, encoding="utf-8", errors="replace") as file:
            _read(file, vendors, products, found)
        break
    return found


def _read(lines: Iterable[str], vendors: Collection[str], products: Collection[tuple[str, str]], found: Names) -> None:
    vendor = base = None
    for line in lines:
        if line.startswith(("#", "\n", "\t\t")):
            continue  # a comment, an empty line or a subsystem
        code, _gap, name = line.strip().partition("  ")
        if line.startswith("C "):
            vendor, base = None, code[2:]
            found.classes[base] = name
        elif not line.startswith("\t"):
            vendor, base = code, None
            if vendor in vendors:
                found.vendors[vendor] = name
        elif base is not None:
            found.classes[base + code] = name
        elif vendor is not None and (vendor, code) in products:
            found.products[vendor, code] = name
