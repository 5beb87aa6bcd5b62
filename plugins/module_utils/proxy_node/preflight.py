# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a machine, a boards file or a wiring plan from becoming a proxy node, all of it in one look.

Looks and changes nothing; how a machine is looked at is machine.py's and node/'s.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import tempfile
from dataclasses import dataclass, field

from ..boards.boards_file import BoardsFileError, parse
from ..boards.proxy import KERNEL_SOURCES
from ..command import command
from ..errors import HeteroError
from ..node.findings import Findings, system
from ..node.machine import existing, missing_packages, mount_of
from .config import CONFIG, read_config
from .machine import KERNEL_SERVER, has_nfsd, may_open_by_handle, port_holders

#: Programs that the role itself puts on these ports; tftpd-hpa's own daemon is among them because the role stops it.
PORTS = {
    ("udp", 69): ("TFTP", {"xinetd", "in.tftpd"}),
    ("tcp", 2049): ("NFS", set()),
    ("udp", 67): ("DHCP", {"dnsmasq"}),
}
#: NFS server → its packages, and who then holds its port.
SERVERS = {
    "ganesha": (["nfs-ganesha", "nfs-ganesha-vfs"], {"ganesha.nfsd"}),
    "nfsd": (["nfs-kernel-server"], {KERNEL_SERVER}),
}
GIB = 1 << 30
DISK = re.compile(r"/dev/[a-z][a-z0-9]*")
#: Free space the state folder needs beside the roots: one unpacked image and the database.
SPARE = 1 * GIB
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": GIB, "T": 1 << 40}


@dataclass
class Plan:
    """What the role is about to set up; the fields are the options of module proxy_check."""

    server: str
    interface: str = ""
    tftp_root: str = "/tftpboot"
    state_folder: str = "/var/lib/hetero"
    roots_size: str = ""
    dhcp: bool = False
    exports: str = "auto"
    config: str = CONFIG
    boards_text: str = ""
    boards_source: str = "boards file"
    ram_images: dict = field(default_factory=dict)
    pdus: dict = field(default_factory=dict)
    credentials_for: list = field(default_factory=list)
    wiring: dict = field(default_factory=dict)
    packages: list = field(default_factory=list)


def look(plan):
    """Everything there is to say about `plan` on this machine, as Findings."""
    found = Findings()
    boards = boards_of(plan, found)
    wiring(plan, boards, found)
    if system(found):
        address(plan, boards, found)
        server = nfs_server(plan, kernel(found), found)
        ports(plan, found, server)
        folders(plan, found)
        packages = [*plan.packages, *SERVERS[server][0]]
        found.facts.update(nfs_server=server, missing_packages=missing_packages(packages))
    found.facts["boards"] = [dict(id=board.id, name=board.name, ip=board.ip, mac=board.mac) for board in boards]
    return found


# --- what the inventory says ---------------------------------------------------------------------------------------


def boards_of(plan, found):
    """The boards of the file; its defects, each with line and column, become one finding each."""
    try:
        boards = parse(plan.boards_text, source=plan.boards_source)
    except BoardsFileError as error:
        for source, line, column, reason in error.defects:
            found.defect(f"{source}:{line}:{column}", reason, "correct it on the controller")
        return []
    if not boards:
        found.note(plan.boards_source, "names no boards", "add a line for each board")
    for board in boards:
        if board.ip == plan.server:
            found.defect(
                board.name, f"has the proxy's own address {board.ip}", "correct the boards file or tftp_proxy_server"
            )
    return boards


