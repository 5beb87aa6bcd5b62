# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where all lies from which a board boots: its root, its export, the files in its TFTP folder. It only looks, but for
the end of an export; provision.py makes the rest and removes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..nfs.exporter import let_go
from ..nfs.exports import board_export
from ..tftp.board_folder import BoardFiles
from .board_parts import disk_of_board, nfs_server_of, root_of_board
from .console_log import console_log

if TYPE_CHECKING:
    from ..images.store import Image
    from ..nfs.exporter import Export
    from ..site.boards_file import Board
    from .proxy_node import RootsNode


class Place:
    """Where the parts of one board lie on its proxy."""

    def __init__(self, proxy: RootsNode, board: Board) -> None:
        self.proxy, self.board = proxy, board
        self.exporter = nfs_server_of(proxy)
        self.root = root_of_board(proxy, board.id)
        self.files = BoardFiles(proxy.config.tftp_root, board.ip)
        self.disk = disk_of_board(proxy, board.id)
        self.console_log = console_log(proxy, board)
        self._kernel_source = proxy.kernel_source(board)

    @property
    def export(self) -> Export:
        """The board's export as it should be: of the root that is there, else of the root that is yet to be made."""
        return board_export(self.exporter, self.board, self.root.path)

    @property
    def restore_file(self) -> str:
        return self.exporter.restore_file(self.export.pseudo)

    def exported(self) -> Export | None:
        """Return the board's export as the server has it; None where its id is free or another export's."""
        found = self.exporter.get(self.export.id)
        return found if found is not None and found.pseudo == self.export.pseudo else None

    def unexport(self) -> None:
        """End the board's export, where there is one, and the connections that its tenant left behind."""
        if self.exported():
            self.exporter.remove(self.export.id)
        let_go(self.board.ip)

    def wanted_files(self, image: Image, source: str) -> dict[str, str | None]:
        """Return {name in the board's TFTP folder: its file in the image store, or None where it must not exist}.

        :param source: where its root lies (site/boot_sources.py).
        """
        by_tftp, number = self._kernel_source == "tftp", self.board.id
        files = {f"vmlinux_{number}": image.kernel_for(source, number), f"initrd_{number}": image.initrd_for(source)}
        return files if by_tftp else dict.fromkeys(files)
