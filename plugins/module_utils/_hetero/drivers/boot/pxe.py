# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards that boot by PXE: an iPXE script for each MAC address in the board's TFTP folder, with kernel and initrd
beside it.

The script is standard iPXE, and its kernel command line standard Linux nfsroot. Its names have no server: iPXE fetches
them from where it has the script, by HTTP or TFTP. images/ puts kernel and initrd there, and the servers decide which
board may fetch what.
"""

from __future__ import annotations

import ipaddress
import os
from typing import TYPE_CHECKING, Any, Callable, Collection, ContextManager, Iterable, cast

from ...core.deadline import Deadline
from ...core.errors import HeteroError
from ...core.plays import play
from ...nfs.exports import board_export
from ...roots.board_parts import nfs_server_of, root_of_board
from ...roots.ram import own_key
from ...site.proxy_config import SET_UP
from . import foreign_servers, http_client, neighbours, nfs_client, phases, ssh, tftp_client
from .driver import DISK_ROOT, ENTRY, INITRD, KERNEL, NFS_ROOT, RAM_ROOT, BootDriver
from .ssh_shell import SshShell

if TYPE_CHECKING:
    import threading

    from ...images.store import Image
    from ...nfs.exporter import Export, Exporter
    from ...site.boards_file import Board
    from ...site.proxy_config import Wire
    from .driver import Report, Seen, System
    from .shell import Shell

#: Mount options of the root in the kernel's words (Documentation/admin-guide/nfs/nfsroot.rst).
NFS_OPTIONS = "vers=3,tcp,nolock"
WITHOUT_ACLS = "noacl"
#: First words of a kernel's command line, by the place of its root.
ON_NFS, IN_RAM = "root=/dev/nfs", "root=/dev/ram0"
#: Without it kernels and initrds mount a root read-only, and only a line of its fstab would make that otherwise.
WRITABLE = "rw"
#: Word of the kernel's command line with the MAC of the proxy's address.
PIN = "hetero.proxy"
#: Seconds that the self-test gives each server; both answer in milliseconds.
SELF_TEST = 2.0


def entry_name(board: Board) -> str:
    """Return the file name of the boot entry, as pxelinux and U-Boot name theirs: hardware type 01, MAC address."""
    return f"01-{board.mac.replace(':', '-')}.ipxe"


def kernel_name(board: Board) -> str:
    return f"vmlinux_{board.id}"


def initrd_name(board: Board) -> str:
    return f"initrd_{board.id}"


def command_line(root: Iterable[str], image: Image, wiring: Wire) -> str:
    """Return the kernel's command line: the root first, then the words of the image and of the board's wiring."""
    return " ".join([*root, "ip=dhcp", *(extra for extra in (image.cmdline, wiring.cmdline) if extra)])


class Pxe(BootDriver):
    """iPXE over HTTP where the proxy serves it, else over TFTP; root over NFS."""

    name = "pxe"
    #: Whether firmware of this kind loads kernels by HTTP.
    by_http = True
    #: The self-test of a server with much memory, before its network card's turn, takes minutes.
    asks_within = 180.0
    #: Every proxy serves this file to all boards. It leads each board to its own entry.
    shared_file = "boot.ipxe"

    def entry_paths(self, board: Board) -> list[str]:
        return [os.path.join(self.proxy.config.tftp_root, board.ip, entry_name(board))]

    def entry(self, board: Board, system: System) -> dict[str, str]:
        image = cast("Image", system.image)
        arguments = self.arguments(board, system)
        lines = ["#!ipxe"]
        if image.initrd_for(system.root):
            # A kernel that EFI starts finds its initrd by this argument (ipxe.org/cmd/initrd).
            lines += [
                f"kernel {kernel_name(board)} {arguments} initrd={initrd_name(board)}",
                f"initrd {initrd_name(board)}",
            ]
        else:
            lines += [f"kernel {kernel_name(board)} {arguments}"]
        return {path: "\n".join(lines + ["boot"]) + "\n" for path in self.entry_paths(board)}

    def arguments(self, board: Board, system: System) -> str:
        """Return the kernel's command line for a System."""
        root = [*self._root(board, system), *self._pin(board)]
        return command_line(root, cast("Image", system.image), self.proxy.wiring(board))

    def files(self, board: Board) -> dict[str, str]:
        return {entry_name(board): ENTRY, kernel_name(board): KERNEL, initrd_name(board): INITRD}

    def needed(self, board: Board) -> list[str]:
        """Return the paths of the files that the board must fetch to boot."""
        folder = os.path.join(self.proxy.config.tftp_root, board.ip)
        return [*self.entry_paths(board), os.path.join(folder, kernel_name(board))]

    def watch(self, boards: Collection[Board], seen: Seen) -> ContextManager[Any]:
        config, server = self.proxy.config, self.proxy.server
        near = frozenset(board.id for board in boards if config.interface and self._near(board))
        wire = phases.Wire(config.interface, near, config.pinned, config.boot_http)
        return phases.Watcher(boards, seen, server, server if config.dhcp else None, wire)

    def newcomers(self, boards: Collection[Board], told: Callable[[str], None]) -> ContextManager[Any]:
        return phases.Newcomers(boards, told, self.proxy.config.interface)

    def has_root(self, board: Board) -> bool:
        return phases.nfs_connected(board.ip)

    def answers(
        self, board: Board, system: System, deadline: Deadline, cancelled: threading.Event, report: Report
    ) -> bool:
        host_key = system.host_key
        if system.console_key:
            host_key = system.console_key.wait(deadline, cancelled)
        return host_key is not None and ssh.answers(board.ip, host_key, deadline, cancelled)

    def known_hosts(self, board: Board, host_key: str | None) -> str:
        return ssh.known_hosts_line(board.ip, host_key)

    def shell(self, board: Board, system: System) -> Shell:
        if system.root != RAM_ROOT:
            return super().shell(board, system)
        host_key = system.console_key.host_key if system.console_key else system.host_key
        return SshShell(board.name, board.ip, host_key, own_key(self.proxy))

    def self_test(self, board: Board, system: System) -> list[str]:
        server = self.proxy.server
        faults = self._dhcp_faults(board, server)
        faults += [
            f"{path}: is missing: run board_image for {board.name}"
            for path in self.needed(board)
            if not os.path.exists(path)
        ]
        try:
            if self.needed(board) and not tftp_client.get(server, self.shared_file, Deadline(SELF_TEST)):
                thing = f"TFTP {server}:{self.shared_file}"
                faults.append(f"{thing}: is empty: run {play('proxy')}")
        except HeteroError as error:
            faults.append(str(error))
        faults += self._http_faults(board, server)
        return faults + (self._nfs_faults(board, server) if system.root == NFS_ROOT else [])

    def strangers(self, board: Board, seen: Collection[tuple[str, str]]) -> list[str]:
        config = self.proxy.config
        if not config.interface:
            return super().strangers(board, seen)
        return foreign_servers.named(self.proxy.server, config.interface, board.mac if config.dhcp else None, seen)

    def _near(self, board: Board) -> bool:
        """Return whether the board is known to be on the proxy's own network."""
        network = self.proxy.config.network
        return bool(network) and ipaddress.IPv4Address(board.ip) in ipaddress.IPv4Network(network)

    def _pin(self, board: Board) -> list[str]:
        """Return the word with the proxy's MAC, from which an initrd can make a permanent neighbour entry."""
        config = self.proxy.config
        if not (config.pinned and self._near(board)):
            return []
        return [f"{PIN}={self.proxy.server},{neighbours.interface_mac(config.interface)}"]

    def _dhcp_faults(self, board: Board, server: str) -> list[str]:
        """Return what is wrong with the answer of the proxy's DHCP for this board's MAC."""
        if not (self.proxy.config.dhcp and self._near(board)):
            return []
        try:
            given = neighbours.own_answer(server, board.mac, Deadline(SELF_TEST))
        except OSError as error:
            return [f"DHCP {server}: cannot be asked ({error})"]
        if given == board.ip:
            return []
        what = f"it gives {board.name} ({board.mac}) {given or 'no address'} instead of {board.ip}"
        return [f"DHCP {server}: {what}: see journalctl -u hetero-dhcp; {SET_UP}"]

    def _http_faults(self, board: Board, server: str) -> list[str]:
        """Return what is wrong with nginx, where boards of this kind are given files by it."""
        port = self.proxy.config.boot_http
        if not (self.by_http and port and self.needed(board)):
            return []
        try:
            http_client.get(server, port, self.shared_file, Deadline(SELF_TEST))
        except HeteroError as error:
            return [str(error)]
        return []

    def _nfs_faults(self, board: Board, server: str) -> list[str]:
        try:
            nfs_client.ask(server, phases.NFS_PORT, Deadline(SELF_TEST))
        except HeteroError as error:
            return [str(error)]
        return self._export_fault(board)

    def _root(self, board: Board, system: System) -> list[str]:
        """Return the words of the kernel's command line that say where its root is."""
        if system.root == RAM_ROOT:
            return [IN_RAM]
        if system.root == DISK_ROOT:
            return [f"root={self.proxy.root_partition(board)}", "rootfstype=ext4", WRITABLE]
        server, export = self._export(board)
        options = NFS_OPTIONS if server.acls else f"{NFS_OPTIONS},{WITHOUT_ACLS}"
        return [ON_NFS, f"nfsroot={self.proxy.server}:{export.pseudo},{options}", WRITABLE]

    def _export(self, board: Board) -> tuple[Exporter, Export]:
        """Return (NFS server, the board's export there)."""
        server = nfs_server_of(self.proxy)
        return server, board_export(server, board, root_of_board(self.proxy, board.id).path)

    def _export_fault(self, board: Board) -> list[str]:
        server, wanted = self._export(board)
        try:
            found = server.get(wanted.id)
        except HeteroError as error:
            return [str(error)]
        return (
            []
            if found == wanted
            else [f"NFS export {wanted.pseudo}: is not there as it should be: run board_image for {board.name}"]
        )
