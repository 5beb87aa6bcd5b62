# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board's file in wipes/: who used its disks since they were wiped, or how that wipe was proven.

The file needs no claim and no root, so it is there also where those are lost. boards/records/disk_records.py writes it.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from ..files.plain_file import read_at

if TYPE_CHECKING:
    from ..site.boards_file import Board
    from .proxy_node import RootsNode

FOLDER = "wipes"
#: The key of a board's file from the first use of its disks until a wipe is proven.
USED = "used by"
#: The key beside USED: names of the disks that the board had at that time.
DISKS = "disks"
#: Most bytes of a board's file.
MOST = 1 << 20
NOBODY_KNOWS = "somebody (what is known of it cannot be read)"
#: The key of a board's wiring for disks, and places on disks, that no wipe reaches and an operator accepts as they are.
ACCEPT = "accept_unwiped"


def read(proxy: RootsNode, board: Board) -> dict[str, Any] | None:
    """Return what a board's file says; None where there is none. A file that cannot be read counts as a used disk."""
    try:
        record = json.loads(read_at(path_of(proxy, board), MOST))
        if isinstance(record.get(USED), str) and all(isinstance(disk, str) for disk in record[DISKS]):
            return record
        if USED not in record and all({"device", "proven"} <= set(disk) for disk in record["disks"]):
            return record
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    return {USED: NOBODY_KNOWS}


def path_of(proxy: RootsNode, board: Board) -> str:
    # Named after the board's MAC address, not its number, for a boards file may be numbered anew.
    return proxy.folder(FOLDER, f"{board.mac.replace(':', '-')}.json")


def user_of(proxy: RootsNode, board: Board) -> str | None:
    """Return the instance that last had power on a board with disks, unless a wipe is proven since; else None."""
    record = read(proxy, board)
    if record is None or USED not in record:
        return None
    return record[USED] if proxy.disks(board) or missing(proxy, board) else None


def is_wiped(proxy: RootsNode, board: Board) -> bool:
    """Return whether a wipe of a board's disks is proven, and nobody has used them since."""
    record = read(proxy, board)
    return record is not None and USED not in record


def missing(proxy: RootsNode, board: Board) -> list[str]:
    """Return the disks that somebody used and that the wiring neither names any more nor accepts as gone."""
    record, accepted = read(proxy, board) or {}, proxy.wiring(board).accept_unwiped or []
    lost = [disk for disk in record.get(DISKS, []) if USED in record and disk not in proxy.disks(board)]
    return [disk for disk in lost if os.path.basename(disk) not in accepted]
