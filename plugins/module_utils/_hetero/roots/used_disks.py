# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board's file in wipes/: who used its disks since they were wiped, or how that wipe was proven.

It is known without any claim or root, so it tells also of those that are lost. Who writes it is
boards/records/disk_records.py.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..site.boards_file import Board
    from .proxy_node import RootsNode

FOLDER = "wipes"
#: What a board's file says from its first use on until a wipe is proven.
USED = "used by"
#: Beside it: names of the disks that the board had then.
DISKS = "disks"
NOBODY_KNOWS = "somebody (what is known of it cannot be read)"
#: In a board's wiring: names of disks, and of places on them, that no wipe reaches and that an operator accepts.
ACCEPT = "accept_unwiped"


def read(proxy: RootsNode, board: Board) -> dict[str, Any] | None:
    """What a board's file says; one that cannot be read counts as used. None where there is none."""
    try:
        with open(path_of(proxy, board), encoding="utf-8") as file:
            record = json.load(file)
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
    # by what the board is, whatever its number: a boards file may be numbered anew
    return proxy.folder(FOLDER, f"{board.mac.replace(':', '-')}.json")


def user_of(proxy: RootsNode, board: Board) -> str | None:
    """The instance that had power on a board last whose disks hold what it wrote; None where none do."""
    record = read(proxy, board)
    if record is None or USED not in record:
        return None
    return record[USED] if proxy.disks(board) or missing(proxy, board) else None


def is_wiped(proxy: RootsNode, board: Board) -> bool:
    """Whether a proof of a wipe is the last that is known of a board's disks."""
    record = read(proxy, board)
    return record is not None and USED not in record


def missing(proxy: RootsNode, board: Board) -> list[str]:
    """Disks that somebody used and that the wiring does not name any more, nor accept as gone."""
    record, accepted = read(proxy, board) or {}, proxy.wiring(board).get(ACCEPT) or []
    lost = [disk for disk in record.get(DISKS, []) if USED in record and disk not in proxy.disks(board)]
    return [disk for disk in lost if os.path.basename(disk) not in accepted]
