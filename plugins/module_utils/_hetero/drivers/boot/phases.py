# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the proxy sees of its boards' boots, read from raw sockets: DHCP, TFTP and HTTP requests, connections to NFS,
and others that answer in the proxy's place.

In.tftpd's and nginx's logs show the requests too, but their form and place depend on syslog, and nginx's tell of one
once its answer is over; they know nothing of DHCP and NFS. A packet socket with a filter in the kernel costs nothing
between packets and works with every server.
In.tftpd never says that a transfer is complete: a file counts as fetched when the next one is asked for, or when the
booted kernel asks for its address. boards/ decides what follows from the phases (deadlines, blame).

Packet sockets also get what the packet filter drops afterwards; Wire tells what only a board can have sent.
"""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Collection, Container, Iterable

from ...core import kernel_tables
from ...core.errors import HeteroError
from ...core.readiness import readable
from ...site.proxy_config import SET_UP
from . import dhcp
from .driver import FIRMWARE, HTTP, NFS, OTHER_ADDRESS, OTHER_DHCP, SYSTEM, TFTP
from .http_requests import UNKNOWN_NAME, asked_name
from .packet_sockets import (
    ACK,
    DHCP,
    DHCP_PORT,
    ETH_P_ARP,
    ETH_P_IP,
    LONGEST,
    MORE_FRAGMENTS,
    NFS_PORT,
    ROOM,
    SYN,
    TCP,
    TFTP_PORT,
    UDP,
    ear,
    from_macs,
    lost,
    requests,
)

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from .driver import Seen
    from .packet_sockets import Program

#: Takes a packet: its bytes, the interface, the sender's MAC.
Take = Callable[[bytes, str, str], None]

FIRMWARES = (b"PXEClient", b"HTTPClient", b"iPXE", b"U-Boot")


@dataclass(frozen=True)
class Wire:
    """What the proxy knows of its boards' frames, to tell them from those of others.

    :param interface: the interface of the near boards; "" if it is not known.
    :param near: ids of boards on the proxy's own network.
    :param pinned: whether the packet filter drops frames with a near board's address and another MAC.
    :param http_port: the port by which boards are given files by HTTP; 0 where they are not.
    """

    interface: str = ""
    near: frozenset[int] = frozenset()
    pinned: bool = False
    http_port: int = 0

    def passes(self, board: Board, kind: str, interface: str, sender_mac: str) -> bool:
        """Return whether that board may have sent a frame.

        A client sends its DHCP requests itself (RFC 2131). Other packets from far away come through a router.
        """
        if board.id not in self.near:
            return True
        own = sender_mac == board.mac or not (self.pinned or kind in (FIRMWARE, SYSTEM))
        return own and interface == self.interface


def parse(packet: bytes, sender_mac: str, http_port: int = 0) -> tuple[str, str, str, str, int] | None:
    """Return what an IP packet says of a boot.

    :param packet: from its IP header on.
    :param sender_mac: the frame's source, as "00:1a:ca:00:57:90". A sender that has no IP address yet is known by it.
    :param http_port: as in Wire.
    :returns: (kind, ip, mac, file name or "", source port), or None for anything else.
    """
    if len(packet) < 20 or packet[0] >> 4 != 4:
        return None
    header = (packet[0] & 0x0F) * 4
    protocol, ip = packet[9], socket.inet_ntoa(packet[12:16])
    body = packet[header:]
    if len(body) < 8:
        return None
    source, port = struct.unpack("!HH", body[:4])
    in_parts = struct.unpack("!H", packet[6:8])[0] & MORE_FRAGMENTS
    if protocol == UDP and port == TFTP_PORT and in_parts:
        return TFTP, ip, sender_mac, UNKNOWN_NAME, source
    if protocol == TCP and port == http_port:
        name = UNKNOWN_NAME if in_parts else asked_name(body[: struct.unpack("!H", packet[2:4])[0] - header])
        return (HTTP, ip, sender_mac, name, source) if name else None
    if len(body) < 14:
        return None
    if protocol == TCP:
        return (NFS, ip, sender_mac, "", source) if port == NFS_PORT and body[13] & (SYN | ACK) == SYN else None
    payload = body[8:]
    if protocol == UDP and port == TFTP_PORT and payload[:2] == b"\0\1":
        name = payload[2:].split(b"\0", 1)[0].decode("ascii", "replace")
        return TFTP, ip, sender_mac, name.rsplit("/", 1)[-1], source
    if protocol == UDP and port == DHCP_PORT and payload[:1] == b"\1" and len(payload) >= 240:
        # Firmware names itself in option 60 (PXEClient, U-Boot.armv8) or 77 (iPXE). A Linux kernel or initramfs does
        # not.
        firmware = any(name in payload[240:] for name in FIRMWARES)
        return FIRMWARE if firmware else SYSTEM, ip, ":".join(f"{byte:02x}" for byte in payload[28:34]), "", source
    return None


def announced(packet: bytes) -> tuple[str, str] | None:
    """Return the (address, MAC) that the sender of an ARP packet (IPv4 over Ethernet) claims, or None."""
    if len(packet) < 28 or packet[:6] != struct.pack("!HHBB", 1, ETH_P_IP, 6, 4):
        return None
    address = socket.inet_ntoa(packet[14:18])
    return None if address == "0.0.0.0" else (address, dhcp.mac_text(packet[8:14]))


def udp_payload(packet: bytes) -> bytes:
    """Return the payload of the UDP datagram in an IP packet; b"" for any other packet."""
    header = (packet[0] & 0x0F) * 4 if packet else 0
    return packet[header + 8 :] if len(packet) >= 20 and packet[9] == UDP else b""


def followed(packet: bytes) -> tuple[str, str] | None:
    """Return (MAC of the client, address of the server) if a packet shows whose DHCP answer a client gets or took, or
    None.

    A server's answer may go to the client only; the request that follows goes to everyone (RFC 2131, section 4.4.1).
    """
    said = dhcp.read(udp_payload(packet))
    if said is None or not said.server or (said.op == dhcp.REQUEST_OP and said.kind != dhcp.REQUEST):
        return None
    return said.mac, said.server


class Watcher:
    """Reads packet sockets in a thread and calls `seen(board_id, kind, name, at, sender)` for the given boards.

    The sockets are open, with their filters, from __init__ on. So make it before power is switched on.

    :param server: the proxy's address. Another machine that claims it is reported.
    :param dhcp_server: the only DHCP server that boards should have; None if that is not known.
    :param wire: what the proxy knows of the boards' frames.
    :raises HeteroError: the process may not open packet sockets, or the interface is gone.
    """

    def __init__(
        self,
        boards: Collection[Board],
        seen: Seen,
        server: str | None = None,
        dhcp_server: str | None = None,
        wire: Wire = Wire(),
    ) -> None:
        self._server, self._dhcp_server, self._wire = server, dhcp_server, wire
        self._by_ip = {board.ip: board for board in boards}
        self._by_mac = {board.mac: board for board in boards}
        self._seen = seen
        # Separate sockets, so that a flood on one does not hide what comes on the others.
        all_near = all(board.id in wire.near for board in boards)
        interface = wire.interface if all_near else ""
        senders = from_macs(self._by_mac) if all_near and wire.pinned else []
        self._ears: dict[socket.socket, Take] = {}
        try:
            program = [*senders, *requests(wire.http_port)]
            self._requests = self._hear(ETH_P_IP, program, interface, self._asked)
            if dhcp_server:
                self._hear(ETH_P_IP, DHCP, interface, self._answered)
            self._hear(ETH_P_ARP, [], interface, self._announced)
        except PermissionError as error:
            self._close()
            raise HeteroError(
                "may not watch the boards' packets", "packet socket", "run as root (become: true)"
            ) from error
        except OSError as error:
            self._close()
            raise HeteroError(
                f"cannot watch the boards' packets ({error.strerror})", f"interface {interface}", SET_UP
            ) from error
        self._bell, self._bell_end = socket.socketpair()
        self._thread = threading.Thread(target=self._read, name="boot phases", daemon=True)

    def _hear(self, protocol: int, program: Program, interface: str, take: Take) -> socket.socket:
        sock = ear(protocol, program, interface)
        self._ears[sock] = take
        return sock

    def _close(self) -> None:
        for sock in self._ears:
            sock.close()

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._bell.send(b"!")
        self._thread.join()
        self._close()
        for sock in (self._bell, self._bell_end):
            sock.close()

    def _read(self) -> None:
        while True:
            ready = readable([*self._ears, self._bell_end])
            if self._bell_end in ready:
                break
            self._take(ready)
        # What came before the end counts, however late it is read.
        for _packet in range(ROOM // 512):
            ready = readable(list(self._ears), 0)
            if not ready:
                return
            self._take(ready)

    def _take(self, ready: Iterable[socket.socket]) -> None:
        """Read a packet of each socket that has one, and report what was seen."""
        for sock in ready:
            packet, frame = sock.recvfrom(LONGEST)
            if sock is self._requests and lost(self._requests):
                for board in self._by_mac.values():
                    self._seen(board.id, TFTP, UNKNOWN_NAME, time.monotonic(), "packets that were not seen")
            self._ears[sock](packet, frame[0], dhcp.mac_text(frame[4][:6]))

    def _asked(self, packet: bytes, interface: str, sender_mac: str) -> None:
        found = parse(packet, sender_mac, self._wire.http_port)
        if found is None:
            return
        kind, ip, mac, name, port = found
        board = self._by_ip.get(ip, self._by_mac.get(mac))
        if board and self._wire.passes(board, kind, interface, sender_mac):
            self._seen(board.id, kind, name, time.monotonic(), f"{ip} port {port} ({sender_mac})")

    def _answered(self, packet: bytes, _interface: str, sender_mac: str) -> None:
        taken = followed(packet)
        if taken and taken[1] != self._dhcp_server and taken[0] in self._by_mac:
            self._seen(self._by_mac[taken[0]].id, OTHER_DHCP, taken[1], time.monotonic(), sender_mac)

    def _announced(self, packet: bytes, _interface: str, _sender_mac: str) -> None:
        """Report an ARP packet of another machine. It concerns all boards of the watch."""
        said = announced(packet)
        if said is None or said[0] != self._server:
            return
        for board in self._by_mac.values():
            self._seen(board.id, OTHER_ADDRESS, said[1], time.monotonic(), said[1])


class Newcomers(Watcher):
    """Reads packets as Watcher does; calls `told(mac)` for each machine that asks for an address and is no board."""

    def __init__(self, boards: Collection[Board], told: Callable[[str], None], interface: str) -> None:
        self._told, self._known = told, {board.mac for board in boards}
        super().__init__([], lambda *_seen: None, wire=Wire(interface))

    def _asked(self, packet: bytes, interface: str, sender_mac: str) -> None:
        found = parse(packet, sender_mac)
        if found and found[0] in (FIRMWARE, SYSTEM) and found[2] not in self._known:
            self._told(found[2])


def nfs_connected(ip: str, tables: Iterable[str] = ("/proc/net/tcp", "/proc/net/tcp6")) -> bool:
    """Return whether `ip` has an established connection to this node's NFS port."""
    # The kernel prints an address as native integers of 32 bits: an IPv4 address as one, an IPv4-mapped IPv6 address
    # (::ffff:10.0.2.1) as four.
    packed = socket.inet_aton(ip)
    words = [b"\0\0\0\0", b"\0\0\0\0", b"\0\0\xff\xff", packed]
    mapped = "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
    wanted = (f"{int.from_bytes(packed, sys.byteorder):08X}", mapped)
    for table in tables:
        with suppress(FileNotFoundError):  # a kernel without IPv6 has no tcp6
            if any(_is_mount(line.split(), wanted) for lines in kernel_tables.reads(table) for line in lines[1:]):
                return True
    return False


def _is_mount(row: list[str], clients: Container[str]) -> bool:
    local, remote, state = row[1:4]
    at_nfs = int(local.rsplit(":", 1)[1], 16) == NFS_PORT
    return state == "01" and at_nfs and remote.rsplit(":", 1)[0] in clients
