# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DHCP messages (RFC 2131), as far as the proxy writes and reads them: clients' questions, and servers in answers."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

SERVER_PORT, CLIENT_PORT = 67, 68
REQUEST_OP, REPLY_OP = 1, 2
#: Option 53, and the types of messages by which a client chooses and a server answers.
MESSAGE_TYPE, DISCOVER, OFFER, REQUEST, ACK = 53, 1, 2, 3, 5
#: Option with a server's own address, or with the server that a client chose.
SERVER_ID = 54
BROADCAST = 0x8000
COOKIE = b"\x63\x82\x53\x63"
#: Bytes before the options: the fixed part with `sname` and `file`, and the cookie.
FIXED = 240
#: Option 60 of a PC's PXE client. Servers that give only a boot file and no address answer it too.
FIRMWARE = b"\x3c\x20PXEClient:Arch:00000:UNDI:002001"


def mac_bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


def mac_text(data: bytes) -> str:
    return ":".join(f"{byte:02x}" for byte in data)


def discover(mac: str, xid: bytes, relay: str = "0.0.0.0", flags: int = 0) -> bytes:
    """Return a DHCPDISCOVER of the client with this MAC, as its firmware or the relay at address `relay` sends it."""
    head = struct.pack("!4B4sHH", REQUEST_OP, 1, 6, 1 if relay != "0.0.0.0" else 0, xid, 0, flags)
    addresses = bytes(12) + socket.inet_aton(relay)
    return (
        head
        + addresses
        + mac_bytes(mac).ljust(16, b"\0")
        + bytes(192)
        + COOKIE
        + bytes([MESSAGE_TYPE, 1, DISCOVER])
        + FIRMWARE
        + b"\xff"
    )


@dataclass(frozen=True)
class Message:
    """The parts of a message that are used. `server` is the address in option 54, or ""."""

    op: int
    xid: bytes
    mac: str
    address: str
    kind: int
    server: str


def read(payload: bytes) -> Message | None:
    """Return the message in a UDP datagram to or from port 67, or None if it is no DHCP."""
    if len(payload) < FIXED or payload[1:3] != b"\1\6" or payload[FIXED - 4 : FIXED] != COOKIE:
        return None
    options = _options(payload[FIXED:])
    server = options.get(SERVER_ID, b"")
    return Message(
        op=payload[0],
        xid=payload[4:8],
        mac=mac_text(payload[28:34]),
        address=socket.inet_ntoa(payload[16:20]),
        kind=options.get(MESSAGE_TYPE, b"\0")[0],
        server=socket.inet_ntoa(server) if len(server) == 4 else "",
    )


def _options(data: bytes) -> dict[int, bytes]:
    """Return {option: its first value} of options that are complete and not empty."""
    found: dict[int, bytes] = {}
    at = 0
    while at + 1 < len(data) and data[at] != 255:
        if data[at] == 0:
            at += 1
            continue
        end = at + 2 + data[at + 1]
        if data[at + 1] and end <= len(data):
            found.setdefault(data[at], data[at + 2 : end])
        at = end
    return found
