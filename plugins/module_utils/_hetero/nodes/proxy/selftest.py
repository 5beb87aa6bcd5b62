# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a proxy node serves what boards need and refuses what they must not have, asked over its own network address.

Looks from outside, as a board does: TFTP requests, RPC calls, the list of exports. The map
file says what a board may fetch.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...core.command import command
from ...core.errors import HeteroError
from ...drivers.boot.foreign_servers import address_text, dhcp_text
from ...drivers.boot.neighbours import dhcp_servers, holders, own_answer
from ...drivers.boot.tftp_client import RRQ, WRQ, ask
from ...nfs.exports import exporter
from ...site.boards_file import read
from .machine import KERNEL_SERVER, port_holders

if TYPE_CHECKING:
    from ...core.deadline import Deadline

#: A MAC that nobody has (locally administered): who offers it an address offers one to any board.
ANY_MAC = "02:68:65:74:65:72"
#: NFS server → its unit.
UNITS = {"ganesha": "nfs-ganesha", "nfsd": "nfs-server"}
#: NFS server → who listens on its ports. They are no reserved ones: any account has them that is there first.
NFS_PORTS = {
    "ganesha": {2049: "ganesha.nfsd", 20048: "ganesha.nfsd"},
    "nfsd": {2049: KERNEL_SERVER, 20048: "rpc.mountd"},
}


def check_tftp(server: str, tftp_root: str, deadline: Deadline, port: int = 69) -> None:
    """Check that boot.ipxe comes, whole, that the boards file does not, and that nothing can be written.

    :raises HeteroError: one of it is otherwise.
    """
    thing = f"TFTP on {server}"
    with open(os.path.join(tftp_root, "boot.ipxe"), "rb") as file:
        wanted = file.read()
    said = None
    while said is None or not deadline.passed:
        try:
            answer = ask(server, "boot.ipxe", deadline, port=port)
        except HeteroError as error:
            said = said or error.what
        else:
            if answer.data == wanted:
                break
            said = answer.error or f"the file that comes is not the one in {tftp_root}"
        deadline.nap()
    else:
        raise HeteroError(f"boot.ipxe cannot be fetched: {said} ({_port_69(server)})", thing, _journal("xinetd"))
    for name, opcode, verb in (("tilera_boards", RRQ, "is given to"), ("boot.ipxe", WRQ, "can be overwritten by")):
        if ask(server, name, deadline, opcode, port=port).error is None:
            raise HeteroError(
                f"{name} {verb} anyone", thing, f"stop it, and see who holds the port: {_port_69(server)}"
            )


def check_nfs(server: str, exports: str, deadline: Deadline) -> list[str]:
    """Check that MOUNT and NFS version 3 answer over TCP at the board's side, from the ports of the node's NFS server.

    No other version of NFS may be served.

    :param exports: name of that server, as in proxy.json.
    :returns: the names that the NFS server exports.
    :raises HeteroError: one of them does not, or NFS version 4 is served, too.
    """
    thing = f"NFS on {server}"
    for port, program in NFS_PORTS[exports].items():
        check_holder(server, port, program, deadline, UNITS[exports])
    for program in ("mountd", "nfs"):
        while True:
            try:
                command(["rpcinfo", "-t", server, program, "3"], thing, timeout=max(0.1, deadline.left))
                break
            except HeteroError as error:
                if deadline.passed:
                    raise HeteroError(f"{program} version 3: {error.what}", thing, _journal(UNITS[exports])) from error
                deadline.nap()
    check_versions(server, exports, deadline)
    return sorted(export.pseudo for export in exporter(exports, restore_folder="").show().values())


def check_versions(server: str, exports: str, deadline: Deadline, port: int = 2049) -> None:
    """Check that NFS version 4 is not served.

    By it a board's root could open files until the server, which is everybody's, has no descriptor left.

    :raises HeteroError: it is served.
    """
    thing = f"NFS on {server}"
    address = f"{server}.{port >> 8}.{port & 255}"  # rpcbind is not asked, which may not know of it
    call = ["rpcinfo", "-a", address, "-T", "tcp", "100003", "4"]
    if "ready" not in command(call, thing, timeout=max(1.0, deadline.left), ok=(0, 1)):
        return
    where = "/etc/nfs.conf, /etc/nfs.conf.d" if exports == "nfsd" else "/etc/ganesha/ganesha.conf"
    remedy = f"see what asks for it ({where}), then: systemctl restart {UNITS[exports]}"
    raise HeteroError("version 4 is served, too, and boards have version 3 alone", thing, remedy)


def check_holder(server: str, port: int, program: str, deadline: Deadline, unit: str) -> None:
    """Check that nobody but root's `program` listens on a TCP port, within the time that it has to begin.

    :raises HeteroError: nobody does, or somebody else.
    """
    while True:
        holders = port_holders("tcp", port, server)
        others = holders - {program}
        if holders and not others:
            return
        if deadline.passed:
            break
        deadline.nap()
    thing = f"port {port} of {server}"
    if not holders:
        raise HeteroError("nobody listens on it", thing, _journal(unit))
    names = ", ".join(sorted(others))
    remedy = f"end it (ss -ltnp 'sport = :{port}' tells its number), then: systemctl restart {unit}"
    raise HeteroError(f"is held by {names}, not by {program} of root", thing, remedy)


def check_dhcp(server: str, tftp_root: str, deadline: Deadline) -> None:
    """Check that dnsmasq holds the DHCP port, and gives the first board of the file its address.

    :raises HeteroError: it does not.
    """
    thing = f"DHCP on {server}"
    while "dnsmasq" not in port_holders("udp", 67, server):
        if deadline.passed:
            raise HeteroError("nobody listens on port 67", thing, _journal("hetero-dhcp"))
        deadline.nap()
    for board in read(os.path.join(tftp_root, "tilera_boards"))[:1]:
        given = own_answer(server, board.mac, deadline)
        if given != board.ip:
            what = f"gives {board.name} ({board.mac}) {given or 'no address'} instead of {board.ip}"
            raise HeteroError(what, thing, _journal("hetero-dhcp"))


def check_filter() -> None:
    """Check that the rules of /etc/hetero/filter.nft are in the kernel.

    `nft flush ruleset` removes them, and no unit notices.

    :raises HeteroError: they are not.
    """
    command(
        ["nft", "list", "table", "inet", "hetero"],
        "packet filter",
        "systemctl restart hetero-filter; and see who flushes nftables' rules",
    )


def strangers(server: str, interface: str, dhcp: bool) -> list[str]:
    """Return what else on the boards' network is in the proxy's place, as texts."""
    found = [address_text(server, mac) for mac in sorted(holders(interface, server))]
    if dhcp:
        others = dhcp_servers(interface, ANY_MAC)
        found += [dhcp_text(address, others[address]) for address in sorted(others)]
    return found


def _port_69(server: str) -> str:
    return "port 69 is held by " + (", ".join(sorted(port_holders("udp", 69, server))) or "nobody")


def _journal(unit: str) -> str:
    """Return where to look, with the unit's own last words."""
    said = command(["journalctl", "--unit", unit, "--lines", "1", "--output", "cat", "--quiet"], ok=(0, 1)).strip()
    return f"see: journalctl -u {unit}" + (f" (last line: {said})" if said else "")
