# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change of bindings before it is made: which devices it includes, what each needs, and why it must not be made.

change_steps.py makes it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Dict, Iterable, Iterator, Mapping, NamedTuple, Sequence, Tuple

from ...core.errors import BadInput, Refused
from .groups import card, strangers
from .sysfs import ADDRESS, STUBS, Device, address_of

if TYPE_CHECKING:
    from .holders import Holder
    from .persistence import Binding

#: Word for the driver that the host itself would choose.
DEFAULT = "default"
DRIVERS = (*STUBS, DEFAULT)
IDS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}")


class Plan(NamedTuple):
    """Devices (all functions of each card) and the driver that they are to have."""

    chosen: Tuple[Device, ...]
    driver: str
    devices: Dict[str, Device]
    #: Addresses that were asked for and are bound at each boot, but where no device is now.
    gone: Tuple[str, ...] = ()

    @property
    def todo(self) -> list[Device]:
        """Return the devices that are not as they are to be."""
        return [device for device in self.chosen if not settled(device, self.driver)]

    @property
    def moving(self) -> list[Device]:
        """Devices that a driver must release."""
        return [device for device in self.chosen if must_leave(device, self.driver)]


def settled(device: Device, driver: str) -> bool:
    """Return whether a device is as it is to be.

    For one without driver only a probe shows if the host has one for it.
    """
    if driver == DEFAULT:
        return device.override is None and device.driver not in (None, *STUBS)
    return device.driver == driver == device.override


def must_leave(device: Device, driver: str) -> bool:
    """Return whether a driver must release the device."""
    if device.driver is None:
        return False
    return device.driver in STUBS if driver == DEFAULT else device.driver != driver


def plan(names: Iterable[str], driver: str, devices: Dict[str, Device], bindings: Mapping[str, Binding]) -> Plan:
    """Return the Plan for devices that a user named by address or by vendor:product.

    :param bindings: {address: Binding} of what is bound at each boot.
    :raises BadInput: there is no such device.
    """
    chosen: dict[str, Device] = {}
    gone: list[str] = []
    unknown: list[str] = []
    for name in names:
        text = name.strip().lower()
        if IDS.fullmatch(text):
            found = [device for device in devices.values() if device.ids == text]
        elif ADDRESS.fullmatch(text):
            address = address_of(text)
            found = [devices[address]] if address in devices else []
            if not found and driver == DEFAULT and address in bindings:
                gone.append(address)
                continue
        else:
            raise BadInput("is neither an address nor vendor:product", name, "write 0000:85:00.0 or 10de:11bf")
        if not found:
            unknown.append(name)
        for device in found:
            whole = [device] if device.of_the_host else card(device, devices)
            chosen.update({function.address: function for function in whole})
    if unknown:
        raise BadInput("no such PCI device here", ", ".join(unknown), "see pci_info, or lspci -nn")
    return Plan(tuple(chosen[address] for address in sorted(chosen)), driver, devices, tuple(gone))


def refuse(plan: Plan, held: Mapping[str, Sequence[Holder]], force: bool) -> None:
    """Raise Refused with all reasons against a plan. With `force`, those that it overrides are left out.

    :param held: {address: holders} of plan.moving.
    """
    reasons = [*_never(plan), *_held(plan, held, force)]
    if not reasons:
        return
    if all(remedy == FORCE for _reason, remedy in reasons):
        remedy = FORCE
    else:
        remedy = "; ".join(dict.fromkeys(remedy for _reason, remedy in reasons if remedy != FORCE))
    what = "; ".join(reason for reason, _remedy in reasons)
    shown = {address: [holder.shown for holder in holders] for address, holders in held.items() if holders}
    raise Refused(f"not bound to {plan.driver}: {what}", remedy=remedy, holders=shown)


FORCE = "end them, or go on with force=true"


def _never(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield (reason, remedy) of what forbids a plan, whoever holds the devices."""
    for device in plan.chosen:
        if device.of_the_host:
            kind = "a bridge" if device.bridge else "of the chipset"
            yield f"{device.address} is {kind}", "name cards only"
        elif device.changing:
            yield (
                f"{device.address} is leaving its driver, which waits for somebody",
                "end who has it, run this again",
            )
        elif plan.driver != DEFAULT and device.vfs:
            yield (
                f"{device.address} has {device.vfs} virtual functions switched on",
                f"name those, or write 0 to its sriov_numvfs (/sys/bus/pci/devices/{device.address})",
            )
        elif plan.driver == "vfio-pci" and device.group is None:
            remedy = "switch the IOMMU on (firmware, and intel_iommu=on on the kernel's command line) and boot"
            yield f"{device.address} has no IOMMU group", remedy
    if plan.driver == DEFAULT:
        return
    for other in strangers(plan.chosen, plan.devices):
        if other.of_the_host:
            remedy = "put the card into another slot: the chipset cannot be given away"
        else:
            remedy = f"bind it as well (devices: [..., '{other.address}']), or put one of them into another slot"
        who = f"{other.address} ({other.ids}) in it is on the host's {other.driver}"
        yield f"IOMMU group {other.group} is not viable: {who}", remedy


def _held(plan: Plan, held: Mapping[str, Sequence[Holder]], force: bool) -> Iterator[tuple[str, str]]:
    for device in plan.moving:
        for holder in held.get(device.address, ()):
            if holder.firm:
                yield f"{device.address}: {holder.text}", "free it first: force does not go past that"
            elif not force:
                yield f"{device.address}: {holder.text}", FORCE
