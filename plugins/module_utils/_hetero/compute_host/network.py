# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of a compute host's containers: its bridge, its own address there, and those that containers get.

Either the host's own bridge, made by role gpu_lxc, or one that is there. Which container has which address is known to
the host's database.
"""

from __future__ import annotations

import ipaddress
import json
import os
from typing import TYPE_CHECKING, Any, Protocol, Sequence

from ..core.command import command

if TYPE_CHECKING:
    from ..core.findings import Findings

SYS = "/sys/class/net"
#: First host number handed out to instances; lower ones are left for manual use.
FIRST = 10
#: Most addresses for instances of a larger network; each has rules of its own on the bridge (hypervisors/pinning.py).
MOST = 4096
IFF_UP = 1  # linux/if.h


class Plan(Protocol):
    """The network settings of what a role is about to set up (nodes/compute_host/preflight.py)."""

    @property
    def bridge(self) -> str: ...
    @property
    def make_bridge(self) -> bool: ...
    @property
    def network(self) -> str: ...
    @property
    def gateway(self) -> str: ...
    @property
    def addresses(self) -> Sequence[str]: ...


def look(plan: Plan, found: Findings) -> dict[str, Any]:
    """Return what the configuration says of the network: network, prefix_length, gateway and addresses.

    :param found: gets the plan's defects, and then the result is empty.
    """
    try:
        network = ipaddress.IPv4Network(plan.network)
    except ValueError as error:
        found.defect("gpu_lxc_network", str(error), "write it like 10.0.80.0/24")
        return {}
    if not 8 <= network.prefixlen <= 28:
        found.defect("gpu_lxc_network", f"{network} has no room for containers", "give it a prefix from /8 to /28")
        return {}
    gateway = plan.gateway or (str(network[1]) if plan.make_bridge else "")
    addresses = plan.addresses or [str(network[FIRST]), str(network[min(FIRST + MOST - 1, network.num_addresses - 2)])]
    for name, address in [("gpu_lxc_gateway", gateway), *(("gpu_lxc_addresses", address) for address in addresses)]:
        if address and not _within(address, network):
            found.defect(name, f"{address} is not an address of {network}", "correct it, or gpu_lxc_network")
            return {}
    if len(addresses) != 2 or ipaddress.IPv4Address(addresses[0]) > ipaddress.IPv4Address(addresses[1]):
        found.defect("gpu_lxc_addresses", f"is {addresses}", "give the first and the last address for containers")
        return {}
    _bridge(plan, network, gateway, found)
    return dict(network=str(network), prefix_length=network.prefixlen, gateway=gateway, addresses=addresses)


def _within(address: str, network: ipaddress.IPv4Network) -> bool:
    try:
        return network.network_address < ipaddress.IPv4Address(address) < network.broadcast_address
    except ValueError:
        return False


def _bridge(plan: Plan, network: ipaddress.IPv4Network, gateway: str, found: Findings) -> None:
    there = os.path.exists(os.path.join(SYS, plan.bridge))
    if there and not os.path.isdir(os.path.join(SYS, plan.bridge, "bridge")):
        found.defect(plan.bridge, "is an interface, and no bridge", "name another one in gpu_lxc_bridge")
        return
    if not plan.make_bridge:
        if not there:
            what = "there is no such bridge, and the role is not to make it"
            found.defect(plan.bridge, what, "make it, or set gpu_lxc_make_bridge: true")
        return
    for name, interface in interfaces():
        if name == plan.bridge and str(interface.ip) != gateway:
            what = f"has address {interface}, and gpu_lxc_gateway is {gateway}"
            found.defect(name, what, "correct gpu_lxc_network, name another bridge, or gpu_lxc_make_bridge: false")
        elif name != plan.bridge and interface.network.overlaps(network):
            what = f"{network} is the containers' network, and {name} has {interface} in it"
            found.defect("gpu_lxc_network", what, "choose another network")


def stands(bridge: str, gateway: str) -> bool:
    """Return whether the bridge is there, is up, and has the containers' gateway as an address."""
    try:
        with open(os.path.join(SYS, bridge, "flags"), encoding="ascii") as file:
            up = int(file.read(), 16) & IFF_UP
    except FileNotFoundError:
        return False
    return bool(up) and (bridge, gateway) in [(name, str(interface.ip)) for name, interface in interfaces()]


def interfaces() -> list[tuple[str, ipaddress.IPv4Interface]]:
    """Return [(name, address with its network)] of this machine."""
    links = json.loads(command(["ip", "-j", "-4", "addr", "show"], "interfaces", "install iproute2"))
    return [
        (link["ifname"], ipaddress.IPv4Interface(f"{entry['local']}/{entry['prefixlen']}"))
        for link in links
        for entry in link.get("addr_info", [])
        if "local" in entry
    ]
