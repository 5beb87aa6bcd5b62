# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file made.json beside a root: how it names a claim, and how it is written anew where it is lost or unreadable.

It is written anew only where the claim's own record, the root itself and the database (where that has a claim of the
board) all agree on what it said. This file only reads; to read the host key of a root that is not mounted, it mounts it
meanwhile.

The proof rests on three facts. A claim that names an image had its root made to the end. Each fresh root has a host key
that no other root has. An overlay is mounted over the files of the image that it was made from, and of no other.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from ..core.deadline import Deadline
from ..core.errors import HeteroError, Refused
from ..images.choice import image_of
from .board_parts import root_of_board
from .roots import MADE, UNMOUNT_TIME, Made, Root

if TYPE_CHECKING:
    from ..site.boards_file import Board
    from .proxy_node import NamedClaim, RootClaim, RootsNode

UNREAD = "{folder} is there, and what it says of whom it was made for cannot be read, nor be told anew: {why}"
LOOK = (
    "nothing of it is touched: bring made.json in it back; or, to have it made anew, rebuild or terminate the instance"
)


def token_of(claim: NamedClaim) -> str:
    """Return the text by which made.json names a claim: instance and time, for a name may be claimed again later."""
    return f"{claim.instance} {claim.created!r}"


def kept_of(proxy: RootsNode, claim: RootClaim) -> Any:
    """Return the record of a claim (claim_records.Kept) where it names the image of a root that was made.

    :returns: None where the record is missing, cannot be read, is another claim's, or names no image.
    """
    try:
        kept = proxy.store.kept(claim.board)
    except HeteroError:
        return None
    return kept if kept and kept.claim.is_same(claim) and kept.claim.image_hash else None


def is_unread(root: Root) -> bool:
    """Return whether there is a root, not half removed, whose made.json is missing or cannot be read."""
    return root.made() is None and root.exists() and not root.is_half_removed


def word_of(proxy: RootsNode, board: Board, claim: RootClaim) -> Made | None:
    """Return what made.json says of a claim's root, or what a mounted root proves that it said; else None."""
    root = root_of_board(proxy, board.id)
    made = root.made()
    if made is None and is_unread(root) and is_seen(root) and why_untold(proxy, root, claim) is None:
        return remade(claim)
    return made


def is_seen(root: Root) -> bool:
    """Return whether the files of a root can be read: it is mounted, and that mount was not cut off."""
    return root.is_mounted and not root.is_half_mounted


def remade(claim: RootClaim) -> Made:
    """Return what made.json says of a whole root of this claim."""
    return Made(token_of(claim), cast(str, claim.image_hash), whole=True)


def why_untold(proxy: RootsNode, root: Root, claim: RootClaim) -> str | None:
    """Return why a root without made.json is not proven to be a claim's, in words; None where it is proven.

    The host key of a root that is not mounted is not checked. A database that has no claim of the board contradicts
    nothing: it was lost, or is an older copy.
    """
    kept, row = kept_of(proxy, claim), proxy.store.record(claim.board).claim
    others = row is not None and not row.is_same(claim)
    if others or kept is None or kept.claim.image_hash != claim.image_hash:
        return f"no record of {claim.instance}'s claim names the same root as the database"
    if root.older:
        return "it is a root of an older release"
    if root.is_file_lost:
        return f"{root.file} is not there"
    if os.path.isdir(os.path.join(root.folder, MADE)):
        return f"{MADE} is a folder"
    return _otherwise_mounted(proxy, root, kept.claim) if is_seen(root) else None


def why_unproven(proxy: RootsNode, root: Root, claim: RootClaim, check: bool) -> str | None:
    """Return what why_untold returns, and mount a root that is not mounted to check its host key, too.

    :param check: mount nothing (check mode); the host key of a root that is not mounted is then not checked.
    """
    why = why_untold(proxy, root, claim)
    if why is not None or is_seen(root) or check:
        return why
    root.take_up_mount()
    if root.is_mounted:
        return why_untold(proxy, root, claim)
    root.mount(image_of(proxy, claim))
    try:
        return why_untold(proxy, root, claim)
    finally:
        root.unmount(Deadline(UNMOUNT_TIME))


def _otherwise_mounted(proxy: RootsNode, root: Root, claim: RootClaim) -> str | None:
    try:
        if not root.is_over(image_of(proxy, claim)):
            return "it is not mounted over the files of its image"
        found = None
        with suppress(OSError):
            found = root.host_key()
    except HeteroError as error:
        return str(error)
    if found is None:
        return "there is no host key in it"
    return None if found == claim.host_key else f"the host key in it is not {claim.instance}'s"


def unread(root: Root, board: Board, why: str) -> Refused:
    """Return the error of a root whose made.json cannot be read nor be written anew, for the reason `why`."""
    return Refused(UNREAD.format(folder=root.folder, why=why), board.name, LOOK)
