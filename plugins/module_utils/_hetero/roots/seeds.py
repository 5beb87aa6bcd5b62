# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's data for cloud-init in the root of a board's claim; cloud_init.py knows what they are and where they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import HeteroError
from .cloud_init import LEFT, SEEDED
from .place import Place
from .provision import PHASE

if TYPE_CHECKING:
    from ..core.changes import Change
    from ..images.store import Image
    from .proxy_node import Report, RootClaim, RootsNode


def prepare_seed(
    place: Place, claim: RootClaim, image: Image, user_data: str, change: Change, report: Report, fresh: bool
) -> bool:
    """Have the data for cloud-init that a request gives in a root that no system has run from yet, and no others.

    Any other root is left as it is.

    :param user_data: empty where the request gives none: then an earlier one's are taken out.
    :param fresh: whether the root was made just now, or in check mode would be.
    :returns: whether they were, or in check mode would be, put there or taken out.
    """
    root = place.root
    if not user_data:
        return not fresh and root.is_mounted and _take_out(place, claim, image, change, report)
    if not fresh:
        if root.is_mounted and root.has_seed(user_data):
            return False
        if may_have_booted(place.proxy, claim):
            report(PHASE, SEEDED, None)
            return False
    change.note(f"{place.board.name} user_data", {"present": False}, {"present": True})
    if not change.check:
        root.put_seed(user_data, claim.instance)
        if not root.has_seed(user_data):
            raise HeteroError("user_data is not there after it was put in", root.path, "check its links")
    report(PHASE, put_there(change), None)
    return True


def _take_out(place: Place, claim: RootClaim, image: Image, change: Change, report: Report) -> bool:
    """Take an earlier request's data out of a root, unless a system may have seen them; return whether that was so."""
    root = place.root
    if place.proxy.store.has_run(claim) or not root.has_left_seed(image):
        return False
    if may_have_booted(place.proxy, claim):
        report(PHASE, LEFT, None)
        return False
    change.note(f"{place.board.name} user_data", {"present": True}, {"present": False})
    if not change.check:
        root.take_seed_out(image)
        if root.has_left_seed(image):
            raise HeteroError("user_data is there after it was taken out", root.path, "check its links")
    report(PHASE, taken_out(change), None)
    return True


def may_have_booted(proxy: RootsNode, claim: RootClaim) -> bool:
    """Return whether a system may have seen what is in the root of a claim: its board had power, or has it."""
    return proxy.store.had_power(claim) or proxy.store.record(claim.board).power == "on"


def put_there(change: Change) -> str:
    """Return what is said of data that were put into a root."""
    return f"user_data {'would be' if change.check else 'is'} there for cloud-init"


def taken_out(change: Change) -> str:
    """Return what is said of an earlier request's data."""
    return f"user_data of an earlier request {'would be' if change.check else 'was'} taken out of its root"
