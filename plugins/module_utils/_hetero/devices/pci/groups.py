# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IOMMU groups: which devices can only go to a guest together, and which of them keeps its group from going.

What the kernel checks (vfio_group viability) is known here; who uses a device is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, Mapping

from .sysfs import STUBS

if TYPE_CHECKING:
    from .sysfs import Device


def siblings(device: Device, devices: Mapping[str, Device]) -> list[Device]:
    """All devices of its IOMMU group but itself, by address; none where it has no group."""
    if device.group is None:
        return []
    return [other for other in devices.values() if other.group == device.group and other != device]


def card(device: Device, devices: Mapping[str, Device]) -> list[Device]:
    """The functions of the card that go with a device, itself included, without bridges.

    Functions that the IOMMU tells apart go by themselves, and so do virtual functions.
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
    """Devices that keep the groups of `chosen` from going to a guest: others in them, with a driver of the host's."""
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
