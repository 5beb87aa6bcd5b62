# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which libvirt domains have a PCI device in their XML, read from libvirt's own files, so that libvirt need not run.

This file does not know what libvirt does to a device's binding.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from ...core.errors import HeteroError
from .sysfs import ADDRESS

if TYPE_CHECKING:
    from .paths import Paths


def holders(paths: Paths) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return ({address: names of defined domains}, {address: names of running domains})."""
    return _read(paths.domains), _read(paths.running_domains)


def _read(folder: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return found
    for name in names:
        if not name.endswith(".xml"):
            continue
        path = os.path.join(folder, name)
        try:
            tree = ElementTree.parse(path).getroot()
        except FileNotFoundError:
            continue  # its domain was undefined meanwhile
        except ElementTree.ParseError as error:
            raise HeteroError(f"is no XML ({error})", path, "let virsh write it again, or remove it") from error
        # for a running domain libvirt writes <domstatus> around it
        domain = tree if tree.tag == "domain" else tree.find("domain")
        if domain is not None:
            for address in addresses(domain):
                found.setdefault(address, []).append(domain.findtext("name") or name[: -len(".xml")])
    return found


def addresses(domain: ElementTree.Element) -> list[str]:
    """Return the PCI addresses that a domain's XML gives to the guest, of devices and of network interfaces."""
    found = []
    for path in ("hostdev", "interface"):
        for device in domain.iterfind(f"devices/{path}[@type='{'pci' if path == 'hostdev' else 'hostdev'}']"):
            source = device.find("source/address")
            if source is None:
                continue
            parts = [int(source.get(name, "0"), 0) for name in ("domain", "bus", "slot", "function")]
            text = "{:04x}:{:02x}:{:02x}.{:x}".format(*parts)
            if ADDRESS.fullmatch(text):
                found.append(text)
    return found
