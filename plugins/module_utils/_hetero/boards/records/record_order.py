# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of a board's records that lie elsewhere may go to its place: one at most, so that of two commands no second one
takes back the first. What is said of them is misfiled_records.py's.

A record counts no changes, and the time of its file is that of whoever copied it last. So what it says goes first: a
root that bears it out, the later claim, the longer lease, whatever else is known of it; and the time of its file last.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Tuple

from ...roots.ownership import is_of_claim

if TYPE_CHECKING:
    from .claim_records import Claim, Kept
    from .proxy import Proxy

#: What records are sorted by: whether one is in its place, has not ended, is borne out by a root; when its claim was
#: made, and ends (unix seconds); how much is known; whether it was not written anew, when it was written, its path.
Rank = Tuple[bool, bool, bool, float, float, int, Tuple[bool, float, str]]
#: What is known of a claim once something was made for it.
MADE = ("image_hash", "host_key", "boot_source")


def elsewhere(proxy: Proxy, board: int) -> list[tuple[str, Kept]]:
    """Return [(path, Kept)] of a board's whole records that do not lie in its place, the one that knows most first."""
    own = proxy.store.path_of_kept(board)
    found = [(path, kept) for path, kept in proxy.store.kept_anywhere() if path != own and kept.claim.board == board]
    return sorted(found, key=lambda one: rank(proxy, *one), reverse=True)


def rank(proxy: Proxy, path: str, kept: Kept) -> Rank:
    """Return what to sort records by. What is in its place comes before all others."""
    claim, board = kept.claim, proxy.boards.get(kept.claim.board)
    in_place = path == proxy.store.path_of_kept(claim.board)
    ended = proxy.store.has_ended(claim) and not claim.is_same(proxy.store.record(claim.board).claim)
    borne_out = board is not None and is_of_claim(proxy, board, claim)
    known = len([name for name in MADE if vars(claim)[name] is not None]) + kept.ran + (kept.fed is not None)
    newer = (not kept.anew, written(path), path)
    return (in_place, not ended, borne_out, claim.created, _end(claim), known, newer)


def written(path: str) -> float:
    """Return when a file was written (unix seconds), for all that its time says; 0 for one that is gone meanwhile."""
    with suppress(OSError):
        return os.stat(path).st_mtime
    return 0.0


def is_older(proxy: Proxy, kept: Kept, row: Claim | None) -> bool:
    """Return whether the database knows more than a record.

    It may know a later claim, a later end of the lease, or what was made for the claim.

    :param row: the claim that it has of the board.
    """
    if row is None or not kept.claim.is_same(row):
        return row is not None and row.created > kept.claim.created
    board = proxy.boards.get(row.board)
    another = board is not None and kept.claim.image_hash != row.image_hash and is_of_claim(proxy, board, row)
    return another or _is_less(kept.claim, row)


def knows_less(kept: Kept, other: Kept) -> bool:
    """Return whether a record lacks something that another one of its claim has."""
    fed = other.fed is not None and kept.fed is None
    return _is_less(kept.claim, other.claim) or fed or (other.ran and not kept.ran)


def _is_less(claim: Claim, other: Claim) -> bool:
    lacks = [name for name in MADE if vars(claim)[name] is None and vars(other)[name] is not None]
    return bool(lacks) or _end(claim) < _end(other)


def _end(claim: Claim) -> float:
    return math.inf if claim.expires is None else claim.expires
