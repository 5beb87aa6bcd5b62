# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks a proxy node as a board does: from a network card with the board's address, on the lab's bridge.

TFTP reads and writes, and an NFS 3 mount, lookup and read over the wire (a kernel without an NFS client will do).
Prints the answers as JSON: the SHA-256 of what came, or the refusal.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import hashlib
import json
import os
import socket
import struct
import subprocess
import sys

CLONE_NEWNET = 0x40000000
WAIT = 5.0
PORTMAP, NFS, MOUNT = (100000, 2), (100003, 3), (100005, 3)


def tftp(server, opcode, name):
    """The SHA-256 of the file that a read gets, "accepted" for a write, or the server's error text."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.settimeout(WAIT)
        asker.sendto(struct.pack("!H", opcode) + name.encode() + b"\0octet\0", (server, 69))
        data = hashlib.sha256()
        while True:
            packet, peer = asker.recvfrom(600)
            kind, number = struct.unpack("!HH", packet[:4])
            if kind == 5:
                return packet[4:].rstrip(b"\0").decode()
            if kind == 4:
                return "accepted"
            data.update(packet[4:])
            asker.sendto(struct.pack("!HH", 4, number), peer)
            if len(packet) < 516:
                return data.hexdigest()


class Rpc:
    """A connection to one program of a server (RFC 5531, TCP), as root by AUTH_SYS."""

    def __init__(self, server, program, port):
        self.program = program
        self.socket = socket.create_connection((server, port), WAIT)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.socket.close()

    def call(self, procedure, arguments):
        """The result's bytes, or None where the server rejects the caller."""
        cred = struct.pack("!II", 0, 5) + b"board\0\0\0" + struct.pack("!III", 0, 0, 0)
        head = struct.pack("!6I", 1, 0, 2, *self.program, procedure) + struct.pack("!II", 1, len(cred)) + cred
        message = head + struct.pack("!II", 0, 0) + arguments
        self.socket.sendall(struct.pack("!I", 0x80000000 | len(message)) + message)
        answer, last = b"", False
        while not last:
            mark = struct.unpack("!I", self._bytes(4))[0]
            last = bool(mark & 0x80000000)
            answer += self._bytes(mark & 0x7FFFFFFF)
        _xid, _reply, denied = struct.unpack("!III", answer[:12])
        if denied:
            return None
        accepted = 20 + struct.unpack("!I", answer[16:20])[0]
        return answer[accepted + 4 :] if answer[accepted : accepted + 4] == b"\0\0\0\0" else None

    def _bytes(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("the server hung up")
            data += more
        return data


def opaque(data):
    return struct.pack("!I", len(data)) + data + b"\0" * (-len(data) % 4)


def handle_at(data):
    """A file handle at the beginning of a result."""
    return data[4 : 4 + struct.unpack("!I", data[:4])[0]]


def nfs(server, export, path):
    """The SHA-256 of a file below an export, or what was denied on the way to it."""
    ports = {}
    with Rpc(server, PORTMAP, 111) as portmap:
        for program in (MOUNT, NFS):
            ports[program] = struct.unpack("!I", portmap.call(3, struct.pack("!4I", *program, 6, 0)))[0]
    with Rpc(server, MOUNT, ports[MOUNT]) as mountd:
        answer = mountd.call(1, opaque(export.encode()))
    if answer is None or struct.unpack("!I", answer[:4])[0] != 0:
        return "mount denied"
    handle = handle_at(answer[4:])
    with Rpc(server, NFS, ports[NFS]) as nfsd:
        for name in path.split("/"):
            answer = nfsd.call(3, opaque(handle) + opaque(name.encode()))
            if answer is None or struct.unpack("!I", answer[:4])[0] != 0:
                return f"lookup of {name} denied"
            handle = handle_at(answer[4:])
        answer = nfsd.call(6, opaque(handle) + struct.pack("!QI", 0, 65536))
    status, attributes = struct.unpack("!II", answer[:8])
    if status:
        return f"read failed with {status}"
    start = 8 + 84 * attributes
    count = struct.unpack("!I", answer[start : start + 4])[0]
    return hashlib.sha256(answer[start + 12 : start + 12 + count]).hexdigest()


def ip(*words):
    subprocess.run(["ip", *words], check=True)


@contextlib.contextmanager
def card(namespace, address, mac):
    """This process in a network namespace of its own, with a card on the bridge of the lab that holds the boards."""
    name = f"as-{address.rsplit('.', 1)[1]}-{os.getpid()}"[:15]
    ip("netns", "add", name)
    try:
        ip("-n", name, "link", "add", "eth0", "address", mac, "type", "veth", "peer", "name", name, "netns", namespace)
        ip("-n", namespace, "link", "set", name, "master", "boards", "up")
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        with open(f"/run/netns/{name}", encoding="ascii") as target:
            if ctypes.CDLL(None, use_errno=True).setns(target.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        yield
    finally:
        ip("netns", "del", name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--mac", required=True)
    parser.add_argument("questions", type=json.loads)
    asked = parser.parse_args()
    questions, server = asked.questions, asked.questions["server"]
    with card(asked.namespace, asked.address, asked.mac):
        answers = {
            "reads": {name: tftp(server, 1, name) for name in questions["get"]},
            "writes": {name: tftp(server, 2, name) for name in questions["put"]},
            "nfs": nfs(server, questions["export"], questions["file"]),
        }
    json.dump(answers, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
