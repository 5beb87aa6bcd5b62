# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A TFTP read (RFC 1350), so that the proxy can ask its own server as a board would; nothing else of TFTP is here."""

from __future__ import annotations

import socket
import struct

from ..errors import HeteroError, TimedOut

RRQ, DATA, ACK, ERROR = 1, 3, 4, 5
BLOCK = 512
ASK_AGAIN = 0.5


def get(server, name, deadline, port=69, limit=1 << 20):
    """The content of file `name` on `server`.

    :param limit: most bytes taken; more is an error.
    :raises TimedOut: no answer, or a stalled transfer, by the deadline.
    :raises HeteroError: the server refused, with its words.
    """
    thing = f"TFTP {server}:{name}"
    content = b""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        last, peer = struct.pack("!H", RRQ) + name.encode() + b"\0octet\0", (server, port)
        sock.sendto(last, peer)
        wanted = 1
        while not deadline.passed:
            sock.settimeout(min(ASK_AGAIN, max(deadline.left, 0.01)))
            try:
                packet, sender = sock.recvfrom(BLOCK + 4)
            except socket.timeout:
                sock.sendto(last, peer)
                continue
            kind, number = struct.unpack("!HH", packet[:4])
            if kind == ERROR:
                said = packet[4:].split(b"\0", 1)[0].decode("ascii", "replace")
                raise HeteroError(
                    f"refused with code {number} ({said})", thing, "run the set-up playbook hetero.compute.proxy"
                )
            if kind != DATA or number != wanted & 0xFFFF:
                continue
            content += packet[4:]
            last, peer = struct.pack("!HH", ACK, number), sender
            sock.sendto(last, peer)
            wanted += 1
            if len(packet) < BLOCK + 4:
                return content
            if len(content) > limit:
                raise HeteroError(f"larger than {limit} bytes", thing)
    raise TimedOut(f"no answer within {deadline.seconds:g} s", thing, "is xinetd running, with its tftp service?")
