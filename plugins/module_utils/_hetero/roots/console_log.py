# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file in the TFTP root with what a board's kernel printed, as tile-monitor told it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..core.errors import naming
from ..files import by_hand
from ..files.plain_file import read_plain
from ..tftp.board_folder import write_entry

if TYPE_CHECKING:
    from ..images.proxy_node import ProxyNode
    from ..site.boards_file import Board

#: First line of each that is ours.
LOG_MARK = "# Written by hetero.compute: what the board's kernel printed.\n"


def console_log(proxy: ProxyNode, board: Board) -> str:
    """Return the file to which the tilera boot driver writes what a board's kernel prints.

    It is in no board's folder, so that TFTP serves it to no board.
    """
    return os.path.join(proxy.config.tftp_root, f"log_{board.id}")


def write_console_log(proxy: ProxyNode, board: Board, text: str) -> None:
    """Write what a board's kernel printed. A file that somebody else put there by hand stays, as PATH.by-hand."""
    path = console_log(proxy, board)
    with naming(path):
        if os.path.lexists(path) and not is_own_log(path):
            by_hand.keep(path)
    write_entry(path, LOG_MARK + text, mode=0o600)


def is_own_log(path: str) -> bool:
    """Return whether write_console_log wrote this file. OpenStack's blueprint has scripts write one of its name."""
    with naming(path):
        return read_plain(path, len(LOG_MARK)) == LOG_MARK.encode()
