# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a machine, a boards file or a wiring plan from becoming a proxy node, all of it in one look.

It changes nothing. machine.py and core/machine.py look at the machine.
"""

from __future__ import annotations

import ipaddress
import json
import re
import shutil
import tempfile
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ...boards.power.pdu_names import devices, has_one_machine, plug
from ...boards.records.proxy import KERNEL_SOURCES
from ...core.command import command
from ...core.errors import HeteroError
from ...core.findings import Findings, system
from ...core.machine import missing_packages
from ...core.spelling import instead
from ...drivers.boot.registry import DRIVERS as BOOT_DRIVERS
from ...drivers.boot.registry import proves_keys
from ...drivers.power.registry import DRIVERS as POWER_DRIVERS
from ...roots.ram import ON_CONSOLE, RAM_KEYS
from ...site.boards_file import COLUMNS, BoardsFileError, parse
from ...site.proxy_config import DEFAULTS
from .. import plan_check
from . import (
    arguments_check,
    consoles_check,
    disks_check,
    folders_check,
    http_check,
    left_out_boards,
    nfs_check,
    outside_check,
    routers_check,
    settings_check,
    tile_monitor_check,
    words_check,
)
from .entries_check import Entry, right_types
from .machine import port_holders
from .roots_check import roots
from .wiring_check import contradictions

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from .setup_plan import Plan

#: Programs that the role itself puts on these ports; tftpd-hpa's own daemon is among them because the role stops it.
PORTS: dict[tuple[str, int], tuple[str, set[str]]] = {
    ("udp", 69): ("TFTP", {"xinetd", "in.tftpd"}),
    ("tcp", 2049): ("NFS", set()),
    ("udp", 67): ("DHCP", {"dnsmasq"}),
}
#: Keys of a board's wiring that name where its console's log comes from.
CONSOLES = {"console", "console_from"}
#: Addresses that dnsmasq never takes from a range, for the sake of old clients (its dhcp.c, address_allocate).
UNGIVEN = re.compile(r"(?:19[2-9]|2[01][0-9]|22[0-3])\..*\.(?:0|255)")
#: What role tftp_proxy asks of the kernel's packet filter, in short.
RULES = """
table inet hetero_preflight {
    set clients { typeof ether saddr . @th,288,48; }
    set rates { type ipv4_addr; size 16; flags dynamic,timeout; timeout 1m; }
    set transfers { type ipv4_addr; size 16; flags dynamic; }
    chain arrivals {
        type filter hook prerouting priority raw;
        ether saddr . @th,288,48 @clients accept
        update @rates { ip saddr limit rate over 1/second } drop
    }
    chain departures {
        type filter hook output priority filter;
        ct state new add @transfers { ip daddr ct count over 1 } drop
    }
}
table arp hetero_preflight {
    chain arrivals {
        type filter hook input priority filter;
        arp saddr ip . arp saddr ether { 0.0.0.0 . 0:0:0:0:0:0 } drop
    }
}
"""


def look(plan: Plan) -> Findings:
    """Return everything there is to say about `plan` on this machine."""
    found = Findings()
    plan_check.said_before(plan.mistakes, found)
    boards = boards_of(plan, found)
    drivers = outside_check.known(plan, found)
    wiring(plan, boards, found, drivers)
    folders_check.moved(plan, found)
    if boards:
        left_out_boards.claims(plan, boards, found)
    words_check.wipe(plan.wipe, found)
    plan_check.images("tftp_proxy_images", plan.images, found)
    plan_check.interval("tftp_proxy_reap_interval", plan.reap_interval, found)
    plan_check.interval("tftp_proxy_check_interval", plan.check_interval or None, found)
    mistakes = settings_check.mistakes(plan)
    wrong = settings_check.wrong_keys(mistakes)
    if "state_folder" not in wrong:
        settings_check.ram_images(plan, found)
    if system(found):
        address(plan, boards, found)
        if found.facts["network"]:
            routers_check.learned(found.facts["interface"], plan.boards_interface_ra, found)
        kernel(found)
        server = nfs_check.nfs_server(plan, found)
        aside = nfs_check.set_aside(server)
        ports(plan, found, [server, *aside])
        http_check.nginx(plan, found)
        consoles_check.on_this_machine(plan.wiring, found)
        if "state_folder" not in wrong:
            # what one wrong number would hide is looked for with the right one
            overcommit = DEFAULTS.roots_overcommit if "roots_overcommit" in wrong else plan.roots_overcommit
            root_gb = DEFAULTS.root_gb if "root_gb" in wrong else plan.root_gb
            roots(plan.state_folder, overcommit, root_gb, boards, found)
        packet_filter(found)
        packages = [*plan.packages, *drivers.packages, *nfs_check.SERVERS[server].packages]
        found.facts.update(nfs_server=server, nfs_servers_off=aside, missing_packages=missing_packages(packages))
    settings_check.say(mistakes, found)
    settings_check.reservations_here(plan, boards, found)
    found.facts["drivers_gone"] = outside_check.gone(plan)
    outside_check.loads(plan, drivers, boards, found)
    found.facts["boards"] = [dict(id=board.id, name=board.name, ip=board.ip, mac=board.mac) for board in boards]
    network = ipaddress.IPv4Network("{network}/{netmask}".format(**found.facts)) if found.facts.get("network") else None
    for board in found.facts["boards"]:
        board["near"] = network is not None and ipaddress.IPv4Address(board["ip"]) in network
    return found


# --- what the inventory says ---------------------------------------------------------------------------------------


def boards_of(plan: Plan, found: Findings) -> list[Board]:
    """Return the boards of the file; its defects, each with line and column, become one finding each."""
    try:
        boards = parse(plan.boards_text, source=plan.boards_source)
    except BoardsFileError as error:
        for source, line, column, reason in error.defects:
            found.defect(f"{source}:{line}:{column}", reason, "correct it on the controller")
        return []
    if not boards and all(mistake.get("thing") != plan.boards_source for mistake in plan.mistakes):
        empty = "is empty" if not plan.boards_text.strip() else "names no boards"
        found.defect(plan.boards_source, empty, f"add a line for each board: {' '.join(COLUMNS)}")
    for board in boards:
        if plan.dhcp and UNGIVEN.fullmatch(board.ip):
            what = f"has address {board.ip}, which dnsmasq gives to nobody (the last byte is 0 or 255)"
            found.defect(board.name, what, "correct the boards file, or set tftp_proxy_dhcp: false")
        if board.ip == plan.server:
            found.defect(
                board.name, f"has the proxy's own address {board.ip}", "correct the boards file or tftp_proxy_server"
            )
    return boards


def wiring(plan: Plan, boards: Sequence[Board], found: Findings, drivers: outside_check.Known | None = None) -> None:
    """Check tftp_proxy_boards against the boards file, tftp_proxy_pdus and the outlets of boards in use.

    Defects are unknown names, outlets used twice, and outlets that are another's.

    :param drivers: all that there are; None for those of the collection, and the names of the site's own.
    """
    drivers = drivers or outside_check.Known(plan)
    wires, pdus = right_types(plan, found)
    known = {str(board.id): board for board in boards}
    users: dict[tuple[str, str], list[tuple[str, str]]] = {}
    without: list[tuple[str, str]] = []
    names = devices(pdus)
    for board_id, wire in sorted(wires.items()):
        thing, board = f"tftp_proxy_boards, board {board_id}", known.get(board_id)
        if boards and board is None:
            found.defect(thing, "no such board in the boards file", "add it there, or remove it here")
        arch = _wire(plan, thing, wire, board, pdus, found)
        without += [(board_id, arch)] if arch else []
        _ram_key(thing, wire, board, drivers, found)
        pdu, outlet = wire.get("pdu"), wire.get("outlet")
        if pdu is not None and outlet is not None:
            # a PDU that has two names is one
            users.setdefault((names.get(pdu, pdu), plug(outlet)), []).append((board_id, pdu))
    disks_check.unwiped(without, found)
    for (_pdu, outlet), fed in users.items():
        shared(outlet, fed, found)
    for device in dict.fromkeys(pdu for pdu, _outlet in users):
        one_machine([fed[0] for (pdu, _outlet), fed in users.items() if pdu == device], pdus, found)
    _pdus(plan, pdus, wires, found, drivers)
    words_check.credentials(plan, pdus, found, drivers.power)
    consoles_check.consoles(wires, pdus, found)
    http_check.unserved(plan, pdus, found)
    tile_monitor_check.missing(plan, boards, wires, found)
    arguments_check.undelivered(plan, boards, wires, found, drivers.boot)
    if (wires, pdus) == (plan.wiring, plan.pdus):
        _unsaid(wires, boards, found)
        contradictions(plan, boards, found)


def _wire(
    plan: Plan, thing: str, wire: Entry, board: Board | None, pdus: Mapping[str, Entry], found: Findings
) -> str | None:
    """Check what tftp_proxy_boards says of one board, and return what disks_check.disks does; `wiring` compares its
    outlet with those of the others.

    :param board: its line of the boards file, None where that has none.
    """
    source = wire.get("kernel_source", "tftp")
    if source not in KERNEL_SOURCES:
        found.defect(thing, f"no such kernel_source: {source}", instead(source, KERNEL_SOURCES))
    pdu, outlet = wire.get("pdu"), wire.get("outlet")
    if (pdu is None) != (outlet is None) and not wire.wrong & {"pdu", "outlet"}:
        found.defect(thing, "pdu and outlet belong together", "name both or neither")
    if pdu is not None and pdu not in plan.pdus:
        known = ", ".join(sorted(plan.pdus)) or "none"
        found.defect(thing, f"no such PDU: {pdu} (known: {known})", "add it to tftp_proxy_pdus")
    if pdu is not None and outlet is not None:
        words_check.outlet(thing, outlet, pdus.get(pdu, Entry()).get("driver"), found)
    ram_key = wire.get("ram_key")
    if ram_key not in (None, *RAM_KEYS):
        found.defect(thing, f"no such ram_key: {ram_key}", instead(ram_key, RAM_KEYS))
    elif ram_key == ON_CONSOLE and not any(wire.get(key) for key in CONSOLES) and not wire.wrong & CONSOLES:
        found.defect(thing, "its ram_key is console, and it has no console", "name its console, or set tftp")
    return disks_check.disks(plan, thing, wire, board.arch if board else None, found)


def _ram_key(thing: str, wire: Entry, board: Board | None, drivers: outside_check.Known, found: Findings) -> None:
    """Check the boot driver of a board, and whether its boards prove a key where the wiring counts on one."""
    words_check.boot_driver(thing, wire, found, drivers.boot)
    ram_key = wire.get("ram_key")
    if ram_key in RAM_KEYS and not proves_keys(wire, board, drivers.boot):
        what = f"it has ram_key {ram_key}, and its boot driver proves no key of a RAM system"
        found.defect(thing, what, "take ram_key out")


def _pdus(
    plan: Plan, pdus: Mapping[str, Entry], wires: Mapping[str, Entry], found: Findings, drivers: outside_check.Known
) -> None:
    """Check what is said of each PDU, and whether it and its credentials are both there."""
    words_check.own_drivers("tftp_proxy_power_drivers", plan.power_drivers, POWER_DRIVERS, found)
    words_check.own_drivers("tftp_proxy_boot_drivers", plan.boot_drivers, BOOT_DRIVERS, found)
    for name, pdu in sorted(pdus.items()):
        fed = [wire.get("outlet") for wire in wires.values() if wire.get("pdu") == name]
        words_check.pdu(name, pdu, found, drivers.power, [str(outlet) for outlet in fed if outlet is not None])
        if pdu.get("transport") == "ssh" and not pdu.get("host_key") and "host_key" not in pdu.wrong:
            what = "its ssh host key is not pinned: the first one that anything shows at its address gets its password"
            found.note(name, what, "give its host_key in tftp_proxy_pdus, as ssh-keyscan prints it behind the address")
        if name not in plan.credentials_for:
            words_check.no_credentials(name, pdu, found)
    for name in sorted(set(plan.credentials_for) - set(plan.pdus)):
        found.note(name, "has credentials but is no PDU of tftp_proxy_pdus", "add it there, or remove the credentials")


def _unsaid(wires: Mapping[str, Entry], boards: Sequence[Board], found: Findings) -> None:
    """Note the boards whose wiring names no outlet, or no disk although they have one."""
    unwired = [board.name for board in boards if not wires.get(str(board.id), Entry()).get("pdu")]
    if unwired:
        found.note(
            ", ".join(unwired), "no outlet feeds it", "name pdu and outlet in tftp_proxy_boards, or it cannot be booted"
        )
    unsaid = [board.name for board in boards if board.local_gb and not wires.get(str(board.id), Entry()).get("disk")]
    if unsaid:
        what = "has a local disk by the boards file (local_gb), and its wiring names none: nothing is wiped there"
        found.note(", ".join(unsaid), what, "name it in tftp_proxy_boards, as disk: /dev/sda, or say disk: none")


def shared(outlet: str, fed: Sequence[tuple[str, str]], found: Findings) -> None:
    """Report an outlet that feeds several boards.

    :param fed: (board id, PDU by which its wiring names the outlet) of each.
    """
    if len(fed) == 1:
        return
    names, ids = " and ".join(dict.fromkeys(pdu for _id, pdu in fed)), ", ".join(board_id for board_id, _pdu in fed)
    one = "" if names == fed[0][1] else f": {names} are one PDU, at the same address"
    found.defect(f"outlet {outlet} of {names}", f"feeds boards {ids}{one}", "give each board an outlet of its own")


def one_machine(fed: Sequence[tuple[str, str]], pdus: Mapping[str, Mapping[str, Any]], found: Findings) -> None:
    """Report a BMC that is asked by IPMI for one board, and by another of its names for another board.

    :param fed: (board id, PDU by which its wiring names the outlet) of one board for each outlet of this device.
    """
    names = dict.fromkeys(pdu for _id, pdu in fed)
    if len(names) > 1 and any(has_one_machine(pdus.get(name, {})) for name in names):
        shared("1", fed, found)


# --- what the machine is -------------------------------------------------------------------------------------------


def address(plan: Plan, boards: Sequence[Board], found: Findings) -> None:
    """Check the interface that holds the server address; facts: interface, network, netmask."""
    found.facts.update(interface=plan.interface, network="", netmask="")
    try:
        server = ipaddress.IPv4Address(plan.server)
    except ValueError:
        found.defect(
            "tftp_proxy_server", f"{plan.server!r} is not an IPv4 address", "set it to the address that boards ask"
        )
        return
    held = []
    for link in json.loads(command(["ip", "-j", "-4", "addr", "show"], remedy="install iproute2")):
        for entry in link.get("addr_info", []):
            held.append(entry.get("local", ""))
            if entry.get("local") != str(server):
                continue
            if plan.interface and plan.interface != link["ifname"]:
                found.defect(
                    str(server), f"is on {link['ifname']}, not on {plan.interface}", "correct tftp_proxy_interface"
                )
            if entry.get("secondary"):
                first = link["addr_info"][0]["local"]
                found.note(
                    str(server),
                    f"is not the first address of {link['ifname']}, and TFTP transfers can stall there",
                    f"set tftp_proxy_server to {first}",
                )
            network = ipaddress.IPv4Interface(f"{server}/{entry['prefixlen']}").network
            found.facts.update(
                interface=link["ifname"], network=str(network.network_address), netmask=str(network.netmask)
            )
            far = [board.name for board in boards if ipaddress.IPv4Address(board.ip) not in network]
            if far:
                what = f"not in {network}, the network of {link['ifname']}"
                found.note(", ".join(far), what, "let a router relay its DHCP, or correct the boards file")
            return
    found.defect(
        str(server), f"is not an address of this machine (it has {', '.join(held)})", "correct tftp_proxy_server"
    )


def ports(plan: Plan, found: Findings, servers: Sequence[str]) -> None:
    """Report ports that another program holds on the server address, with its name.

    :param servers: NFS servers that are the role's own here.
    """
    nfs = set().union(*(nfs_check.SERVERS[server].programs for server in servers))
    for (protocol, port), (service, ours) in PORTS.items():
        if service == "DHCP" and not plan.dhcp:
            continue
        ours = nfs if service == "NFS" else ours
        for holder in sorted(port_holders(protocol, port, plan.server) - ours):
            found.defect(f"port {port}/{protocol} ({service})", f"is held by {holder}", f"stop and disable {holder}")


def kernel(found: Findings) -> None:
    """Check overlay mounts as board roots need them."""
    with tempfile.TemporaryDirectory(prefix="hetero-preflight-") as folder:
        # index and nfs_export: without them an overlay cannot be exported by NFS
        script = (
            'mount -t tmpfs none "$1" && mkdir "$1/l" "$1/u" "$1/w" "$1/m" &&'
            ' mount -t overlay -o "lowerdir=$1/l,upperdir=$1/u,workdir=$1/w,index=on,nfs_export=on" none "$1/m"'
        )
        try:
            command(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", folder])
        except HeteroError as error:
            found.defect(
                "overlay mounts",
                error.what,
                "load or build the kernel's overlay module; a container must be privileged",
            )


def packet_filter(found: Findings) -> None:
    """Check whether nftables can do here what the role asks of it; without its package that shows later."""
    if not shutil.which("nft"):
        return
    try:
        command(["nft", "--check", "--file", "-"], stdin=RULES)
    except HeteroError as error:
        found.defect(
            "nftables",
            error.what,
            "load the kernel's nf_tables modules; a container needs CAP_NET_ADMIN over its network",
        )
