# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has a board by the records of claims (claims/), whatever the database says, which may be put back from a copy of
before a move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import HeteroError, Refused
from ..core.plays import play
from .ownership import THEIRS

if TYPE_CHECKING:
    from .proxy_node import RootClaim, RootsNode

BY_RECORD = "board{board} is {name}'s by the record of its claim, though the database has it on board{number}"
#: Where no record says that the claim has its board: it is lost or damaged, or a move has removed it, and the one that
#: the move wrote is.
UNSURE = (
    "board{board} may be {name}'s since a move: its root lies there, and that it has board{number} says the database, "
    "and no record of its claim"
)
SEE = (
    "nothing is touched: the database may be older than a move to that board, which may run from it: "
    f"{play('reconcile')} adopts what proves itself, or names the record that is to be corrected; where a person put "
    "it there, put it back once that board is off"
)


def is_recorded(proxy: RootsNode, board: int) -> bool:
    """Return whether a claim has a board by its record: that in the board's place, also one that cannot be read, or one
    that lies elsewhere (a person may have put it there), of a claim that has not ended.

    A board that is only kept for an instance that moves has none. That instance, or another, is on this one by now, and
    the database, by which it is kept, is older.
    """
    try:
        own = proxy.store.kept(board)
    except HeteroError:
        return True
    found = [kept.claim for _path, kept in proxy.store.kept_anywhere() if kept.claim.board == board]
    return own is not None or any(not proxy.store.has_ended(claim) for claim in found)


def of_its_record(proxy: RootsNode, board: int, claim: RootClaim, thing: str) -> Refused | None:
    """Return the error of a claim whose root lies in the place of a board that it has by its own record, and another
    one by the database: it may run from there. None where it has not.

    It may be so, too, where no record says that it has the database's board, and where the record in the other board's
    place cannot be read.

    :param thing: what the error is of.
    """
    found = [kept.claim.board for _path, kept in proxy.store.kept_anywhere() if claim.is_same(kept.claim)]
    words = dict(board=board, name=claim.instance, number=claim.board)
    if board in found:
        return Refused(BY_RECORD.format(**words), thing, THEIRS)
    if claim.board not in found:
        return Refused(UNSURE.format(**words), thing, SEE)
    try:
        proxy.store.kept(board)
    except HeteroError as error:
        return Refused(f"{error.thing}: {error.what}", thing, error.remedy)
    return None
