# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards whose firmware is U-Boot: an extlinux file for each MAC address in the board's TFTP folder, for `pxe get`.

Kernel (for 64-bit ARM the plain `Image`), initrd, NFS root and what is seen of a boot are as for PXE boards.
uboot_script.py is for a U-Boot that does not look for such files by itself.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from .driver import ENTRY, INITRD, KERNEL, BootDriver
from .pxe import Pxe, initrd_name, kernel_name

if TYPE_CHECKING:
    from ...images.store import Image
    from ...site.boards_file import Board
    from .driver import System

#: The folder in which U-Boot and pxelinux look (U-Boot, doc/README.pxe, "pxe get").
FOLDER = "pxelinux.cfg"


def entry_name(board: Board) -> str:
    """Return the name of the boot entry: hardware type 01, MAC address.

    With `pxeuuid` set U-Boot first tries another one.
    """
    return f"01-{board.mac.replace(':', '-')}"


class Uboot(Pxe):
    """Boots by U-Boot's `pxe boot` over TFTP, with the root over NFS."""

    name = "uboot"
    by_http = False
    asks_within = BootDriver.asks_within
    shared_file = "boot.scr.uimg"

    def entry_paths(self, board: Board) -> list[str]:
        return [os.path.join(self.proxy.config.tftp_root, board.ip, FOLDER, entry_name(board))]

    def entry(self, board: Board, system: System) -> dict[str, str]:
        image = cast("Image", system.image)
        # Names are relative to the folder of pxelinux.cfg. No fdt: U-Boot passes its own device tree on
        # (doc/README.pxe).
        lines = ["default hetero", "label hetero", f"  kernel {kernel_name(board)}"]
        lines += [f"  initrd {initrd_name(board)}"] if image.initrd_for(system.root) else []
        lines += [f"  append {self.arguments(board, system)}"]
        return {path: "\n".join(lines) + "\n" for path in self.entry_paths(board)}

    def files(self, board: Board) -> dict[str, str]:
        return {entry_name(board): ENTRY, kernel_name(board): KERNEL, initrd_name(board): INITRD}
