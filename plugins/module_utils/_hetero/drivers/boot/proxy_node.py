# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What boot drivers see of the proxy node whose boards they boot; the node itself is boards/records/proxy.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ...site.boards_file import Board


class BootNode(Protocol):
    """A proxy node, as far as its boards' boots go."""

    @property
    def config(self) -> dict[str, Any]:
        """What proxy.json says, with its defaults."""

    @property
    def server(self) -> str:
        """The address of this node that boards ask."""

    def folder(self, *parts: str) -> str:
        """A path below the state folder."""

    def board(self, board_id: int) -> Board:
        """The board of that id."""

    def wiring(self, board: Board) -> dict[str, Any]:
        """What proxy.json says of a board."""

    def root_partition(self, board: Board) -> str:
        """The partition that a board with boot source disk boots from."""

    def kernel_source(self, board: Board) -> str:
        """Where a board gets its kernel: "tftp" or "flash"."""
