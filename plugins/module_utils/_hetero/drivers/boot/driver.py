# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface of a boot driver: what a board asks for while it boots, what of that can be seen, and when it is up.

Drivers do not switch power (power/) and know no states and claims (boards/). One driver object serves all its boards in
one call, from several threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Collection, ContextManager

from ...core.errors import BadInput
from ...roots.console_key import ConsoleKey
from ...site import boot_sources
from . import ssh, ssh_reboot

if TYPE_CHECKING:
    import threading

    from ...core.deadline import Deadline
    from ...images.store import Image
    from ...site.boards_file import Board
    from .proxy_node import BootNode
    from .shell import Shell
    from .ssh_reboot import Refusal

#: Is called by a watch with board id, kind, name, time (time.monotonic()) and sender.
Seen = Callable[[int, str, str, float, str], None]
#: Is called with (phase, text) when a step that only this driver has is done.
Report = Callable[[str, str], None]

#: Kinds of things seen of a boot, in their order.
FIRMWARE = "firmware"  #: the firmware asks for an address
TFTP = "tftp"  #: a file is asked for; the name goes with it
HTTP = "http"  #: a file is asked for by HTTP; the name goes with it. For a boot it is as good as one by TFTP
SYSTEM = "system"  #: the booted kernel asks for an address, so all files are there
NFS = "nfs"  #: the root is being mounted
#: Kinds of things seen that do not belong to a boot: another machine stands in the proxy's place.
OTHER_DHCP = "other DHCP server"  #: the board follows it, or it answered; its address goes with it
OTHER_ADDRESS = "other holder of the proxy's address"  #: it was announced; the MAC goes with it
STRANGERS = (OTHER_DHCP, OTHER_ADDRESS)
#: Kinds of requests for files.
FILES = (TFTP, HTTP)

#: Roles of the files of a boot, for people.
ENTRY, KERNEL, INITRD = "boot entry", "kernel", "initrd"

#: Where the root of a system lies. NFS and disk are a claim's boot sources; RAM is for the proxy's own work on a board
#: (unpacking to its disk, wiping it, looking after it).
NFS_ROOT, DISK_ROOT, RAM_ROOT = boot_sources.NFS, boot_sources.DISK, boot_sources.RAM


@dataclass(frozen=True)
class System:
    """What a board is to boot, and the ssh host key by which it proves that it did.

    :param image: its `cmdline` and `initrd_for` are used; None for a board whose answer alone is awaited.
    :param root: NFS_ROOT, DISK_ROOT or RAM_ROOT.
    :param host_key: the public key (OpenSSH's line without comment); None if nothing was prepared yet.
    :param console_key: for a system that makes its host key itself and says it on its console.
    """

    image: Image | None
    root: str = NFS_ROOT
    host_key: str | None = None
    console_key: ConsoleKey | None = None


