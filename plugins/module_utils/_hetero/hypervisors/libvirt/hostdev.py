# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI devices in libvirt's XML, and what libvirt does to a device's binding before and after a guest has it.

domain.py changes domains, and attachment.py decides which device may go to a guest.
"""

from __future__ import annotations

import re
from typing import Iterator, NamedTuple
from xml.etree import ElementTree

from ...devices.pci.domains import addresses
from ...devices.pci.sysfs import address_of

VFIO = "vfio-pci"
PARKED = "pci-stub"


class Given(NamedTuple):
    """A PCI device in a domain's XML. The device of a network interface counts as managed."""

    address: str
    managed: bool


def element(address: str, managed: bool = True) -> ElementTree.Element:
    """Return <hostdev> for a device."""
    hostdev = ElementTree.Element("hostdev", mode="subsystem", type="pci", managed="yes" if managed else "no")
    ElementTree.SubElement(hostdev, "driver", name="vfio")
    source = ElementTree.SubElement(hostdev, "source")
    names = ("domain", "bus", "slot", "function")
    parts = re.split("[:.]", address_of(address))
    ElementTree.SubElement(source, "address", {name: f"0x{part}" for name, part in zip(names, parts)})
    return hostdev


def xml(address: str, managed: bool = True) -> str:
    """Return <hostdev> as text in one line."""
    return ElementTree.tostring(element(address, managed), encoding="unicode")


def devices_in(domain: ElementTree.Element) -> dict[str, Given]:
    """Return {address: Given} of a domain's XML."""
    found = {address: Given(address, True) for address in addresses(domain)}
    for address, hostdev in _hostdevs(domain):
        found[address] = Given(address, hostdev.get("managed") == "yes")
    return found


def manage(domain: ElementTree.Element, address: str, managed: bool) -> None:
    """Write into a domain's XML how one of its <hostdev> is managed."""
    for its, hostdev in _hostdevs(domain):
        if its == address:
            hostdev.set("managed", "yes" if managed else "no")


def _hostdevs(domain: ElementTree.Element) -> Iterator[tuple[str, ElementTree.Element]]:
    for hostdev in domain.iterfind("devices/hostdev[@type='pci']"):
        alone = ElementTree.Element("domain")
        ElementTree.SubElement(alone, "devices").append(hostdev)
        for address in addresses(alone):
            yield address, hostdev


def afterwards(driver: str | None, managed: bool, runs: bool = False) -> str:
    """Return in words where a device is after its guest has ended.

    libvirt (virHostdevReAttachPCIDevices) gives a managed device back to the host's drivers unless it was on vfio-pci
    before, and clears its driver_override for that: a card on pci-stub does not come back to it.

    :param driver: the device's driver before the guest.
    :param runs: whether a guest has it now, so that only libvirt knows that driver.
    """
    if not managed:
        return f"stays on {VFIO}: libvirt leaves its binding alone (managed no)"
    if runs:
        return f"stays on {VFIO} if it was on it before this guest; else it goes to the host's own driver"
    if driver == VFIO:
        return f"stays on {VFIO}"
    if driver == PARKED:
        return (
            f"goes to the host's own driver, not back to {PARKED}, which parks a device until its first guest only: "
            f"bind it to {VFIO} for good (module hetero.compute.pci_driver) to keep it for guests"
        )
    return f"goes back to {driver}" if driver else "goes to the host's own driver, if it has one"
