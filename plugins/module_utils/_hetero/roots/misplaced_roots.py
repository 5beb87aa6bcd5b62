# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A root that lies in the place of another board than its claim's: it may be the only one. A person has moved it there,
or a move of its instance, and the database is older than that.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from ..core.errors import Refused
from ..core.this_node import THIS_NODE
from ..site.boot_sources import DISK, NFS
from .board_parts import disk_of_board, files_of_board, root_of_board
from .made_json import token_of
from .ownership import elsewhere, roots_there
from .recorded_boards import of_its_record
from .roots import SOURCE

if TYPE_CHECKING:
    from .proxy_node import RootClaim, RootsNode

MISPLACED = "is the root of {name}, who has board{number}, and none of that claim lies in its place"
WAY = "nothing of it is removed: {clear}run on {node}: mv -T {folder} {place}"
#: The text before the command in WAY, where something lies in the root's own place.
CLEAR = "look whose {place} is, and put it anywhere out of the roots' folders; then "


def refuse_to_remove(proxy: RootsNode, board: int, claim: RootClaim | None) -> None:
    """Raise Refused where the removal of a board's root would remove more than that root, or less.

    :param board: its id; the boards file may not name it any more.
    """
    error = misplaced(proxy, board)
    if error:
        raise error
    own = token_of(claim) if claim else None
    root_of_board(proxy, board).must_be_removable(own, map(token_of, elsewhere(proxy, board)))
    disk_of_board(proxy, board).must_be_removable()


def misplaced(proxy: RootsNode, board: int) -> Refused | None:
    """Return what is said of a root in a board's place that was made for the living claim of another board, or None.

    Where that board has a root of the claim, too, this one is a copy, or was given up for a new one.
    """
    for source in (NFS, DISK):
        root = files_of_board(proxy, board, source)
        made = root.made()
        holder = _holder(proxy, board, made.claim) if made else None
        own = files_of_board(proxy, holder.board, source).made() if holder else None
        if holder and (own is None or own.claim != token_of(holder)):
            return _misplaced(proxy, board, root.folder, holder)
    return None


def misplaced_of(proxy: RootsNode, claim: RootClaim) -> Refused | None:
    """Return what is said of a claim's root that lies in another board's place; None where there is none."""
    there = roots_there(proxy.config.state_folder)
    own = [(board, folder) for board, folder, made in there if made and made.claim == token_of(claim)]
    found = [(board, folder) for board, folder in own if board != claim.board]
    return _misplaced(proxy, *found[0], claim) if found else None


def _holder(proxy: RootsNode, board: int, token: str) -> RootClaim | None:
    """Return the claim of another board that a text names (made_json.token_of), unless it has ended; else None."""
    row = proxy.store.record(board).claim
    if row and token_of(row) == token:
        return None
    for claim in elsewhere(proxy, board):
        if token_of(claim) == token:
            is_known = claim.is_same(proxy.store.record(claim.board).claim)
            return claim if is_known or not proxy.store.has_ended(claim) else None
    return None


def _misplaced(proxy: RootsNode, board: int, folder: str, claim: RootClaim) -> Refused:
    moved = of_its_record(proxy, board, claim, folder)
    if moved:
        return moved
    place = os.path.join(os.path.dirname(folder), f"{SOURCE}{claim.board}")
    clear = CLEAR.format(place=place) if os.path.lexists(place) else ""
    way = WAY.format(node=THIS_NODE, clear=clear, folder=shlex.quote(folder), place=shlex.quote(place))
    return Refused(MISPLACED.format(name=claim.instance, number=claim.board), folder, way)
