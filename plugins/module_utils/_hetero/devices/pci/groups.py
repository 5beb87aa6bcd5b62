# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IOMMU groups: which devices can go to a guest only together, and which device prevents its group from going.

This is the kernel's check (vfio_group viability). This file does not know who uses a device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, Mapping

from .sysfs import STUBS

if TYPE_CHECKING:
    from .sysfs import Device


def siblings(device: Device, devices: Mapping[str, Device]) -> list[Device]:
    """Return the other devices of its IOMMU group; none if it is in no group."""
    if device.group is None:
        return []
    return [other for other in devices.values() if other.group == device.group and other != device]


def card(device: Device, devices: Mapping[str, Device]) -> list[Device]:
    """Return the functions of its card that go with a device, with the device and without bridges.

    Functions that the IOMMU can separate go alone, and so do virtual functions.
    """
    if device.kind == "type-VF":
        return [device]
    return [
        other
        for other in devices.values()
        if (other.slot, other.group) == (device.slot, device.group)
        and other.kind != "type-VF"
        and not other.of_the_host
    ]


def strangers(chosen: Iterable[Device], devices: Mapping[str, Device]) -> list[Device]:
    """Return other devices in the groups of `chosen` that have a driver of the host and so keep the groups from guests.
    """
    groups = {device.group for device in chosen} - {None}
    taken = {device.address for device in chosen}
    return [
        other
        for other in devices.values()
        if other.group in groups
        and other.address not in taken
        and not other.bridge
        and other.driver is not None
        and other.driver not in STUBS
    ]
