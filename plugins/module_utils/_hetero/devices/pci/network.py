# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this host needs of a network interface: its default route, file systems from elsewhere, this login."""

from __future__ import annotations

import ipaddress
import os
from typing import TYPE_CHECKING, Collection, Iterable, Iterator, Mapping, Tuple, Union

from ...core.kernel_text import mount_table

if TYPE_CHECKING:
    from .paths import Paths

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
#: A network, and the interface by which it is reached.
Route = Tuple[Union[ipaddress.IPv4Network, ipaddress.IPv6Network], str]


def uses(interfaces: Collection[str], paths: Paths, environment: Mapping[str, str] | None = None) -> list[str]:
    """Return in words what needs one of these interfaces, or something built on them (bond, bridge, VLAN)."""
    if not interfaces:
        return []
    routes = [*_routes4(paths), *_routes6(paths)]
    own = {above: name for name in interfaces for above in _with_uppers(name, paths)}
    needs: list[tuple[str, str | None]] = [("the default route", name) for net, name in routes if net.prefixlen == 0]
    served = [*_mounts(paths), *_login(os.environ if environment is None else environment)]
    needs += [(what, _way(address, routes)) for what, address in served]
    return [
        f"{what} goes over {name}{'' if name in interfaces else f', which is on {own[name]}'}"
        for what, name in dict.fromkeys(needs)
        if name in own
    ]


def _with_uppers(name: str, paths: Paths) -> set[str]:
    """Return an interface and all that is built on it."""
    found, stack = set(), [name]
    while stack:
        name = stack.pop()
        if name in found:
            continue
        found.add(name)
        try:
            entries = os.listdir(os.path.join(paths.sys, "class/net", name))
        except FileNotFoundError:
            continue
        stack += [entry[len("upper_") :] for entry in entries if entry.startswith("upper_")]
    return found


def _routes4(paths: Paths) -> Iterator[Route]:
    """Yield (network, interface) of routes that are up. /proc/net/route has words in the processor's byte order."""
    for fields in _table(paths, "route")[1:]:
        net, mask = (ipaddress.ip_address(int(fields[column], 16).to_bytes(4, "little")) for column in (1, 7))
        if int(fields[3], 16) & 1:
            yield ipaddress.ip_network(f"{net}/{mask}", strict=False), fields[0]


def _routes6(paths: Paths) -> Iterator[Route]:
    for fields in _table(paths, "ipv6_route"):
        flags = int(fields[8], 16)
        # RTF_UP and not RTF_REJECT (linux/route.h): the kernel's own "unreachable" covers all addresses
        if flags & 0x1 and not flags & 0x200:
            address = ipaddress.ip_address(bytes.fromhex(fields[0]))
            yield ipaddress.ip_network((address, int(fields[1], 16)), strict=False), fields[9]


def _table(paths: Paths, name: str) -> list[list[str]]:
    try:
        with open(os.path.join(paths.proc, "net", name), encoding="ascii") as file:
            return [line.split() for line in file]
    except FileNotFoundError:
        return []  # a kernel without that protocol


def _way(address: Address, routes: Iterable[Route]) -> str | None:
    """Return the interface by which an address is reached, or None."""
    fitting = [(net.prefixlen, name) for net, name in routes if net.version == address.version and address in net]
    return max(fitting)[1] if fitting else None


def _mounts(paths: Paths) -> Iterator[tuple[str, Address]]:
    """Yield (what, server) of file systems that come over the network."""
    for line in mount_table(paths.proc):
        servers = [option.partition("=")[2] for option in line.options if option.startswith("addr=")]
        address = _address(servers[0]) if servers else None
        if address:
            yield f"{line.point} (mounted from {servers[0]})", address


def _login(environment: Mapping[str, str]) -> list[tuple[str, Address]]:
    """Return (what, client) of the ssh login in which this process runs."""
    client = _address(environment.get("SSH_CONNECTION", "").partition(" ")[0].partition("%")[0])
    return [(f"this login from {client}", client)] if client else []


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
