# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a proxy node keeps what a board boots from, by the board's number: a root, or the files of one on its own disk.

Also the NFS server that gives roots to boards. ownership.py knows whose they are, and place.py has all of a board.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..nfs.exports import exporter
from ..site.boot_sources import DISK
from .disk_files import DiskFiles
from .roots import Root

if TYPE_CHECKING:
    from ..nfs.exporter import Exporter
    from .proxy_node import ProxyNode


def root_of_board(proxy: ProxyNode, board: int) -> Root:
    """Return the place of a board's root on the proxy, whether or not a root is there."""
    return Root(proxy.config.state_folder, board)


def disk_of_board(proxy: ProxyNode, board: int) -> DiskFiles:
    """Return the place of what the proxy keeps of a root on a board's own disk, whether or not there is any."""
    return DiskFiles(proxy.folder("disks"), board)


def files_of_board(proxy: ProxyNode, board: int, boot_source: str | None) -> Root | DiskFiles:
    """Return the place of what a board of this boot source boots from."""
    return disk_of_board(proxy, board) if boot_source == DISK else root_of_board(proxy, board)


def nfs_server_of(proxy: ProxyNode) -> Exporter:
    """Return the NFS server of a proxy node."""
    return exporter(proxy.config.exports, proxy.folder("exports"))
