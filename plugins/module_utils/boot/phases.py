# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the proxy sees of its boards' boots: DHCP and TFTP requests and connections to NFS, and whoever else answers in
the proxy's place, read from raw sockets.

In.tftpd's log would show the requests too, but only with -v, in a format and a place that depend on syslog, and it
knows nothing of DHCP and NFS; a packet socket with a kernel filter costs nothing between packets and serves every
server. In.tftpd never says that a transfer is complete: a file is fetched when the next one is asked for, or when the
booted kernel asks for its address. What follows from the phases (deadlines, blame) is left to boards/.
"""

from __future__ import annotations

import ctypes
import socket
import struct
import sys
import threading
import time

from ..errors import HeteroError
from ..ready import readable
from . import dhcp
from .driver import FIRMWARE, NFS, OTHER_ADDRESS, OTHER_DHCP, SYSTEM, TFTP

ETH_P_IP, ETH_P_ARP = 0x0800, 0x0806
SO_ATTACH_FILTER, SO_RCVBUFFORCE = 26, 33  # asm-generic/socket.h
DHCP_PORT, TFTP_PORT, NFS_PORT = 67, 69, 2049
FIRMWARES = (b"PXEClient", b"iPXE", b"U-Boot")
UDP, TCP = 17, 6
SYN, ACK = 0x02, 0x10
MORE_FRAGMENTS = 0x2000
#: In place of a file's name: a request for a file that cannot be told. No firmware sends its request in fragments, and
#: packets come faster than they are read only where somebody floods.
UNKNOWN_NAME = "?"
#: asm-generic/socket.h, linux/if_packet.h: counts of packets that came, and that found no room, since it was last read.
SOL_PACKET, PACKET_STATISTICS = 263, 6
#: Room for packets that come while the reader is busy (bytes); a request takes less than 1 KB of it.
ROOM = 4 << 20
STATISTICS = struct.Struct("II")
LONGEST = 1 << 16  #: no IP packet is longer

# Classic BPF (linux/filter.h), as `tcpdump -d` would give it for packets that begin at the IP header (SOCK_DGRAM): no
# fragments; UDP to port 67 or 69 or from 67; TCP to port 2049 with SYN and without ACK. Jumps count instructions to
# skip.
_LDB, _LDH, _LDXMSH, _LDH_X, _LDB_X, _AND, _JEQ, _JSET, _RET = 0x30, 0x28, 0xB1, 0x48, 0x50, 0x54, 0x15, 0x45, 0x06
FILTER = [
    (_LDH, 0, 0, 6),  # flags and fragment offset
    (_JSET, 15, 0, 0x1FFF),  # a later fragment has no ports: drop
    (_LDXMSH, 0, 0, 0),  # X = length of the IP header
    (_LDB, 0, 0, 9),  # protocol
    (_JEQ, 0, 5, UDP),
    (_LDH_X, 0, 0, 0),  # UDP source port
    (_JEQ, 9, 0, DHCP_PORT),
    (_LDH_X, 0, 0, 2),  # UDP destination port
    (_JEQ, 7, 0, DHCP_PORT),
    (_JEQ, 6, 7, TFTP_PORT),
    (_JEQ, 0, 6, TCP),
    (_LDH_X, 0, 0, 2),  # TCP destination port
    (_JEQ, 0, 4, NFS_PORT),
    (_LDB_X, 0, 0, 13),  # TCP flags
    (_AND, 0, 0, SYN | ACK),
    (_JEQ, 0, 1, SYN),
    (_RET, 0, 0, 0xFFFF),  # pass
    (_RET, 0, 0, 0),  # drop
]


def attach_filter(sock):
    """Let only packets of FILTER through to `sock`."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in FILTER))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", len(FILTER), ctypes.addressof(code)))


def parse(packet, sender_mac):
    """What an IP packet says of a boot.

    :param sender_mac: the frame's source, as "00:1a:ca:00:57:90"; an address without an address of its own is known by
        it.
    :returns: (kind, ip, mac, file name or "", source port) or None for anything else.
    """
    if len(packet) < 20 or packet[0] >> 4 != 4:
        return None
    header = (packet[0] & 0x0F) * 4
    protocol, ip = packet[9], socket.inet_ntoa(packet[12:16])
    body = packet[header:]
    if len(body) < 8:
        return None
    source, port = struct.unpack("!HH", body[:4])
    if protocol == UDP and port == TFTP_PORT and struct.unpack("!H", packet[6:8])[0] & MORE_FRAGMENTS:
        return TFTP, ip, sender_mac, UNKNOWN_NAME, source
    if len(body) < 14:
        return None
    if protocol == TCP:
        return (NFS, ip, sender_mac, "", source) if port == NFS_PORT and body[13] & (SYN | ACK) == SYN else None
    payload = body[8:]
    if protocol == UDP and port == TFTP_PORT and payload[:2] == b"\0\1":
        name = payload[2:].split(b"\0", 1)[0].decode("ascii", "replace")
        return TFTP, ip, sender_mac, name.rsplit("/", 1)[-1], source
    if protocol == UDP and port == DHCP_PORT and payload[:1] == b"\1" and len(payload) >= 240:
        # Firmware names itself in option 60 (PXEClient, U-Boot.armv8) or 77 (iPXE); a Linux kernel or initramfs does
        # neither.
        firmware = any(name in payload[240:] for name in FIRMWARES)
        return FIRMWARE if firmware else SYSTEM, ip, ":".join(f"{byte:02x}" for byte in payload[28:34]), "", source
    return None


