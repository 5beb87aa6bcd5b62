# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a proxy node serves what boards need and refuses what they must not have, asked over its own network address.

Looks from outside, as a board does: TFTP requests, RPC calls, the list of exports. What a board may fetch is the map
file's business.
"""

from __future__ import annotations

import os
import socket
import struct

from ..command import command
from ..errors import HeteroError
from ..images.ganesha import Ganesha
from .machine import port_holders

#: RFC 1350: opcodes, and the error code for "Access violation".
RRQ, WRQ, DATA, ACK, ERROR = 1, 2, 3, 4, 5
BLOCK = 512
#: A TFTP request that got no answer is sent again after this many seconds (RFC 1123 leaves the number to the client).
RESEND = 0.5


class Answer:
    """What a TFTP server said: the bytes of a file, or its error text."""

    def __init__(self, data=None, error=None):
        self.data = data
        self.error = error


def tftp(server, name, deadline, opcode=RRQ, source="", port=69):
    """Ask `server` for a file (or, by WRQ, to take one) from the address `source`.

    :returns: an Answer; an accepted WRQ has data b"" and is left at that, nothing is sent.
    :raises HeteroError: no answer within the deadline.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.bind((source, 0))
        packet, to = struct.pack("!H", opcode) + name.encode() + b"\0octet\0", (server, port)
        data, block = b"", 1
        while not deadline.passed:
            asker.sendto(packet, to)
            asker.settimeout(max(0.01, min(RESEND, deadline.left)))
            try:
                said, peer = asker.recvfrom(BLOCK + 4)
            except socket.timeout:
                continue
            kind, number = struct.unpack("!HH", said[:4])
            if kind == ERROR:
                return Answer(error=said[4:].split(b"\0")[0].decode("utf-8", "replace") or f"error {number}")
            if kind == ACK and opcode == WRQ:
                asker.sendto(struct.pack("!HH", ERROR, 0) + b"only asking\0", peer)
                return Answer(data=b"")
            if kind == DATA and number == block & 0xFFFF:
                data += said[4:]
                packet, to, block = struct.pack("!HH", ACK, number), peer, block + 1
                if len(said) < BLOCK + 4:
                    asker.sendto(packet, to)
                    return Answer(data=data)
    raise HeteroError(f"no answer within {deadline.seconds:g} s", f"TFTP, {server}, {name}")


def check_tftp(server, tftp_root, deadline, port=69):
    """boot.ipxe comes, whole; the boards file does not; nothing can be written."""
    thing = f"TFTP on {server}"
    with open(os.path.join(tftp_root, "boot.ipxe"), "rb") as file:
        wanted = file.read()
    said = None
    while said is None or not deadline.passed:
        try:
            answer = tftp(server, "boot.ipxe", deadline, port=port)
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
        if tftp(server, name, deadline, opcode, port=port).error is None:
            raise HeteroError(
                f"{name} {verb} anyone", thing, f"stop it, and see who holds the port: {_port_69(server)}"
            )


def check_nfs(server, deadline):
    """MOUNT and NFS version 3 answer over TCP at the board's side; returns the names that nfs-ganesha exports."""
    thing = f"NFS on {server}"
    for program in ("mountd", "nfs"):
        while True:
            try:
                command(["rpcinfo", "-t", server, program, "3"], thing, timeout=max(0.1, deadline.left))
                break
            except HeteroError as error:
                if deadline.passed:
                    raise HeteroError(f"{program} version 3: {error.what}", thing, _journal("nfs-ganesha")) from error
                deadline.nap()
    return sorted(export.pseudo for export in Ganesha(restore_folder="").show().values())


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