def wiring(plan, boards, found):
    """tftp_proxy_boards against the boards file and tftp_proxy_pdus: unknown names, outlets used twice."""
    known = {str(board.id) for board in boards}
    users = {}
    for board_id, wire in sorted(plan.wiring.items()):
        thing = f"tftp_proxy_boards, board {board_id}"
        if boards and board_id not in known:
            found.defect(thing, "no such board in the boards file", "add it there, or remove it here")
        source = wire.get("kernel_source", "tftp")
        if source not in KERNEL_SOURCES:
            found.defect(thing, f"no such kernel_source: {source}", f"name one of {', '.join(KERNEL_SOURCES)}")
        pdu, outlet = wire.get("pdu"), wire.get("outlet")
        if (pdu is None) != (outlet is None):
            found.defect(thing, "pdu and outlet belong together", "name both or neither")
        elif pdu is not None:
            if pdu not in plan.pdus:
                names = ", ".join(sorted(plan.pdus)) or "none"
                found.defect(thing, f"no such PDU: {pdu} (known: {names})", "add it to tftp_proxy_pdus")
            users.setdefault((pdu, str(outlet)), []).append(board_id)
        disks(plan, thing, wire.get("disk"), {str(board.id): board.arch for board in boards}.get(board_id), found)
    for (pdu, outlet), ids in sorted(users.items()):
        if len(ids) > 1:
            found.defect(
                f"outlet {outlet} of {pdu}", f"feeds boards {', '.join(ids)}", "give each board an outlet of its own"
            )
    for name, pdu in sorted(plan.pdus.items()):
        for key in ("driver", "host"):
            if not (isinstance(pdu, dict) and pdu.get(key)):
                found.defect(f"tftp_proxy_pdus, {name}", f"has no {key}", f"name its {key}")
        if name not in plan.credentials_for:
            found.note(name, "has no credentials", "add it to tftp_proxy_pdu_credentials if it asks for a password")
    for name in sorted(set(plan.credentials_for) - set(plan.pdus)):
        found.note(name, "has credentials but is no PDU of tftp_proxy_pdus", "add it there, or remove the credentials")
    unwired = [board.name for board in boards if not plan.wiring.get(str(board.id), {}).get("pdu")]
    if unwired:
        found.note(
            ", ".join(unwired), "no outlet feeds it", "name pdu and outlet in tftp_proxy_boards, or it cannot be booted"
        )


def disks(plan, thing, disk, arch, found):
    """The disks of a board, which nobody could wipe without a RAM image."""
    names = [disk] if isinstance(disk, str) else disk or []
    if not isinstance(names, list) or not all(isinstance(name, str) and DISK.fullmatch(name) for name in names):
        found.defect(thing, f"disk is no device name: {disk}", "write /dev/sda, or a list of such")
    elif names and arch and arch.lower() not in {known.lower() for known in plan.ram_images}:
        what = f"has a disk, and there is no RAM image for {arch} to wipe it from"
        found.defect(thing, what, "name one in tftp_proxy_ram_images")


# --- what the machine is -------------------------------------------------------------------------------------------


def address(plan, boards, found):
    """The interface that holds the server address; facts: interface, network, netmask."""
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


def ports(plan, found, server="ganesha"):
    """Ports that another program holds on the server address; the program is named."""
    for (protocol, port), (service, ours) in PORTS.items():
        if service == "DHCP" and not plan.dhcp:
            continue
        ours = SERVERS[server][1] if service == "NFS" else ours
        for holder in sorted(port_holders(protocol, port, plan.server) - ours):
            found.defect(f"port {port}/{protocol} ({service})", f"is held by {holder}", f"stop and disable {holder}")


def nfs_server(plan, own_ids, found):
    """The NFS server to export by; what a proxy node has it keeps, for its boards have its file handles.

    :param own_ids: whether each overlay has a file system id of its own, without which nfs-ganesha can export one only.
    """
    server = plan.exports
    if server == "auto":
        chosen = read_config(plan.config)["exports"] if os.path.exists(plan.config) else None
        server = chosen or ("nfsd" if not own_ids and has_nfsd() else "ganesha")
    if server == "ganesha" and not own_ids:
        what = "each root will be a copy of its image: nfs-ganesha cannot tell this kernel's overlays apart"
        found.note("NFS", what, "set tftp_proxy_exports: nfsd, or use Linux 6.6 or newer")
    if server == "ganesha" and not may_open_by_handle():
        found.defect(
            "open_by_handle_at",
            "is denied, so that each file on an NFS root would be 'permission denied'",
            "a container needs an empty lxc.seccomp.profile and CAP_DAC_READ_SEARCH",
        )
    if server == "nfsd" and not has_nfsd():
        what = "this kernel has no NFS server, or it is not this container's"
        found.defect("NFS", what, "set tftp_proxy_exports: ganesha")
    return server


