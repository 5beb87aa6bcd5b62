# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI devices as people and programs read about them: names, groups, holders, and what is not as it should be."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping

from . import ids, sysfs
from .groups import siblings
from .holders import holders
from .interrupts import OPTION, REMEDY, allowed
from .journal import Journal
from .persistence import read
from .pools import pools

if TYPE_CHECKING:
    from .holders import Holder
    from .paths import Paths
    from .persistence import Binding
    from .sysfs import Device

#: Kinds of holders that make a device a guest's, or the host's own.
GIVEN = ("guest", "allocation")
OWN = ("display", "storage", "network")


def information(paths: Paths, wanted: Callable[[Device], bool] | None = None) -> dict[str, Any]:
    """Return a dict of devices, pools and problems.

    :param wanted: takes a Device and returns whether it is shown (default: all are). Bindings of each boot whose device
        is missing are always shown.
    """
    devices = sysfs.devices(paths)
    chosen = [device for device in devices.values() if wanted is None or wanted(device)]
    held, defined = holders(chosen, paths)
    bindings, journal, names = read(paths), Journal(paths), ids.names(chosen, paths)
    pending = {address for operation in journal.operations for address in operation.devices}
    shown = []
    for device in chosen:
        binding = bindings.get(device.address)
        text = dict(class_name=names.device_class(device), vendor=names.vendor(device), product=names.product(device))
        shown.append(
            dict(
                _fields(device),
                **text,
                description=_described(device, text),
                siblings=[other.address for other in siblings(device, devices)],
                parent_interface=_parent_interface(device, paths),
                holders=[holder.shown for holder in held[device.address]],
                domains=defined.get(device.address, []),
                state=_state(device, held[device.address], defined),
                persistent=binding.driver if binding and binding.fits(device) else None,
                pending=device.address in pending,
            )
        )
    gone = [binding for address, binding in sorted(bindings.items()) if address not in devices]
    shown += [_gone(binding) for binding in gone]
    problems = [f"{path}: {OPTION} is on: {REMEDY}" for path in allowed(paths.sys)]
    return dict(devices=shown, pools=pools(shown), problems=problems + _problems(bindings, devices, journal))


def _fields(device: Device) -> dict[str, Any]:
    return dict(
        address=device.address,
        device_class=device.class_code,
        vendor_id=device.vendor_id,
        product_id=device.product_id,
        subsystem_vendor_id=device.subsystem_vendor_id,
        subsystem_id=device.subsystem_id,
        revision=device.revision,
        driver=device.driver,
        driver_override=device.override,
        iommu_group=device.group,
        numa_node=device.numa_node,
        type=device.kind,
        parent=device.parent,
    )


def _described(device: Device, names: Mapping[str, str | None]) -> str:
    """Return a device as lspci -nn writes it after its address."""
    parts = [f"{names['class_name'] or 'Class'} [{device.class_code[:4]}]:"]
    parts += [names["vendor"] or "", names["product"] or "Device"]
    revision = f" (rev {device.revision})" if device.revision != "00" else ""
    return f"{' '.join(filter(None, parts))} [{device.ids}]{revision}"


def _state(device: Device, held: Iterable[Holder], defined: Mapping[str, Any]) -> str:
    kinds = {holder.kind for holder in held}
    if kinds & set(GIVEN):
        return "allocated"
    if device.address in defined:
        return "claimed"
    return "host" if device.of_the_host or kinds & set(OWN) else "available"


def _parent_interface(device: Device, paths: Paths) -> str | None:
    """Return the network interface of the card of a virtual function that is an interface itself, or None."""
    if device.parent is None or not os.path.isdir(paths.device(device.address, "net")):
        return None
    folder = paths.device(device.parent, "net")
    return next(iter(sorted(os.listdir(folder))), None) if os.path.isdir(folder) else None


def _gone(binding: Binding) -> dict[str, Any]:
    names = "device_class class_name vendor product subsystem_vendor_id subsystem_id revision driver driver_override"
    nothing = dict.fromkeys(f"{names} iommu_group numa_node type parent parent_interface".split())
    lists = dict(siblings=[], holders=[], domains=[])
    ours = dict(address=binding.address, vendor_id=binding.vendor_id, product_id=binding.product_id)
    ours.update(description=f"not in this machine [{binding.ids}]")
    return dict(nothing, **lists, **ours, state="removed", persistent=binding.driver, pending=False)


def _problems(bindings: Mapping[str, Binding], devices: Mapping[str, Device], journal: Journal) -> list[str]:
    """Return in words what is not as it was meant to be."""
    found = []
    for address, binding in sorted(bindings.items()):
        device = devices.get(address)
        if device is None:
            found.append(
                f"{address} is bound to {binding.driver} at each boot, and is not there: "
                "put it back, or take its binding out with driver default"
            )
        elif not binding.fits(device):
            found.append(
                f"{address} is {device.ids}, and its binding to {binding.driver} is for {binding.ids}: another card is "
                "there; bind the right one, or take the binding out with driver default"
            )
        elif device.driver != binding.driver:
            found.append(
                f"{address} is on {device.driver or 'no driver'}, not on {binding.driver}: run hetero pci-restore"
            )
    for operation in journal.operations:
        found.append(f"{operation.words} is not over: run pci_driver again when its holders have left")
    return found
