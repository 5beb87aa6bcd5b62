# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a proxy node serves what boards need and refuses what they must not have, asked over its own network address.

Looks from outside, as a board does: TFTP requests, RPC calls, the list of exports. What a board may fetch is the map
file's business.
"""

from __future__ import annotations

import os

from ..boot.tftp_client import RRQ, WRQ, ask
from ..command import command
from ..errors import HeteroError
from ..images.exports import exporter
from .machine import port_holders

#: NFS server → its unit.
UNITS = {"ganesha": "nfs-ganesha", "nfsd": "nfs-server"}


def check_tftp(server, tftp_root, deadline, port=69):
    """boot.ipxe comes, whole; the boards file does not; nothing can be written."""
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


def check_nfs(server, exports, deadline):
    """MOUNT and NFS version 3 answer over TCP at the board's side; returns the names that the NFS server exports."""
    thing = f"NFS on {server}"
    for program in ("mountd", "nfs"):
        while True:
            try:
                command(["rpcinfo", "-t", server, program, "3"], thing, timeout=max(0.1, deadline.left))
                break
            except HeteroError as error:
                if deadline.passed:
                    raise HeteroError(f"{program} version 3: {error.what}", thing, _journal(UNITS[exports])) from error
                deadline.nap()
    return sorted(export.pseudo for export in exporter(exports, restore_folder="").show().values())


def check_dhcp(server, deadline):
    """dnsmasq holds the DHCP port."""
    while "dnsmasq" not in port_holders("udp", 67, server):
        if deadline.passed:
            raise HeteroError("nobody listens on port 67", f"DHCP on {server}", _journal("hetero-dhcp"))
        deadline.nap()


def _port_69(server):
    return "port 69 is held by " + (", ".join(sorted(port_holders("udp", 69, server))) or "nobody")


def _journal(unit):
    """Where to look, with the unit's own last words."""
    said = command(["journalctl", "--unit", unit, "--lines", "1", "--output", "cat", "--quiet"], ok=(0, 1)).strip()
    return f"see: journalctl -u {unit}" + (f" (last line: {said})" if said else "")