def announced(packet):
    """(address, MAC) that the sender of an ARP packet (IPv4 over Ethernet) says are its own, or None."""
    if len(packet) < 28 or packet[:6] != struct.pack("!HHBB", 1, ETH_P_IP, 6, 4):
        return None
    address = socket.inet_ntoa(packet[14:18])
    return None if address == "0.0.0.0" else (address, dhcp.mac_text(packet[8:14]))


def udp_payload(packet):
    """What a UDP datagram in this IP packet carries; empty for any other packet."""
    header = (packet[0] & 0x0F) * 4 if packet else 0
    return packet[header + 8 :] if len(packet) >= 20 and packet[9] == UDP else b""


def followed(packet):
    """(MAC of the client, address of the server) where a packet shows whose DHCP answer a client gets or took; else
    None. A server's answer may reach the client alone; what the client then asks of it goes to everyone (RFC 2131,
    section 4.4.1).
    """
    said = dhcp.read(udp_payload(packet))
    if said is None or not said.server or (said.op == dhcp.REQUEST_OP and said.kind != dhcp.REQUEST):
        return None
    return said.mac, said.server


class Watcher:
    """Reads packet sockets in a thread and tells `seen(board_id, kind, name, at, sender)` for the given boards.

    The sockets are open, with their filter, from __init__ on: make it before power is switched on.

    :param server: the proxy's address; whoever else says that it is theirs is told of.
    :param dhcp_server: the only DHCP server that boards are to have; None where that is not known.
    :raises HeteroError: the process may not open packet sockets.
    """

    def __init__(self, boards, seen, server=None, dhcp_server=None):
        self._server, self._dhcp_server = server, dhcp_server
        self._by_ip = {board.ip: board.id for board in boards}
        self._by_mac = {board.mac: board.id for board in boards}
        self._seen = seen
        try:
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
            self._arp = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ARP))
        except PermissionError as error:
            raise HeteroError(
                "may not watch the boards' packets", "packet socket", "run as root (become: true)"
            ) from error
        attach_filter(self._socket)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
        self._bell, self._bell_end = socket.socketpair()
        self._thread = threading.Thread(target=self._read, name="boot phases", daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._bell.send(b"!")
        self._thread.join()
        for sock in (self._socket, self._arp, self._bell, self._bell_end):
            sock.close()

    def _read(self):
        while True:
            ready = readable([self._socket, self._arp, self._bell_end])
            if self._bell_end in ready:
                break
            self._take(ready)
        # What came before the end counts, however late it is read.
        for _packet in range(ROOM // 512):
            ready = readable([self._socket, self._arp], 0)
            if not ready:
                return
            self._take(ready)

    def _take(self, ready):
        """Read a packet of each socket that has one, and say what was seen."""
        if self._arp in ready:
            self._announced(*self._arp.recvfrom(LONGEST))
        if self._socket in ready:
            packet, frame = self._socket.recvfrom(LONGEST)
            if self._lost():
                for board_id in self._by_mac.values():
                    self._seen(board_id, TFTP, UNKNOWN_NAME, time.monotonic(), "packets that were not seen")
            self._asked(packet, dhcp.mac_text(frame[4][:6]))

    def _asked(self, packet, sender_mac):
        taken = followed(packet) if self._dhcp_server else None
        if taken and taken[1] != self._dhcp_server and taken[0] in self._by_mac:
            self._seen(self._by_mac[taken[0]], OTHER_DHCP, taken[1], time.monotonic(), sender_mac)
        found = parse(packet, sender_mac)
        if found is None:
            return
        kind, ip, mac, name, port = found
        board_id = self._by_ip.get(ip, self._by_mac.get(mac))
        if board_id is not None:
            self._seen(board_id, kind, name, time.monotonic(), f"{ip} port {port} ({sender_mac})")

    def _announced(self, packet, sender):
        """An ARP packet of another machine; every board of the watch is concerned."""
        said = announced(packet)
        if said is None or said[0] != self._server or sender[2] == socket.PACKET_OUTGOING:
            return
        for board_id in self._by_mac.values():
            self._seen(board_id, OTHER_ADDRESS, said[1], time.monotonic(), said[1])

    def _lost(self):
        """Whether packets found no room since this was asked last."""
        counts = self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, STATISTICS.size)
        return STATISTICS.unpack(counts)[1] > 0


def nfs_connected(ip, tables=("/proc/net/tcp", "/proc/net/tcp6")):
    """Whether `ip` has an established connection to this node's NFS port."""
    # The kernel prints an IPv4 address as one native integer; an IPv4-mapped IPv6 address ends in the same eight
    # digits.
    wanted = f"{int.from_bytes(socket.inet_aton(ip), sys.byteorder):08X}"
    for table in tables:
        try:
            with open(table, encoding="ascii") as file:
                rows = [line.split() for line in file][1:]
        except FileNotFoundError:
            continue  # a kernel without IPv6 has no tcp6
        for row in rows:
            local, remote, state = row[1], row[2], row[3]
            if (
                state == "01"
                and int(local.rsplit(":", 1)[1], 16) == NFS_PORT
                and remote.rsplit(":", 1)[0].endswith(wanted)
            ):
                return True
    return False
