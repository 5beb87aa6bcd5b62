# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of a host's bridge from what its role was told: which addresses are pinned, what is open and what closed.

Roles gpu_lxc and kvm_guests write them into a file, and have a unit each that loads it before there is a bridge. The
rules themselves are hypervisors/pinning.py's.
"""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
from typing import TYPE_CHECKING, Any, Iterable, Sequence, Tuple

from ...claims.host.config import HostConfig
from ...claims.host.store import Store
from ...compute_host.network import SYS, interfaces
from ...core.errors import BadInput
from ...core.machine import text_of
from ...hypervisors import pinning

if TYPE_CHECKING:
    from .preflight import Plan

#: [(name, address with its network)] of a machine.
Interfaces = Sequence[Tuple[str, ipaddress.IPv4Interface]]

#: Link-local addresses (RFC 3927): the metadata services of clouds, with the credentials of the machine, are there.
LINK_LOCAL = "169.254.0.0/16"
PORT = re.compile(r"(tcp|udp)/([1-9][0-9]{0,4})")
ROLES = {"lxc": "gpu_lxc", "kvm": "kvm_guests"}


def look(plan: Plan) -> dict[str, Any]:
    """Return {rules: the text of the file, rules_loaded: whether they are in the kernel, notes}.

    :param plan: has the addresses that were found.
    :raises BadInput: an option is wrong.
    """
    bridge = bridge_of(plan, taken(plan), interfaces())
    there = shutil.which("nft") is not None and pinning.loaded(bridge)
    return dict(rules=pinning.rules(bridge), rules_loaded=there, notes=_notes(plan))


def bridge_of(plan: Plan, taken: Iterable[str], around: Interfaces) -> pinning.Bridge:
    """Return the bridge that a plan describes.

    :param taken: addresses that instances have, whatever the plan says by now.
    :param around: the interfaces of this machine.
    """
    role = ROLES[plan.kind]
    network = _networks([plan.network], f"{role}_network")[0]
    return pinning.Bridge(
        kind=plan.kind,
        name=plan.bridge,
        ours=plan.make_bridge,
        network=network,
        addresses=_addresses(plan.addresses, taken, f"{role}_addresses"),
        nat=plan.nat,
        open_ports=tuple(_port(text, f"{role}_open_ports") for text in plan.open_ports),
        closed=_networks(
            [*plan.closed_networks, *_of_host(plan.bridge, network, around), LINK_LOCAL], f"{role}_closed_networks"
        ),
        opened=_networks(plan.open_networks, f"{role}_open_networks"),
    )


def _notes(plan: Plan) -> list[str]:
    """Return what a bridge lacks that is not the role's to change."""
    option = os.path.join(SYS, plan.bridge, "bridge", "no_linklocal_learn")
    if plan.make_bridge or text_of(option).strip() != "0":
        return []
    what = "learns MACs from LLDP frames, so that an instance can have sent to itself what is meant for another"
    return [f"{plan.bridge}: {what}: ip link set {plan.bridge} type bridge no_linklocal_learn 1"]


def taken(plan: Plan) -> list[str]:
    """Return the addresses of the instances that there are."""
    path = HostConfig(state_folder=plan.state_folder).state_db
    if not os.path.exists(path):
        return []
    with Store(path, create=False) as store:
        return [claim.address for claim in store.claims() if claim.kind == plan.kind and claim.address]


def _addresses(span: Sequence[str], taken: Iterable[str], option: str) -> tuple[str, ...]:
    try:
        first, last = (int(ipaddress.IPv4Address(address)) for address in span)
    except ValueError as error:
        raise BadInput(str(error), option, "give the first and the last address") from error
    if not 0 <= last - first < pinning.MOST:
        what = f"{' to '.join(span)} is no range of 1 to {pinning.MOST} addresses"
        raise BadInput(what, option, "give the first and the last address")
    numbers = {*range(first, last + 1), *map(_of_instance, taken)}
    return tuple(str(ipaddress.IPv4Address(number)) for number in sorted(numbers))


def _of_instance(address: str) -> int:
    try:
        return int(ipaddress.IPv4Address(address))
    except ValueError as error:
        what = f"an instance of the host's database has this address, which is none ({error})"
        raise BadInput(what, repr(address), "correct it there, or restore a copy of the database") from error


def _of_host(bridge: str, network: str, around: Interfaces) -> list[str]:
    """Return the networks that the host itself is in. Machines there are often protected only by the fact that nobody
    else reaches them.
    """
    others = {interface.network for name, interface in around if name not in (bridge, "lo")}
    return [str(other) for other in others if not other.overlaps(ipaddress.IPv4Network(network))]


def _networks(texts: Iterable[str], option: str) -> tuple[str, ...]:
    """Return each network once, and none within another, because nft takes no sets that overlap."""
    try:
        networks = [ipaddress.IPv4Network(text, strict=False) for text in texts]
    except ValueError as error:
        raise BadInput(str(error), option, "write networks like 10.0.3.0/24") from error
    return tuple(map(str, sorted(ipaddress.collapse_addresses(networks))))


def _port(text: str, option: str) -> str:
    found = PORT.fullmatch(text)
    if not found or int(found.group(2)) > 65535:
        raise BadInput(f"{text!r} is no port", option, "write ports like tcp/22 or udp/53")
    return text
