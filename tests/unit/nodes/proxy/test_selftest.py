# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a proxy node whose TFTP serves nothing, or serves what it must not, passes for one that works."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import threading
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import tftp_client
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import selftest

BOOT = b"#!ipxe\n" + b"x" * 1200


class Server:
    """A TFTP server on the wire: answers from `files`, takes any name in `writable`, loses the first `lose` packets."""

    def __init__(self, files, writable=(), lose=0):
        self.files, self.writable, self.lose = files, writable, lose
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stop:
            stop.sendto(b"stop", ("127.0.0.1", self.port))
        self.thread.join(5)
        self.socket.close()

    def serve(self):
        data = b""
        while True:
            packet, peer = self.socket.recvfrom(2000)
            if packet == b"stop":
                return
            if self.lose:
                self.lose -= 1
                continue
            opcode = struct.unpack("!H", packet[:2])[0]
            name = packet[2:].split(b"\0")[0].decode("latin-1")
            if opcode == tftp_client.WRQ:
                answer = struct.pack("!HH", 4, 0) if name in self.writable else b"\0\5\0\2Access denied\0"
            elif opcode == tftp_client.RRQ and name not in self.files:
                answer = b"\0\5\0\1File not found\0"
            elif opcode in (tftp_client.RRQ, tftp_client.ACK):
                block = 0 if opcode == tftp_client.RRQ else struct.unpack("!H", packet[2:4])[0]
                data = self.files[name] if opcode == tftp_client.RRQ else data
                if block * 512 > len(data):
                    continue
                answer = struct.pack("!HH", 3, block + 1) + data[block * 512 : block * 512 + 512]
            else:
                continue
            self.socket.sendto(answer, peer)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "boot.ipxe").write_bytes(BOOT)
    return str(tmp_path)


def test_a_file_of_several_blocks_comes_whole_though_a_packet_is_lost():
    with Server({"boot.ipxe": BOOT}, lose=1) as server:
        assert tftp_client.ask("127.0.0.1", "boot.ipxe", Deadline(60), port=server.port).data == BOOT


def test_a_refusal_is_an_answer():
    with Server({}) as server:
        answer = tftp_client.ask("127.0.0.1", "tilera_boards", Deadline(60), port=server.port)
    assert (answer.data, answer.error) == (None, "File not found")


def test_no_answer_ends_at_the_deadline():
    with Server({"boot.ipxe": BOOT}, lose=99) as server, pytest.raises(HeteroError, match="no answer within"):
        tftp_client.ask("127.0.0.1", "boot.ipxe", Deadline(0.3), port=server.port)


def test_a_server_that_gives_boot_ipxe_and_nothing_else_passes(root):
    with Server({"boot.ipxe": BOOT}) as server:
        selftest.check_tftp("127.0.0.1", root, Deadline(60), port=server.port)
        assert server.thread.is_alive()


@pytest.mark.parametrize(
    ("files", "writable", "reason"),
    [
        ({}, (), "boot.ipxe cannot be fetched: File not found"),
        ({"boot.ipxe": b"another"}, (), "the file that comes is not the one in"),
        ({"boot.ipxe": BOOT, "tilera_boards": b"0"}, (), "tilera_boards is given to anyone"),
        ({"boot.ipxe": BOOT}, ("boot.ipxe",), "boot.ipxe can be overwritten by anyone"),
    ],
)
def test_what_is_wrong_is_said(root, monkeypatch, files, writable, reason):
    monkeypatch.setattr(selftest, "_journal", lambda unit: f"see: journalctl -u {unit}")
    for seconds in (0.5, 10):  # a busy machine needs longer to ask for all of them
        with Server(files, writable) as server, pytest.raises(HeteroError) as error:
            selftest.check_tftp("127.0.0.1", root, Deadline(seconds), port=server.port)
        if reason in str(error.value):
            break
    assert reason in str(error.value)


#: The system's Python by its own name, as a server is begun; sys.executable is a link of another name.
PYTHON = os.path.realpath("/usr/bin/python3")
#: A program that listens on a port of any number, and says which.
LISTENS = """
import os, socket, sys
if sys.argv[1:]:
    # a folder whose path is too long to be told
    os.chdir(sys.argv[2])
    for _depth in range(40):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    deep = os.open(".", os.O_RDONLY)
if sys.argv[1:]:
    open("/proc/self/comm", "w").write("ganesha.nfsd")
    os.setuid(int(sys.argv[1]))
with socket.create_server(("127.0.0.1", 0)) as sock:
    print(sock.getsockname()[1], flush=True)
    sys.stdin.read()
"""


def listening(*words):
    argv = [PYTHON, "-c", LISTENS, *map(str, words)]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="another account needs root: run as root")
def test_who_has_the_nfs_servers_port_is_named(monkeypatch, tmp_path):
    """Lost: every board's root to a local account, on a proxy whose set-up said that all is well."""
    monkeypatch.setattr(selftest, "_journal", lambda unit: f"see: journalctl -u {unit}")

    def check(port, program="ganesha.nfsd", seconds=0.2):
        selftest.check_holder("127.0.0.1", port, program, Deadline(seconds), "nfs-ganesha")

    with listening() as root:
        port = int(root.stdout.readline())
        check(port, Path(PYTHON).name, seconds=60)
        with pytest.raises(HeteroError, match=r"is held by python\S*, not by ganesha.nfsd of root"):
            check(port)
        root.stdin.close()
    with pytest.raises(HeteroError, match="nobody listens on it: see: journalctl -u nfs-ganesha"):
        check(port)
    with listening(65534, tmp_path) as nosy:
        port = int(nosy.stdout.readline())
        with pytest.raises(HeteroError, match=r"is held by ganesha.nfsd \(/.*\) of uid 65534, not by .* nfs-ganesha"):
            check(port)
        nosy.stdin.close()
    # pytest's own removal does not reach the bottom
    subprocess.run(["rm", "-rf", str(tmp_path / ("d" * 200))], check=True)
