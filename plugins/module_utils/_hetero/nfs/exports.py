# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry of NFS servers, and the export of a board."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import BadInput
from .exporter import Export, Exporter
from .ganesha import Ganesha
from .nfsd import Nfsd

if TYPE_CHECKING:
    from ..site.boards_file import Board

#: Name in proxy.json → exporter.
EXPORTERS: dict[str, type[Exporter]] = {exporter.name: exporter for exporter in (Ganesha, Nfsd)}


def exporter(name: str, restore_folder: str) -> Exporter:
    """Return the exporter of this name in proxy.json; raise BadInput for an unknown one."""
    if name not in EXPORTERS:
        known = ", ".join(sorted(EXPORTERS))
        raise BadInput(f"no such NFS server (known: {known})", name, "correct exports in the proxy's configuration")
    return EXPORTERS[name](restore_folder)


def board_export(server: Exporter, board: Board, path: str) -> Export:
    """Return the one export of a board: its root, for its address only. Id 0 is the server's own, so ids begin at 1."""
    return Export(board.id + 1, path, server.mounted_as(board.id, path), (board.ip,))
