# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tilera boards, as Nova's former bare-metal driver booted them: a board asks for its kernel by its own file name, or
has it in its Compact Flash. Once its system is up, tile-monitor gives it network and ssh.

The commands are those of that driver. In addition each command's end is checked, within a time limit, and
tile-monitor's port is first closed to others, unless the wiring opens it. tile_monitor.py knows how tile-monitor is
called.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, ContextManager, List, Tuple

from ...core.errors import BadInput, HeteroError, StepFailed, TimedOut
from ...core.this_node import THIS_NODE
from ...roots.console_log import LOG_WRITTEN, console_log, write_console_log
from . import ssh, ssh_reboot
from .driver import INITRD, KERNEL, NFS_ROOT, RAM_ROOT, BootDriver
from .pxe import Pxe, initrd_name, kernel_name
from .tile_monitor import TileMonitor, TileShell, last_words, passed_on, runs, said

if TYPE_CHECKING:
    import subprocess
    import threading

    from ...core.deadline import Deadline
    from ...site.boards_file import Board
    from .driver import Report, System
    from .proxy_node import BootNode
    from .shell import Shell
    from .ssh_reboot import Refusal

#: A call of tile-monitor: its phase, what is true afterwards, its words.
Step = Tuple[str, str, List[str]]

#: The interface on the users' network, and the port by which tile-monitor acts on a board, both as in Nova's driver.
INTERFACE = "xgbe0"
MONITOR_PORT = 963
#: Value of the wiring's `firewall` that leaves that port open to everybody.
OPEN = "open"
#: Seconds of the longest try to connect, and of the longest command. Nova's driver waited 5 s after each.
CONNECT = 10.0
STEP = 60.0
#: Seconds between two tries to connect, each of which starts a process.
NAP = 0.2

#: Phase → what to do if it fails.
REMEDIES = {
    "monitor": f"look at the board's console, and whether {THIS_NODE} reaches it",
    "network": f"see that the image's kernel has {INTERFACE}, and the image ifconfig",
    "sshd": "see that the image has /usr/sbin/sshd and all it needs",
    "firewall": "see that the image has iptables, or set its firewall to open in tftp_proxy_boards",
    "console": "see that the image has dmesg",
}


