# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who answers on the boards' network: questions by DHCP and ARP, sent as frames from one raw socket.

A question has the proxy's own MAC as its sender, so that no switch takes the proxy for the board. The proxy's own DHCP
server hears no frame that this machine sends, so it is asked over the loopback interface, as by a relay on this
machine; it answers a DHCPDISCOVER without keeping anything.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from typing import Any, Callable, Iterator

from ...core.deadline import Deadline
from ...core.readiness import readable
from . import dhcp, packet_sockets, phases

EVERYONE = b"\xff" * 6
ARP_REQUEST = 1
#: Seconds that others have to answer. DHCP servers that ping an address before they offer it wait up to 3 s (dnsmasq);
#: ARP is answered by a kernel.
DHCP_WINDOW, ARP_WINDOW = 3.5, 0.5
#: Seconds between two times the same question.
AGAIN = 1.0


def interface_mac(interface: str) -> str:
    with open(f"/sys/class/net/{interface}/address", encoding="ascii") as file:
        return file.read().strip()


def own_answer(server: str, mac: str, deadline: Deadline) -> str | None:
    """Return the address that the DHCP server on this machine gives to this MAC now, or None.

    :param server: the server's address.
    :raises OSError: `server` is no address of this machine, or the process is not root.
    """
    xid = os.urandom(4)
    question = dhcp.discover(mac, xid, relay=server)
    with packet_sockets.ear(packet_sockets.ETH_P_IP, packet_sockets.DHCP, "lo") as ear, socket.socket(
        socket.AF_INET, socket.SOCK_DGRAM
    ) as mouth:
        mouth.bind((server, 0))
        for packet, _sender in _asked(ear, deadline, lambda: mouth.sendto(question, (server, dhcp.SERVER_PORT))):
            said = dhcp.read(phases.udp_payload(packet))
            if said and said.op == dhcp.REPLY_OP and said.xid == xid and said.kind == dhcp.OFFER:
                return said.address
    return None


def dhcp_servers(interface: str, mac: str, window: float = DHCP_WINDOW) -> dict[str, str]:
    """Return {address: MAC} of other machines' DHCP servers that offer an address to this MAC within `window` seconds.
    """
    xid = os.urandom(4)
    payload = dhcp.discover(mac, xid, flags=dhcp.BROADCAST)
    found = {}
    with _raw(interface, packet_sockets.ETH_P_IP) as wire:
        own = wire.getsockname()[4]
        frame = _broadcast(own, payload)
        for data, _sender in _asked(wire, Deadline(window), lambda: wire.send(frame)):
            said = dhcp.read(phases.udp_payload(data[14:]))
            if said and said.op == dhcp.REPLY_OP and said.xid == xid:
                found[said.server or socket.inet_ntoa(data[26:30])] = dhcp.mac_text(data[6:12])
    return found


def holders(interface: str, address: str, window: float = ARP_WINDOW) -> set[str]:
    """Return the MACs of other machines that answer by ARP that they have this address (the probe of RFC 5227)."""
    found = set()
    with _raw(interface, packet_sockets.ETH_P_ARP) as wire:
        own = wire.getsockname()[4]
        frame = EVERYONE + own + struct.pack("!H", packet_sockets.ETH_P_ARP)
        frame += arp(ARP_REQUEST, own, "0.0.0.0", bytes(6), address)
        for data, _sender in _asked(wire, Deadline(window), lambda: wire.send(frame)):
            said = phases.announced(data[14:])
            if said and said[0] == address and said[1] != dhcp.mac_text(own):
                found.add(said[1])
    return found


def arp(operation: int, mac: bytes, address: str, target_mac: bytes, target: str) -> bytes:
    """Return an ARP packet for IPv4 over Ethernet (RFC 826)."""
    head = struct.pack("!HHBBH", 1, packet_sockets.ETH_P_IP, 6, 4, operation)
    return head + mac + socket.inet_aton(address) + target_mac + socket.inet_aton(target)


def _raw(interface: str, protocol: int) -> socket.socket:
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
    wire.bind((interface, protocol))
    return wire


def _asked(ear: socket.socket, deadline: Deadline, ask: Callable[[], object]) -> Iterator[tuple[bytes, Any]]:
    """Yield each packet that comes until the deadline. The question is asked at once and every AGAIN seconds."""
    asked = None
    while not deadline.passed:
        if asked is None or time.monotonic() - asked >= AGAIN:
            ask()
            asked = time.monotonic()
        if readable([ear], min(deadline.left, AGAIN)):
            yield ear.recvfrom(2048)


def _broadcast(mac: bytes, payload: bytes) -> bytes:
    """Return an Ethernet frame with a DHCP client's message to everyone."""
    udp = struct.pack("!4H", dhcp.CLIENT_PORT, dhcp.SERVER_PORT, 8 + len(payload), 0) + payload
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, packet_sockets.UDP, 0, bytes(4), b"\xff" * 4)
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    check = ~(total + (total >> 16)) & 0xFFFF
    return (
        EVERYONE
        + mac
        + struct.pack("!H", packet_sockets.ETH_P_IP)
        + head[:10]
        + struct.pack("!H", check)
        + head[12:]
        + udp
    )
