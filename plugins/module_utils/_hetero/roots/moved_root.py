# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a root from one board's place to another's, on the same proxy: with all that is in it, and with its made.json,
by which it stays its claim's.

A root's folder is named by the board that it is for, and nothing in it is. So it is unmounted, and renamed in one step;
provision.py then mounts it and exports it to the other board. The caller holds the locks of both boards, and has proven
the first one off.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..core.deadline import Deadline
from ..core.errors import Refused, naming
from ..files.mounts import must_hold_no_mount
from ..files.whole_file import sync_folder
from .board_parts import root_of_board
from .made_json import token_of
from .ownership import roots_there
from .place import Place
from .roots import SOURCE, UNMOUNT_TIME

if TYPE_CHECKING:
    from ..site.boards_file import Board
    from .proxy_node import NamedClaim, RootsNode

IN_THE_WAY = "is there, where the root of {name} is to go"
LOOK = "look whose it is, and put it anywhere out of the roots' folders; then run this again"


def must_be_renamable(proxy: RootsNode, board: Board) -> None:
    """Raise Refused where a root's folder is a mount point, which nobody can rename, or holds one of somebody else."""
    root = root_of_board(proxy, board.id)
    must_hold_no_mount(root.folder, board.name, root.path)


def lies_at(proxy: RootsNode, claim: NamedClaim, board: int) -> int | None:
    """Return the id of another board in whose place the root of a claim lies; None where it lies in none.

    :param board: the id of the claim's board. Where the root lies there, what lies elsewhere is a copy.
    """
    there = roots_there(proxy.config.state_folder)
    found = [number for number, _folder, made in there if made and made.claim == token_of(claim)]
    return None if board in found else next(iter(found), None)


def let_go(proxy: RootsNode, board: Board) -> None:
    """End a board's export and unmount its root, which stays as it is."""
    place = Place(proxy, board)
    with naming(place.root.folder):
        place.unexport()
        place.root.unmount(Deadline(UNMOUNT_TIME))
        place.exporter.forget(place.export.pseudo)


def bring(proxy: RootsNode, claim: NamedClaim, old: Board, new: Board) -> None:
    """Bring the root of a claim from the place of one board to that of another, which has none.

    :raises Refused: something lies there.
    """
    let_go(proxy, old)
    folder = Place(proxy, old).root.folder
    to = os.path.join(os.path.dirname(folder), f"{SOURCE}{new.id}")
    if os.path.lexists(to):
        raise Refused(IN_THE_WAY.format(name=claim.instance), to, LOOK)
    with naming(folder):
        os.rename(folder, to)
        sync_folder(os.path.dirname(to))
