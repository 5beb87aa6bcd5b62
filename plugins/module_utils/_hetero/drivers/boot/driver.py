# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface of a boot driver: what a board asks for while it boots, what of that can be seen, and when it is up.

Power is not its business (power/), nor are states and claims (boards/). One driver object serves all its boards of one
call, and is used from several threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Collection, ContextManager

from ...core.errors import BadInput
from ...roots.console_key import ConsoleKey
from . import ssh, ssh_reboot

if TYPE_CHECKING:
    import threading

    from ...core.deadline import Deadline
    from ...images.store import Image
    from ...site.boards_file import Board
    from .proxy_node import BootNode
    from .shell import Shell
    from .ssh_reboot import Refusal

#: What a watch calls: board id, kind, name, when (time.monotonic()), who sent it.
Seen = Callable[[int, str, str, float, str], None]
#: What is called with (phase, text) when a step of a driver's own is done.
Report = Callable[[str, str], None]

#: Kinds of things seen of a boot, in the order in which they come.
FIRMWARE = "firmware"  #: the firmware asks for an address
TFTP = "tftp"  #: a file is asked for; the name goes with it
SYSTEM = "system"  #: the booted kernel asks for an address, so all files are there
NFS = "nfs"  #: the root is being mounted
#: Kinds of things seen that are no part of a boot: another machine stands in the proxy's place.
OTHER_DHCP = "other DHCP server"  #: the board follows it, or it answered; its address goes with it
OTHER_ADDRESS = "other holder of the proxy's address"  #: it was announced; the MAC goes with it
STRANGERS = (OTHER_DHCP, OTHER_ADDRESS)

#: Roles of the files of a boot, as people read them.
ENTRY, KERNEL, INITRD = "boot entry", "kernel", "initrd"

#: Where the root of a system lies: NFS and disk are a claim's boot sources (the blueprint's options 1 and 2); RAM is
#: for the proxy's own work on a board (unpacking to its disk, wiping it, looking after it).
NFS_ROOT, DISK_ROOT, RAM_ROOT = "nfs", "disk", "ram"


@dataclass(frozen=True)
class System:
    """What a board is to boot, and the ssh host key with which it proves that it did.

    :param image: images.store.Image: its `cmdline`, and `initrd`, None where it has none; None for a board of which
        only the answer is awaited.
    :param root: NFS_ROOT, DISK_ROOT or RAM_ROOT.
    :param host_key: the public key (OpenSSH's line without comment); None where nothing was made ready yet.
    :param console_key: images.console_key.ConsoleKey of a system that makes its host key itself and says it on its
        console.
    """

    image: Image | None
    root: str = NFS_ROOT
    host_key: str | None = None
    console_key: ConsoleKey | None = None


class BootDriver(ABC):
    """How boards of one kind boot.

    :param proxy: boards.proxy.Proxy: the node whose boards these are.
    """

    name = ""
    #: Whether boards of this kind may have their kernel in a flash memory of their own.
    flash = False
    #: What a call says of where kernels come from: "tftp", "flash", or "auto" for what each board's wiring says.
    kernel_source = "auto"

    def __init__(self, proxy: BootNode) -> None:
        self.proxy = proxy

    def from_flash(self, board: Board) -> bool:
        """Whether the board's kernel lies in its own flash memory, so that it is not asked for."""
        source = self.proxy.kernel_source(board) if self.kernel_source == "auto" else self.kernel_source
        return source == "flash"

    def address(self, board: Board) -> str:
        """The address at which its users reach it."""
        return board.ip

    @abstractmethod
    def entry(self, board: Board, system: System) -> dict[str, str]:
        """The boot entry wanted for a System.

        :returns: {path: text}; empty for a driver that needs none.
        """

    @abstractmethod
    def entry_paths(self, board: Board) -> list[str]:
        """Where the board's boot entry lies, to remove it; the image need not be there any more."""

    @abstractmethod
    def files(self, board: Board) -> dict[str, str]:
        """{file name asked for: its role} of the board's own files."""

    @abstractmethod
    def watch(self, boards: Collection[Board], seen: Seen) -> ContextManager[Any]:
        """A context manager; inside, `seen(board_id, kind, name, at, sender)` is called from another thread for each
        thing seen.

        It must be entered before power is switched on, so that nothing is missed. `at` is time.monotonic(); `sender`
        says who asked, as text: a request that is sent again, because no answer came, has the same.
        """

    def under_way(self, board: Board) -> set[str]:
        """Kinds already reached by a boot that another process began, which is followed from now on; an empty set when
        that cannot be told.
        """
        return {NFS} if self.has_root(board) else set()

    def has_root(self, board: Board) -> bool:
        """Whether it has its root from here mounted just now; False when that cannot be told."""
        return False

    def switched(self, board: Board, state: str) -> None:
        """Told when the board's outlet was read back as "on" or "off"; a driver that drives the board begins here."""

    def boots_anew(self, board: Board) -> None:
        """Told when the boot request of a board was seen that was told to reboot; a driver that drives the board begins
        here, and not before: what answers until then is the system that was there.
        """

    @abstractmethod
    def answers(
        self, board: Board, system: System, deadline: Deadline, cancelled: threading.Event, report: Report
    ) -> bool:
        """Wait until the board answers as the system that it is to boot; a driver that must act on it first does.

        :param cancelled: threading.Event that ends the wait early.
        :param report: called with (phase, text) when a step of the driver's own is done.
        :returns: True when its host key was proven; False when the deadline passed or it was cancelled.
        :raises WrongHostKey: something answers at its address with another key.
        :raises StepFailed: what the driver must do on the board did not succeed.
        """

    @abstractmethod
    def known_hosts(self, board: Board, host_key: str | None) -> str:
        """The line of a known_hosts file for this board."""

    def shell(self, board: Board, system: System) -> Shell:
        """The shell.Shell of a board that runs a system whose root is in RAM.

        :raises BadInput: boards of this kind have none.
        """
        raise BadInput(f"boot driver {self.name} has no way to act on a board", board.name, "use boot_source nfs")

    def told_to_reboot(
        self, board: Board, system: System, private_key: str, mark: str, deadline: Deadline
    ) -> ContextManager[Refusal]:
        """A context manager: the running board was told to reboot; see ssh_reboot.asked, which this is.

        :raises HeteroError: it could not be told.
        """
        return ssh_reboot.asked(board.ip, system.host_key, private_key, mark, deadline)

    def alive(self, board: Board, limit: float) -> bool:
        """Whether something answers at the board's address now, within `limit` seconds."""
        return ssh.alive(board.ip, limit)

    @abstractmethod
    def self_test(self, board: Board) -> list[str]:
        """What is wrong with the proxy's own part of this board's boot, as texts; an empty list when it works."""

    def strangers(self, board: Board, seen: Collection[tuple[str, str]]) -> list[str]:
        """Other machines that stand in the proxy's place towards this board, as texts that name them.

        :param seen: (kind, name) of STRANGERS seen during the boot.
        """
        return [f"{kind}: {name}" for kind, name in seen]