class Tilera(Pxe):
    """Boots vmlinux_N by TFTP or from flash, which says where its root is, with network and sshd by tile-monitor."""

    name = "tilera"
    asks_within = BootDriver.asks_within
    by_http = False
    flash = True
    passes_arguments = False  # its firmware boots the kernel as it is, with the arguments that are built into it
    ram_keys = False  # tile-monitor knows none

    def __init__(self, proxy: BootNode) -> None:
        super().__init__(proxy)
        self._booting: set[int] = set()

    # ---- what it boots from

    def entry_paths(self, board: Board) -> list[str]:
        return []

    def entry(self, board: Board, system: System) -> dict[str, str]:
        """Return no boot entry. Raise BadInput, before any power is switched, for what would stop the boot."""
        if self.from_flash(board):
            if system.root != NFS_ROOT:
                what = f"has its kernel in flash, so it cannot boot with its root on {system.root}"
                raise BadInput(what, board.name, "use boot_source nfs, or kernel_source tftp")
        elif self.proxy.kernel_source(board) == "flash":
            what = "its wiring says kernel_source flash, so no kernel is put into its TFTP folder"
            raise BadInput(what, board.name, "correct tftp_proxy_boards, or leave kernel_source out here")
        fault = self._monitor(board).fault()
        if fault:
            raise HeteroError(fault, board.name)
        self._steps(board)
        return {}

    def needed(self, board: Board) -> list[str]:
        return [] if self.from_flash(board) else super().needed(board)

    def files(self, board: Board) -> dict[str, str]:
        return {} if self.from_flash(board) else {kernel_name(board): KERNEL, initrd_name(board): INITRD}

    def self_test(self, board: Board, system: System) -> list[str]:
        fault = self._monitor(board).fault()
        return [*([fault] if fault else []), *super().self_test(board, system)]

    # ---- what it needs once it is up

    def address(self, board: Board) -> str:
        return str(self.proxy.wiring(board).address or board.ip)

    def known_hosts(self, board: Board, host_key: str | None) -> str:
        return ssh.known_hosts_line(self.address(board), host_key)

    def switched(self, board: Board, state: str) -> None:
        if state == "on":
            self._booting.add(board.id)
        else:
            self._booting.discard(board.id)

    def under_way(self, board: Board) -> set[str]:
        self._booting.add(board.id)
        return super().under_way(board)

    def boots_anew(self, board: Board) -> None:
        self._booting.add(board.id)

    def told_to_reboot(
        self, board: Board, system: System, private_key: str, mark: str, deadline: Deadline
    ) -> ContextManager[Refusal]:
        return ssh_reboot.asked(self.address(board), system.host_key, private_key, mark, deadline)

    def alive(self, board: Board, limit: float) -> bool:
        return ssh.alive(self.address(board), limit)

    def answers(
        self, board: Board, system: System, deadline: Deadline, cancelled: threading.Event, report: Report
    ) -> bool:
        """Wait for the board's answer. A board whose boot is followed is first prepared by tile-monitor.

        A system in RAM needs only that. A board that was found on is only asked: what runs there may be anybody's, and
        its network may be in use.
        """
        if board.id in self._booting:
            if not self._connects(board, deadline, cancelled):
                return False
            report("monitor", "tile-monitor connects")
            steps = self._closing(board) if system.root == RAM_ROOT else self._steps(board)
            for phase, text, words in steps:
                if cancelled.is_set():
                    return False
                done = self._step(board, phase, words, deadline)
                if phase == "console":
                    write_console_log(self.proxy, board, done.stdout)
                elif said(done):
                    text += f" (it said: {last_words(done)})"
                report(phase, text)
            if system.root == RAM_ROOT:
                return True
        return ssh.answers(self.address(board), system.host_key, deadline, cancelled)

    def shell(self, board: Board, system: System) -> Shell:
        return TileShell(self._monitor(board))

    def _monitor(self, board: Board) -> TileMonitor:
        return TileMonitor(self.proxy.config.tile_monitor, board.ip, board.name)

    def _connects(self, board: Board, deadline: Deadline, cancelled: threading.Event) -> bool:
        """Wait until tile-monitor runs a command on the board; return False if cancelled."""
        monitor, output = self._monitor(board), ""
        while not deadline.passed:
            if cancelled.is_set():
                return False
            try:
                done = monitor.do(runs(["true"]), deadline.within(CONNECT))
            except TimedOut as error:
                output = error.facts["said"] or output  # the deadline cuts the last one off
            except HeteroError as error:
                raise _failed(board, "monitor", error.what) from error
            else:
                if done.returncode == 0:
                    return True
                output = said(done)
            deadline.nap(NAP)
        last = output.splitlines()[-1] if output else "nothing"
        raise _failed(board, "monitor", f"no connection within {deadline.seconds:.0f} s; it said last: {last}", output)

    def _step(self, board: Board, phase: str, words: list[str], deadline: Deadline) -> subprocess.CompletedProcess[str]:
        """Run one call of tile-monitor, which must succeed."""
        try:
            done = self._monitor(board).do(words, deadline.within(STEP))
        except HeteroError as error:
            raise _failed(board, phase, error.what, error.facts.get("said", ""), words) from error
        if done.returncode:
            text = f"ended with {done.returncode} and said: {last_words(done)}"
            raise _failed(board, phase, text, said(done), words)
        return done

    def _steps(self, board: Board) -> list[Step]:
        """Return (phase, what is true afterwards, words) of each call of tile-monitor, in the order of Nova's driver.
        """
        address = self.address(board)
        network = runs(["ifconfig", INTERFACE, "hw", "ether", board.mac], ["ifconfig", INTERFACE, address])
        log = console_log(self.proxy, board)
        return [
            *self._closing(board),
            ("network", f"{INTERFACE} is {address}, {board.mac}", network),
            ("sshd", "sshd started", runs(["/usr/sbin/sshd"])),
            ("console", LOG_WRITTEN.format(log=log), passed_on("dmesg")),
        ]

    def _closing(self, board: Board) -> list[Step]:
        """Return the step after which nobody else is root on the board by tile-monitor; none if the wiring leaves that
        open.

        The rule is the one that Nova's driver got by user_data.
        """
        wanted = self.proxy.wiring(board).firewall or self.proxy.server
        if wanted == OPEN:
            return []
        friends = self._friends(board, wanted)
        rule = ["iptables", "-A", "INPUT", "-p", "tcp", "!", "-s", friends, "--dport", str(MONITOR_PORT), "-j", "DROP"]
        return [("firewall", f"port {MONITOR_PORT} is closed to all but {friends}", runs(rule))]

    def _friends(self, board: Board, wanted: str) -> str:
        """Return the only addresses that may use tile-monitor on the board; raise BadInput if this node is not among
        them.
        """
        try:
            network = ipaddress.ip_network(str(wanted))
        except ValueError as error:
            remedy = f"correct firewall in tftp_proxy_boards, or set it to {OPEN}"
            raise BadInput(f"its firewall {wanted!r} is no address or network", board.name, remedy) from error
        if ipaddress.ip_address(self.proxy.server) not in network:
            what = f"its firewall {wanted} would keep the proxy node ({self.proxy.server}) out, too"
            raise BadInput(what, board.name, "name an address or network with the proxy node in it")
        return str(wanted)


def _failed(board: Board, phase: str, text: str, output: str = "", words: list[str] | None = None) -> StepFailed:
    what = f"tile-monitor, step {phase}: {text}"
    return StepFailed(phase, what, board.name, REMEDIES[phase], step=phase, command=words, output=output)
