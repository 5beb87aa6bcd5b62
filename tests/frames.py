# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ethernet frames as an attacker on a bridge makes them; run as a program, it sends or hears them on an interface.

`frames.py send IFACE HEX…`, `frames.py hear IFACE SECONDS [ONE]` (prints `ready`, then each marked frame in hex, until
the one that holds ONE in hex or the time is over). Needs nothing but Python, to be run where the attacker is.
"""

from __future__ import annotations

import socket
import struct
import sys
import time

ALL = 0x0003  # linux/if_ether.h, ETH_P_ALL
BROADCAST = "ff:ff:ff:ff:ff:ff"
IPV4, ARP, VLAN, IPV6, PROVIDERS_VLAN, LLDP = 0x0800, 0x0806, 0x8100, 0x86DD, 0x88A8, 0x88CC
#: By which a frame of ours is known among others.
MARK = b"hetero forged this"


def octets(mac):
    return bytes.fromhex(mac.replace(":", ""))


def frame(to, sender, kind, payload):
    return octets(to) + octets(sender) + struct.pack("!H", kind) + payload


def arp(sender_mac, sender_ip, target_ip, operation=2):
    """An answer that nobody asked for, which whoever hears it may believe."""
    head = struct.pack("!HHBBH", 1, IPV4, 6, 4, operation)
    return head + octets(sender_mac) + socket.inet_aton(sender_ip) + bytes(6) + socket.inet_aton(target_ip) + MARK


def udp(sender_ip, target_ip, source, target, data=MARK):
    """An IPv4 datagram; its UDP sum is left out, as RFC 768 allows."""
    body = struct.pack("!HHHH", source, target, 8 + len(data), 0) + data
    ends = socket.inet_aton(sender_ip), socket.inet_aton(target_ip)
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 1, 0, 64, 17, 0, *ends)
    return head[:10] + struct.pack("!H", _sum(head)) + head[12:] + body


def ipv6(source, target, protocol, body, sum_at, hops=255):
    """An IPv6 packet; the sum of its body, which IPv6 does not leave out (RFC 8200), is put at its byte `sum_at`."""
    ends = b"".join(socket.inet_pton(socket.AF_INET6, end) for end in (source, target))
    total = _sum(ends + struct.pack("!II", len(body), protocol) + body)
    head = struct.pack("!IHBB", 0x60000000, len(body), protocol, hops)
    return head + ends + body[:sum_at] + struct.pack("!H", total) + body[sum_at + 2 :]


def udp_over_ipv6(source, target, from_port, to_port, data=MARK):
    body = struct.pack("!HHHH", from_port, to_port, 8 + len(data), 0) + data
    return ipv6(source, target, 17, body, 6)


def router_advertisement():
    """ICMPv6 type 134 to all nodes, from a link-local address; our mark is in an option for experiments (RFC 4727)."""
    body = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0) + struct.pack("!BB22s", 253, 3, MARK)
    return ipv6("fe80::bad", "ff02::1", 58, body, 2)


def _sum(content):
    content += bytes(len(content) % 2)
    total = sum(struct.unpack(f"!{len(content) // 2}H", content))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def hear(wire, seconds, last):
    """Print the frames that come in from elsewhere and have our mark; end with the one that holds `last`."""
    end = time.monotonic() + seconds
    while end > time.monotonic():
        wire.settimeout(max(0.001, end - time.monotonic()))
        try:
            heard, whence = wire.recvfrom(2048)
        except socket.timeout:
            return
        if whence[2] == socket.PACKET_OUTGOING:
            continue
        if last and last in heard:
            return
        if MARK in heard:
            sys.stdout.write(f"{heard.hex()}\n")
            sys.stdout.flush()


def main(verb, interface, *words):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
    wire.bind((interface, 0))
    if verb == "send":
        for word in words:
            wire.send(bytes.fromhex(word))
        return
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    hear(wire, float(words[0]), bytes.fromhex(words[1]) if words[1:] else b"")


if __name__ == "__main__":
    main(*sys.argv[1:])
