# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards that boot by driver tilera on a proxy without Tilera's tile-monitor: each boot would be refused for it.

It is a note, as of a board without an outlet: other boards are served, and the program may be installed later.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ...drivers.boot.registry import default_driver
from ...drivers.boot.tile_monitor import TileMonitor
from ...drivers.boot.tilera import Tilera
from ...site.proxy_config import DEFAULTS

if TYPE_CHECKING:
    from ...core.findings import Findings
    from ...site.boards_file import Board
    from .setup_plan import Plan


def missing(plan: Plan, boards: Sequence[Board], wires: Mapping[str, Mapping[str, Any]], found: Findings) -> None:
    """Report one note for all boards that need tile-monitor where it cannot be run."""
    path = plan.settings.get("tile_monitor") or DEFAULTS.tile_monitor
    if not isinstance(path, str) or not os.path.isabs(path):  # settings_check.py says so
        return
    named = {board.name: wires.get(str(board.id), {}).get("driver") for board in boards}
    need = [board for board in boards if (named[board.name] or default_driver(board)) == Tilera.name]
    fault = TileMonitor(path, "", "").fault() if need else None
    if not fault:
        return
    by_vendor = any(not named[board.name] for board in need)
    why = " (the vendor in cpu_info is tilera, and tftp_proxy_boards names no driver)" if by_vendor else ""
    remedy = f"{fault}; or set driver: pxe in tftp_proxy_boards for boards that boot by PXE"
    found.note(", ".join(board.name for board in need), f"cannot boot by driver tilera{why}", remedy)
