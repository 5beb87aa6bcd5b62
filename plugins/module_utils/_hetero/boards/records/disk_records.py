# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of a board's local disks: whether they were wiped since a tenant could write to them, and how that was
proven.

The proof that stands is a file; before a tenant's system gets power it is replaced by one that says that the board is
used, so that what nobody wrote down counts as not wiped, and what somebody used is known without any claim. Wiping
itself is disk/wipes.py's.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any, Mapping

from ...core.errors import HeteroError, naming
from ...core.plays import play
from ...files.whole_file import write_whole
from ...roots.used_disks import ACCEPT, DISKS, FOLDER, USED, missing, path_of, read

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from .proxy import Proxy

HISTORY = os.path.join(FOLDER, "history")


def proof(proxy: Proxy, board: Board) -> dict[str, Any] | None:
    """Return the record of the wipe that stands for all disks that the board has now, or None."""
    record = read(proxy, board)
    if record is None or USED in record:
        return None
    wiped = {disk["device"] for disk in record["disks"] if disk["proven"]}
    return record if wiped >= set(proxy.disks(board)) else None


def unwiped(proxy: Proxy, board: Board) -> list[str]:
    """Return as texts why a board's disks keep it from being free; none where they do not."""
    disks, texts = proxy.disks(board), unnamed(proxy, board)
    if not disks or proof(proxy, board):
        return texts
    return [*texts, f"disk {' and '.join(disks)} not proven to be wiped since it was used last (module board_wipe)"]


def unnamed(proxy: Proxy, board: Board) -> list[str]:
    """Return as texts which disks a tenant used that the wiring does not name any more, so that nothing wipes them."""
    record = read(proxy, board) or {}
    return [
        f"disk {disk} was used by {record[USED]}, and is not named any more: name it in tftp_proxy_boards and run "
        f"{play('proxy')}; or, where it was taken out, {ACCEPT}: [{os.path.basename(disk)}] there"
        for disk in missing(proxy, board)
    ]


def used(proxy: Proxy, board: Board) -> list[str]:
    """Return as texts why the disks of a board that nobody has keep it from being free.

    Only a disk on which a tenant's system had power is somebody's; a new disk is not.
    """
    record = read(proxy, board)
    if record is None:
        return []
    if USED not in record:
        return unwiped(proxy, board)  # one that was named after the wipe of the others
    names, texts = " and ".join(proxy.disks(board)), unnamed(proxy, board)
    return [*texts, f"disk {names} was used by {record[USED]}, and is not proven to be wiped since"] if names else texts


def withdraw(proxy: Proxy, board: Board, name: str) -> None:
    """Withdraw the proof of a board's wipe, because a tenant's system is about to get power.

    That is done also for a board whose disks nobody named: they may be named before the next tenant comes.

    :param name: the instance's.
    """
    before = read(proxy, board) or {}
    there = before.get(DISKS, []) if USED in before else []
    record = {USED: name, DISKS: sorted({*there, *proxy.disks(board)})}
    if read(proxy, board) != record:
        with naming(path_of(proxy, board)):
            _write(path_of(proxy, board), record)


def keep(proxy: Proxy, board: Board, record: Mapping[str, Any]) -> None:
    """Write the record of a wipe down, for good; it stands as the proof when all its disks were proven."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(record["time"]))
    with naming(proxy.folder(FOLDER)):
        _write(proxy.folder(HISTORY, f"{board.name}-{stamp}.json"), record)
        if all(disk["proven"] for disk in record["disks"]):
            _write(path_of(proxy, board), record)
    if all(disk["proven"] for disk in record["disks"]):
        if proof(proxy, board) is None:
            raise HeteroError(
                "the proof of its wipe cannot be read back", board.name, f"look at {path_of(proxy, board)}"
            )


def _write(path: str, record: Mapping[str, Any]) -> None:
    for folder in (os.path.dirname(os.path.dirname(path)), os.path.dirname(path)):
        if os.path.basename(folder) in (FOLDER, os.path.basename(HISTORY)):
            os.makedirs(folder, mode=0o700, exist_ok=True)
    write_whole(path, json.dumps(record, indent=1), 0o600)
