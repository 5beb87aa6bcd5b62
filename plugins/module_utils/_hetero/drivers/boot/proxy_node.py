# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What boot drivers need to know of the proxy node whose boards they boot.

The node itself is boards/records/proxy.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ...roots.console_log import LogsNode

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ...site.proxy_config import Wire


class BootNode(LogsNode, Protocol):
    """What is used of a proxy node for its boards' boots."""

    @property
    def server(self) -> str:
        """The address of this node that boards ask."""

    def board(self, board_id: int) -> Board:
        """Return the board of that id."""

    def wiring(self, board: Board) -> Wire:
        """Return what proxy.json says of a board."""

    def root_partition(self, board: Board) -> str:
        """Return the partition from which a board with boot source disk boots."""

    def kernel_source(self, board: Board) -> str:
        """Return where a board gets its kernel: "tftp" or "flash"."""