class BootDriver(ABC):
    """How boards of one kind boot.

    :param proxy: the node whose boards these are.
    """

    name = ""
    #: Whether boards of this kind may have their kernel in a flash memory.
    flash = False
    #: Whether words for the kernel's command line (`cmdline` of an image or of a board's wiring) reach the kernel. If
    #: they do not, an image or wiring that has some is refused before anything is claimed (images/delivery.py).
    passes_arguments = True
    #: Whether a board of this kind proves, from RAM, an ssh host key that its initrd brought or said. If it does not,
    #: its RAM image needs no initrd, and nothing says that a key was proven.
    ram_keys = True
    #: Seconds after power on within which firmware makes its first request, where the board's wiring does not say it: a
    #: board's loader is there within seconds, and some count down before.
    asks_within = 60.0
    #: Where this call says that kernels come from: "tftp", "flash", or "auto" for what each board's wiring says.
    kernel_source = "auto"

    def __init__(self, proxy: BootNode) -> None:
        self.proxy = proxy

    def from_flash(self, board: Board) -> bool:
        """Return whether the board's kernel lies in its own flash memory, so that the board does not ask for it."""
        source = self.proxy.kernel_source(board) if self.kernel_source == "auto" else self.kernel_source
        return source == "flash"

    def request_limit(self, board: Board) -> float:
        """Return how many seconds after power on the board's first request is awaited."""
        given = self.proxy.wiring(board).request_timeout
        return self.asks_within if given is None else given

    def address(self, board: Board) -> str:
        """Return the address at which users reach the board."""
        return board.ip

    @abstractmethod
    def entry(self, board: Board, system: System) -> dict[str, str]:
        """Return the boot entry for a System.

        :returns: {path: text}; empty if boards of this kind need none.
        """

    @abstractmethod
    def entry_paths(self, board: Board) -> list[str]:
        """Return the paths of the board's boot entry, by which it is removed. The image need not exist any more."""

    @abstractmethod
    def files(self, board: Board) -> dict[str, str]:
        """Return {name: role} of the board's own files that it asks for."""

    @abstractmethod
    def watch(self, boards: Collection[Board], seen: Seen) -> ContextManager[Any]:
        """Return a context manager in which `seen(board_id, kind, name, at, sender)` is called for each thing seen.

        The calls come from another thread. It must be entered before power is switched on, so that nothing is missed.
        `at` is time.monotonic(). `sender` is a text that names the request: one that is sent again, because no answer
        came, has the same.
        """

    def newcomers(self, boards: Collection[Board], told: Callable[[str], None]) -> ContextManager[Any]:
        """Return a context manager in which `told(mac)` is called for each machine that is none of the boards, and asks
        for an address as one that boots does. By default nobody is told.
        """
        return nullcontext()

    def under_way(self, board: Board) -> set[str]:
        """Return the kinds that a boot has reached which another process began and which is followed from now on.

        :returns: an empty set if that cannot be told.
        """
        return {NFS} if self.has_root(board) else set()

    def has_root(self, board: Board) -> bool:
        """Return whether the board has its root mounted from this node now; False if that cannot be told."""
        return False

    def switched(self, board: Board, state: str) -> None:
        """Note that the board's outlet was read back as "on" or "off". A driver that acts on the board begins here."""

    def boots_anew(self, board: Board) -> None:
        """Note that a board that was told to reboot asked for its boot. A driver that acts on the board begins here.

        Before this call, the system that answers is still the old one.
        """

    @abstractmethod
    def answers(
        self, board: Board, system: System, deadline: Deadline, cancelled: threading.Event, report: Report
    ) -> bool:
        """Wait until the board answers as the system that it is to boot. A driver that must act on it first does so.

        :param cancelled: ends the wait early.
        :param report: is called with (phase, text) when a step that only this driver has is done.
        :returns: True if its host key was proven; False if the deadline passed or the wait was cancelled.
        :raises WrongHostKey: something answers at its address with another key.
        :raises StepFailed: what the driver must do on the board did not succeed.
        """

    @abstractmethod
    def known_hosts(self, board: Board, host_key: str | None) -> str:
        """Return the lines of a known_hosts file for this board."""

    def shell(self, board: Board, system: System) -> Shell:
        """Return the Shell of a board that runs a system whose root is in RAM.

        :raises BadInput: boards of this kind have none.
        """
        raise BadInput(f"boot driver {self.name} has no way to act on a board", board.name, "use boot_source nfs")

    def told_to_reboot(
        self, board: Board, system: System, private_key: str, mark: str, deadline: Deadline
    ) -> ContextManager[Refusal]:
        """Return a context manager that sends the running board the reboot request over ssh (ssh_reboot.asked).

        :raises HeteroError: it could not be told.
        """
        return ssh_reboot.asked(board.ip, system.host_key, private_key, mark, deadline)

    def alive(self, board: Board, limit: float) -> bool:
        """Return whether something answers at the board's address within `limit` seconds."""
        return ssh.alive(board.ip, limit)

    @abstractmethod
    def self_test(self, board: Board, system: System) -> list[str]:
        """Return what is wrong with the proxy's own part of this board's boot, as texts; an empty list if it works.

        :param system: what the board was to boot. Only one with its root on the proxy needs the proxy's NFS.
        """

    def strangers(self, board: Board, seen: Collection[tuple[str, str]]) -> list[str]:
        """Return texts that name other machines that stand in the proxy's place towards this board.

        :param seen: (kind, name) of STRANGERS seen during the boot.
        """
        return [f"{kind}: {name}" for kind, name in seen]
