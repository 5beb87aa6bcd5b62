# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TFTP (RFC 1350) by which a proxy asks its own server as a board would: read a file, or try to write one."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, NamedTuple, cast

from ...core.errors import HeteroError, TimedOut
from ...core.plays import play

if TYPE_CHECKING:
    from ...core.deadline import Deadline

RRQ, WRQ, DATA, ACK, ERROR = 1, 2, 3, 4, 5
BLOCK = 512
#: Seconds after which a request without an answer is sent again (RFC 1123 leaves the number to the client).
ASK_AGAIN = 0.5


class Answer(NamedTuple):
    """A TFTP server's answer: the bytes of a file, or an error text."""

    data: bytes | None = None
    error: str | None = None


def ask(server: str, name: str, deadline: Deadline, opcode: int = RRQ, port: int = 69) -> Answer:
    """Ask `server` for file `name`, or with WRQ whether it takes one.

    :returns: an Answer. That of an accepted WRQ has data b""; nothing is then sent.
    :raises TimedOut: no answer, or a stalled transfer, by the deadline.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        packet, to = struct.pack("!H", opcode) + name.encode() + b"\0octet\0", (server, port)
        data, block = b"", 1
        while not deadline.passed:
            asker.sendto(packet, to)
            asker.settimeout(max(0.01, min(ASK_AGAIN, deadline.left)))
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
    remedy = "is xinetd running, with its tftp service, or has another program its ports (ss -ulnp: 69, 28672-32767)?"
    raise TimedOut(f"no answer within {deadline.seconds:g} s", f"TFTP {server}:{name}", remedy)


def get(server: str, name: str, deadline: Deadline, port: int = 69) -> bytes:
    """Return the content of file `name`; raise HeteroError with the server's words if it refuses."""
    answer = ask(server, name, deadline, port=port)
    if answer.error is not None:
        thing = f"TFTP {server}:{name}"
        raise HeteroError(f"refused ({answer.error})", thing, f"run {play('proxy')}")
    return cast(bytes, answer.data)
