# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's data for cloud-init in the root of a board's claim; cloud_init.py knows what they are and where they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import HeteroError
from .cloud_init import SEEDED
from .provision import PHASE, Place

if TYPE_CHECKING:
    from ..core.changes import Change
    from ..site.boards_file import Board
    from .proxy_node import Report, RootClaim, RootsNode


def prepare_seed(
    proxy: RootsNode, board: Board, claim: RootClaim, user_data: str, change: Change, report: Report, fresh: bool
) -> bool:
    """Have a user's data for cloud-init in a root that no system has run from yet; leave any other root as it is.

    :param fresh: whether the root was made just now, or in check mode would be.
    :returns: whether they were, or in check mode would be, put there.
    """
    root = Place(proxy, board).root
    if not fresh:
        if root.is_mounted and root.has_seed(user_data):
            return False
        if proxy.store.had_power(claim):
            report(PHASE, SEEDED, None)
            return False
    change.note(f"{board.name} user_data", {"present": False}, {"present": True})
    if not change.check:
        root.put_seed(user_data, claim.instance)
        if not root.has_seed(user_data):
            raise HeteroError("user_data is not there after it was put in", root.path, "check its links")
    report(PHASE, f"user_data {'would be' if change.check else 'is'} there for cloud-init", None)
    return True
