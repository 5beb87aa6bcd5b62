# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts for other machines between a board and its proxy: a second DHCP server, or one with the proxy's own address.

phases.py sees what happens during a boot; neighbours.py asks what can be asked now.
"""

from __future__ import annotations

from typing import Collection

from . import neighbours
from .driver import OTHER_ADDRESS, OTHER_DHCP


def named(server: str, interface: str, mac: str | None, seen: Collection[tuple[str, str]]) -> list[str]:
    """Return texts that name each stranger to the boot of a board.

    :param server: the proxy's address.
    :param mac: the board's; None if the proxy gives no addresses by DHCP.
    :param seen: (kind, name) of OTHER_DHCP (name: its address) and OTHER_ADDRESS (its MAC), as seen during the boot.
    """
    servers = {name: "" for kind, name in seen if kind == OTHER_DHCP}
    macs = {name for kind, name in seen if kind == OTHER_ADDRESS}
    if mac:
        servers.update(neighbours.dhcp_servers(interface, mac))
    for address in [address for address in servers if not servers[address]]:
        servers[address] = ", ".join(sorted(neighbours.holders(interface, address)))
    macs |= neighbours.holders(interface, server)
    return [dhcp_text(address, servers[address]) for address in sorted(servers)] + [
        address_text(server, mac) for mac in sorted(macs)
    ]


def dhcp_text(address: str, mac: str) -> str:
    return f"another DHCP server answers boards: {address} ({mac or 'its MAC is not known'})"


def address_text(server: str, mac: str) -> str:
    return f"another machine says that it has the proxy's address {server}: {mac}"
