# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot entry of a PXE board, and the self-test's TFTP client against servers that work, refuse, or are dead.

Tests drivers/boot/ssh_shell.py, drivers/boot/tftp_client.py.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import phases, pxe, tftp_client
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.driver import (
    DISK_ROOT,
    NFS_ROOT,
    RAM_ROOT,
    System,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.pxe import Pxe
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.registry import BootDrivers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.tilera import Tilera
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.uboot import Uboot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nfs import exporter

#: nfs-ganesha takes no access control lists: with them cp -a fails on each board.
ROOT, OPTIONS = "root=/dev/nfs nfsroot=127.0.0.1:/tftpboot/fs_", "vers=3,tcp,nolock,noacl rw"


@dataclass
class Image:
    cmdline: str = "quiet"
    initrd: str | None = "/images/x/initrd"

    def initrd_for(self, root):
        return self.initrd


def test_entry_with_initrd(site):
    """A wrong line here and no board boots: kernel, root and initrd are asked for by these names."""
    site.config["boards"]["0"]["cmdline"] = "console=ttyS0"
    site.write()
    with site.proxy() as proxy:
        entry = Pxe(proxy).entry(proxy.board(0), System(Image()))
    assert entry == {
        str(site.entry(0)): "#!ipxe\n"
        f"kernel vmlinux_0 {ROOT}0,{OPTIONS} ip=dhcp quiet console=ttyS0"
        " initrd=initrd_0\n"
        "initrd initrd_0\n"
        "boot\n"
    }


def test_entry_without_initrd(site):
    """A kernel with NFS root built in needs no initrd; asking for a missing file would stop its boot."""
    with site.proxy() as proxy:
        entry = Pxe(proxy).entry(proxy.board(1), System(Image(cmdline="", initrd=None)))
    assert entry[str(site.entry(1))] == (f"#!ipxe\nkernel vmlinux_1 {ROOT}1,{OPTIONS} ip=dhcp\nboot\n")


def test_drivers_by_wiring_and_by_name(site):
    """A misspelt driver would show only when a board does not boot."""
    del site.config["boards"]["1"]["driver"]
    site.config["boards"]["2"]["driver"] = "uboat"
    site.write()
    with site.proxy() as proxy:
        drivers = BootDrivers(proxy)
        assert drivers.of(proxy.board(0)).name == "fake"
        assert drivers.of(proxy.board(1)).name == "tilera"
        assert drivers.of(proxy.board(0)) is drivers.of(proxy.board(3))
        assert BootDrivers(proxy, "pxe").of(proxy.board(0)).name == "pxe"
        with pytest.raises(BadInput, match=r"uboat.*known: fake, pxe, tilera, uboot"):
            drivers.of(proxy.board(2))


class TftpServer(threading.Thread):
    """Serves one file as RFC 1350 says, from another port; `drop` loses the first packet of each block."""

    def __init__(self, content=None, refuse=False, drop=False):
        super().__init__(daemon=True)
        self.content, self.refuse, self.drop = content, refuse, drop
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.sock.settimeout(60)
        self.port = self.sock.getsockname()[1]
        self.asked = []

    def run(self):
        with self.sock:
            request, peer = self.sock.recvfrom(600)
            self.asked.append(request)
            if self.content is None and not self.refuse:
                return
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as transfer:
                transfer.bind(("127.0.0.1", 0))
                transfer.settimeout(0.7)
                if self.refuse:
                    transfer.sendto(struct.pack("!HH", 5, 1) + b"File not found\0", peer)
                    return
                blocks = [self.content[at : at + 512] for at in range(0, len(self.content), 512)]
                if len(self.content) % 512 == 0:
                    blocks.append(b"")
                for number, block in enumerate(blocks, 1):
                    self.send(transfer, struct.pack("!HH", 3, number) + block, peer)

    def send(self, transfer, packet, peer):
        for attempt in range(8):
            if not (self.drop and attempt == 0):
                transfer.sendto(packet, peer)
            try:
                if transfer.recv(600) == b"\0\4" + packet[2:4]:
                    return
            except socket.timeout:
                continue


@pytest.mark.parametrize("size", [0, 1, 511, 512, 1300])
def test_tftp_get(size):
    """The self-test would blame a working proxy, and no board would ever be blamed."""
    content = bytes(range(256)) * 6
    server = TftpServer(content[:size])
    server.start()
    assert tftp_client.get("127.0.0.1", "boot.ipxe", Deadline(60), port=server.port) == content[:size]
    assert server.asked == [b"\0\1boot.ipxe\0octet\0"]
    server.join(5)


def test_tftp_get_asks_again_for_what_is_lost():
    """One lost packet on the proxy's own network is no fault of the proxy."""
    server = TftpServer(b"x" * 700, drop=True)
    server.start()
    assert tftp_client.get("127.0.0.1", "boot.ipxe", Deadline(60), port=server.port) == b"x" * 700
    server.join(5)


def test_tftp_get_says_what_the_server_said():
    """ "File not found" tells what to repair; "failed" does not."""
    server = TftpServer(refuse=True)
    server.start()
    with pytest.raises(HeteroError, match="File not found"):
        tftp_client.get("127.0.0.1", "boot.ipxe", Deadline(60), port=server.port)
    server.join(5)


def test_tftp_get_ends_at_the_deadline():
    """A dead xinetd would hang the verdict that is to name it."""
    server = TftpServer()
    server.start()
    with pytest.raises(TimedOut, match="xinetd"):
        tftp_client.get("127.0.0.1", "boot.ipxe", Deadline(0.6), port=server.port)
    server.join(5)


def test_a_near_board_is_told_the_proxys_mac(site):
    """A running board's root would be anybody's who says that the proxy's address is theirs."""
    mac = Path("/sys/class/net/lo/address").read_text().strip()
    for network, words in (("10.0.2.0/255.255.255.0", f" hetero.proxy=127.0.0.1,{mac} ip=dhcp"), ("10.0.3.0/24", "")):
        site.config.update(pinned=True, interface="lo", network=network)
        site.write()
        with site.proxy() as proxy:
            entry = Pxe(proxy).entry(proxy.board(0), System(Image()))[str(site.entry(0))]
        assert words in entry
        assert ("hetero.proxy" in entry) == bool(words)


def test_a_proxy_whose_nginx_does_not_serve_is_at_fault(site):
    """Lost: boards that are blamed for what nginx does not give them; or a proxy that is, for boards without it."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    for given, driver, named in ((port, Pxe, True), (port, Uboot, False), (port, Tilera, False), (0, Pxe, False)):
        site.config["boot_http"] = given
        site.write()
        with site.proxy() as proxy:
            found = driver(proxy).self_test(proxy.board(0), System(None, DISK_ROOT))
        faults = [text for text in found if text.startswith("HTTP ")]
        assert bool(faults) == named, (driver, found)
        if named:
            what = "no answer (Connection refused): is hetero-http running"
            assert f"HTTP 127.0.0.1:{port}/boot.ipxe: {what}" in faults[0]


class NfsServer(threading.Thread):
    """Takes connections as a server does, or as one that may have no more: `says` is written, None for waiting."""

    def __init__(self, says):
        super().__init__(daemon=True)
        self.says, self.over = says, threading.Event()
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]
        self.asked = b""

    def run(self):
        with self.sock, self.sock.accept()[0] as peer:
            self.asked = peer.recv(200)
            if self.says is None:
                self.over.wait(60)
            else:
                peer.sendall(self.says)


#: As nfs-ganesha 4.3 has answered.
DONE = struct.pack("!7I", 0x80000018, 0x68657465, 1, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("says", "fault"),
    [
        (DONE, None),
        (None, "does not answer (timed out)"),
        (b"", "closes each connection"),
        (b"HTTP/1.0 400 Bad Request", "answers, and not as an NFS server does"),
    ],
)
def test_a_proxy_whose_nfs_takes_connections_and_does_not_answer_is_at_fault(site, monkeypatch, says, fault):
    """Lost: an image that is called one that does not boot, while a tenant holds all connections to NFS."""
    for limit in (0.5, 20):  # a busy machine needs longer to say what it says
        server = NfsServer(says)
        monkeypatch.setattr(phases, "NFS_PORT", server.port)
        monkeypatch.setattr(pxe, "SELF_TEST", limit)
        server.start()
        try:
            with site.proxy() as proxy:
                found = Pxe(proxy).self_test(proxy.board(0), System(None))
            faults = [text for text in found if text.startswith("NFS 127.0.0.1: ")]
        finally:
            server.over.set()
            server.join(5)
        if says is None or "timed out" not in str(faults):
            break
    assert server.asked == struct.pack("!11I", 0x80000028, 0x68657465, 0, 2, 100003, 3, 0, 0, 0, 0, 0)
    assert (fault is None and faults == []) or (len(faults) == 1 and fault in faults[0])


@pytest.mark.skipif(os.geteuid() != 0, reason="another's connections need root: run as root")
@pytest.mark.parametrize("port", exporter.PORTS)
def test_what_a_tenant_left_open_to_nfs_goes_with_its_export(port):
    """Lost: the boot of a board's next tenant, whose last one left as many connections as a board may have."""
    kept = []
    with socket.create_server(("127.0.0.1", port)) as nfs, socket.create_server(("127.0.0.1", 5000)) as other:
        for server in (nfs, other):
            kept += [socket.create_connection(server.getsockname(), 2), server.accept()[0]]
        exporter.let_go("127.0.0.2")
        kept[1].sendall(b"goes on")
        assert kept[0].recv(99) == b"goes on"
        exporter.let_go("127.0.0.1")
        with pytest.raises(ConnectionError):
            kept[0].recv(99)
        kept[3].sendall(b"goes on")
        assert kept[2].recv(99) == b"goes on"
    for sock in kept:
        sock.close()


@pytest.mark.parametrize("driver", [Pxe, Uboot, Tilera])
@pytest.mark.parametrize(("root", "asked"), [(NFS_ROOT, True), (DISK_ROOT, False), (RAM_ROOT, False)])
def test_an_nfs_server_is_asked_for_boards_that_mount_from_it_only(site, driver, root, asked):
    """Lost: who is to blame: a board whose root lies on its disk or in RAM failed, and NFS, which it does not need."""
    with site.proxy() as proxy:
        faults = "\n".join(driver(proxy).self_test(proxy.board(0), System(None, root)))
    assert ("NFS 127.0.0.1" in faults) is asked


def test_self_test_names_each_fault(site):
    """Boards would be quarantined for a proxy whose servers are down."""
    with site.proxy() as proxy:
        faults = Pxe(proxy).self_test(proxy.board(0), System(None))
    text = "\n".join(faults)
    assert f"{site.entry(0)}: is missing" in text
    assert "vmlinux_0: is missing" in text
    assert "TFTP 127.0.0.1:boot.ipxe" in text
    assert "NFS 127.0.0.1: port 2049 does not answer" in text
