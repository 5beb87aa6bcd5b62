# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The word beside a root (made.json): how it names a claim, and what it said where it was lost or cannot be read, as
far as the claim's own record and the root itself bear that out, and the database, where it knows of anybody there.

Reads only; a root that is not mounted is mounted for as long as its host key is looked at.

A claim that names an image had its root made to the end; a fresh root has a host key that no other has, and an overlay
is mounted over the files of no other image than that which it was made from.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from ..core.deadline import Deadline
from ..core.errors import HeteroError, Refused
from ..images.choice import image_of
from .roots import MADE, UNMOUNT_TIME, Made, Root

if TYPE_CHECKING:
    from ..site.boards_file import Board
    from .proxy_node import NamedClaim, RootClaim, RootsNode

UNREAD = "{folder} is there, and what it says of whom it was made for cannot be read, nor be told anew: {why}"
LOOK = (
    "nothing of it is touched: bring made.json in it back; or, to have it made anew, rebuild or terminate the instance"
)


def token_of(claim: NamedClaim) -> str:
    """What a root says of its claim. The same name may be claimed again later: name and time tell tenants apart."""
    return f"{claim.instance} {claim.created!r}"


def kept_of(proxy: RootsNode, claim: RootClaim) -> Any:
    """The own record of a claim, where it names what was made for it; None for another's, and one nobody can read.

    :returns: claim_records.Kept, or None.
    """
    try:
        kept = proxy.store.kept(claim.board)
    except HeteroError:
        return None
    return kept if kept and kept.claim.is_same(claim) and kept.claim.image_hash else None


def is_unread(root: Root) -> bool:
    """Whether there is a root, not half removed, and nothing says whose it is."""
    return root.made() is None and root.exists() and not root.is_half_removed


def word_of(proxy: RootsNode, board: Board, claim: RootClaim) -> Made | None:
    """What made.json says of a claim's root, or said, where what lies here and is mounted proves that; else None."""
    root = Root(proxy.config["state_folder"], board.id)
    made = root.made()
    if made is None and is_unread(root) and is_seen(root) and why_untold(proxy, root, claim) is None:
        return remade(claim)
    return made


def is_seen(root: Root) -> bool:
    """Whether what is in a root can be looked at: it is mounted, to the end."""
    return root.is_mounted and not root.is_half_mounted


def remade(claim: RootClaim) -> Made:
    """What made.json of a claim's whole root says."""
    return Made(token_of(claim), cast(str, claim.image_hash), whole=True)


def why_untold(proxy: RootsNode, root: Root, claim: RootClaim) -> str | None:
    """What of a root without its word does not bear out that it is a claim's, in words; None where all does.

    Of one that is not mounted its host key is not seen. A database that knows of nobody there was lost, or is older.
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
    """The same with the host key of a root that is not mounted: it is mounted for that. An overlay is over the files of
    no other image.

    :param check: nothing is mounted, so that its key is not seen.
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
    """The error of a root that nobody can tell of."""
    return Refused(UNREAD.format(folder=root.folder, why=why), board.name, LOOK)
