# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file in the TFTP root with what a board's kernel printed, as tile-monitor told it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Protocol

from ..core.errors import naming
from ..files import by_hand
from ..files.plain_file import read_plain
from ..images.proxy_node import ProxyNode
from ..tftp.board_folder import write_entry

if TYPE_CHECKING:
    from ..site.boards_file import Board

#: First line of each that is ours; releases before this line's wrote none.
LOG_MARK = "# Written by hetero.compute: what the board's kernel printed.\n"
#: Text of the event that follows when one was written, in all releases, and the mode of all of them.
LOG_WRITTEN, MODE = "what its kernel said is in {log}", 0o600
#: Seconds between writing one and its event, at most; a process that boots many boards is slower than one.
SOON = 60.0


class Events(Protocol):
    """What is used of a proxy node's database."""

    def last_said(self, board: int, text: str) -> float | None:
        """Return the unix time of the newest event of a board with this text, or None."""


class LogsNode(ProxyNode, Protocol):
    """What is used of a proxy node for the logs of its boards."""

    @property
    def store(self) -> Events: ...


def console_log(proxy: ProxyNode, board: Board) -> str:
    """Return the file to which the tilera boot driver writes what a board's kernel prints.

    It is in no board's folder, so that TFTP serves it to no board.
    """
    return os.path.join(proxy.config.tftp_root, f"log_{board.id}")


def write_console_log(proxy: LogsNode, board: Board, text: str) -> None:
    """Write what a board's kernel printed. A file that somebody else put there by hand stays, as PATH.by-hand."""
    path = console_log(proxy, board)
    with naming(path):
        if os.path.lexists(path) and not is_own_log(proxy, board):
            by_hand.keep(path)
    write_entry(path, LOG_MARK + text, mode=MODE)


def is_own_log(proxy: LogsNode, board: Board) -> bool:
    """Return whether a board's log is ours. OpenStack's blueprint has scripts write one of its name.

    One without LOG_MARK is ours if the board's events say that an older release wrote it just then.
    """
    path = console_log(proxy, board)
    with naming(path):
        begins = read_plain(path, len(LOG_MARK))
        if begins is None or begins == LOG_MARK.encode():
            return begins is not None
        seen = os.lstat(path)
    if stat.S_IMODE(seen.st_mode) != MODE or seen.st_uid != os.geteuid():
        return False
    said = proxy.store.last_said(board.id, LOG_WRITTEN.format(log=path))
    return said is not None and said - SOON <= seen.st_mtime <= said
