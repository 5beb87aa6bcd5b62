# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which libvirt domains have a PCI device in their XML, read from libvirt's own files, so that libvirt need not run.

This file does not know what libvirt does to a device's binding.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Iterator
from xml.etree import ElementTree

from ...core.errors import HeteroError
from .sysfs import ADDRESS

if TYPE_CHECKING:
    from .paths import Paths

#: Bytes of a file of libvirt's that are looked at; one of a domain has some thousand.
MOST = 1 << 20
#: Of a device that is free by the table, and that libvirt gives to a domain at its start.
STARTS = "domain {name} would start with it (module hetero.compute.libvirt_hostdev, state detached, takes it away)"


def holders(paths: Paths) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return ({address: names of defined domains}, {address: names of running domains})."""
    return _read(paths.domains), running(paths)


def running(paths: Paths) -> dict[str, list[str]]:
    """Return {address: names of running domains}."""
    return _read(paths.running_domains)


def _read(folder: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, domain in _in(folder):
        for address in addresses(domain):
            found.setdefault(address, []).append(name)
    return found


def _in(folder: str) -> Iterator[tuple[str, ElementTree.Element]]:
    for path in files(folder):
        domain = described(path)
        if domain is not None:
            yield domain.findtext("name") or os.path.basename(path)[: -len(".xml")], domain


def uuids(paths: Paths) -> set[str | None]:
    """Return the UUIDs of all domains that are defined or run."""
    known = [*_in(paths.domains), *_in(paths.running_domains)]
    return {domain.findtext("uuid") for _name, domain in known}


def is_there(name: str, paths: Paths) -> bool:
    """Return whether libvirt has a file of a domain, which is defined or runs."""
    return any(os.path.exists(os.path.join(folder, f"{name}.xml")) for folder in (paths.domains, paths.running_domains))


def emptied(name: str, paths: Paths) -> str | None:
    """Return the path of a domain's file that a power cut left empty, so that libvirt has no such domain; None where it
    is whole, or none is there.
    """
    path = os.path.join(paths.domains, f"{name}.xml")
    if os.path.exists(os.path.join(paths.running_domains, f"{name}.xml")) or not os.path.exists(path):
        return None
    return path if _is_blank(path) else None


def files(folder: str) -> list[str]:
    """Return the paths of libvirt's files of domains in a folder."""
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".xml")]
    except FileNotFoundError:
        return []


def described(path: str) -> ElementTree.Element | None:
    """Return the domain in a file of libvirt's; None where it was undefined meanwhile, or a power cut left nothing of
    the file: libvirt passes over that, and no domain comes of it.

    :raises HeteroError: it is no XML.
    """
    try:
        tree = ElementTree.parse(path).getroot()
    except FileNotFoundError:
        return None
    except ElementTree.ParseError as error:
        if _is_blank(path):
            return None
        raise HeteroError(f"is no XML ({error})", path, "let virsh write it again, or remove it") from error
    # for a running domain libvirt writes <domstatus> around it
    return tree if tree.tag == "domain" else tree.find("domain")


def _is_blank(path: str) -> bool:
    """Return whether a file has no letter: it is empty, or of zeros, as a file system leaves one."""
    with open(path, "rb") as file:
        return not file.read(MOST).strip(b"\0 \t\r\n")


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