def kernel(found):
    """Overlay mounts as board roots need them; returns whether each has a file system id of its own (Linux 6.6)."""
    with tempfile.TemporaryDirectory(prefix="hetero-preflight-") as folder:
        # index and nfs_export: without them an overlay cannot be exported by NFS
        script = (
            'mount -t tmpfs none "$1" && mkdir "$1/l" "$1/u" "$1/w" "$1/m" &&'
            ' mount -t overlay -o "lowerdir=$1/l,upperdir=$1/u,workdir=$1/w,index=on,nfs_export=on" none "$1/m" &&'
            ' stat --file-system --format=%i "$1/u" "$1/m"'
        )
        try:
            said = command(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", folder])
        except HeteroError as error:
            found.defect(
                "overlay mounts",
                error.what,
                "load or build the kernel's overlay module; a container must be privileged",
            )
            return False
    return len(set(said.split())) == 2


def folders(plan, found):
    """State folder: no overlay below it, and enough space also for what the roots may still take."""
    state = plan.state_folder
    point, fstype = mount_of(existing(state))
    if fstype == "overlay":
        found.defect(state, "lies on an overlay, which cannot hold the roots' overlays", "mount ext4 or XFS there")
    size = _size(plan.roots_size, found)
    image = os.path.join(state, "roots.ext4")
    taken = os.stat(image).st_blocks * 512 if os.path.exists(image) else 0
    there = os.path.getsize(image) if os.path.exists(image) else 0
    mounted = os.path.ismount(os.path.join(state, "roots"))
    found.facts["roots"] = dict(mounted=mounted, bytes=size, file=there)
    if size and there and size != there:
        what = f"has {_gib(there)}, tftp_proxy_roots_size is {_gib(size)}, and a file system in use is not resized"
        found.note(image, what, "correct the variable, or terminate all instances and remove the file")
    stat = os.statvfs(existing(state))
    free = stat.f_bavail * stat.f_frsize
    need = SPARE + max(0, size - taken)
    if free < need:
        smaller = ", or set a smaller tftp_proxy_roots_size" if size else ""
        found.defect(state, f"{_gib(free)} free on {point}, {_gib(need)} needed", f"free space{smaller}")
    if size and not mounted:
        roots_file(os.path.join(state, "roots"), found)


def roots_file(roots, found):
    """Whether a file system in a file can be mounted on the folder of the roots."""
    if os.path.isdir(roots) and os.listdir(roots):
        what = "holds roots that tftp_proxy_roots_size would cover"
        found.defect(roots, what, "terminate those instances first, or set it to ''")
    try:
        device = command(["losetup", "--find"]).strip()
    except HeteroError:
        device = ""
    if not os.path.exists(device):
        found.defect(
            "loop devices",
            f"there is no free one here{' but in name: ' + device if device else ''}",
            "load the kernel's loop module, give the container its loop devices, or set tftp_proxy_roots_size to ''",
        )


def _size(text, found):
    match = re.fullmatch(r"(\d+)([KMGT]?)", text.strip())
    if not text.strip():
        return 0
    if not match or int(match.group(1)) * UNITS[match.group(2)] < 64 * UNITS["M"]:
        found.defect(
            "tftp_proxy_roots_size",
            f"{text!r} is no size of at least 64M",
            "write it like 8G, or '' for a plain folder",
        )
        return 0
    return int(match.group(1)) * UNITS[match.group(2)]


def _gib(size):
    return f"{size / GIB:.1f} GiB"
