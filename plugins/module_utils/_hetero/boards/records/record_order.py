# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose which of a board's records in other places may be moved to its own place: at most one, so that no second
command undoes the first. misfiled_records.py has the texts.

A record has no number of its version, and its file's time may be that of a later copy. So the contents decide first: a
root that proves it, the later claim, the longer lease, the number of known fields; the file's time decides last.
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

#: The sort key of records: whether a record is in its place, has not ended, is proven by a root; the times of the claim
#: and of its end (unix seconds); the number of known fields; whether it was not written anew, the file's time and path.
Rank = Tuple[bool, bool, bool, float, float, int, Tuple[bool, float, str]]
#: The fields of a claim that are known once something was made for it.
MADE = ("image_hash", "host_key", "boot_source")


def elsewhere(proxy: Proxy, board: int) -> list[tuple[str, Kept]]:
    """Return [(path, Kept)] of a board's readable records in other places than its own, the most credible first."""
    own = proxy.store.path_of_kept(board)
    found = [(path, kept) for path, kept in proxy.store.kept_anywhere() if path != own and kept.claim.board == board]
    return sorted(found, key=lambda one: rank(proxy, *one), reverse=True)


def rank(proxy: Proxy, path: str, kept: Kept) -> Rank:
    """Return the sort key of a record; one in its own place ranks above all others."""
    claim, board = kept.claim, proxy.boards.get(kept.claim.board)
    in_place = path == proxy.store.path_of_kept(claim.board)
    ended = proxy.store.has_ended(claim) and not claim.is_same(proxy.store.record(claim.board).claim)
    borne_out = board is not None and is_of_claim(proxy, board, claim)
    known = len([name for name in MADE if vars(claim)[name] is not None]) + kept.ran + (kept.fed is not None)
    newer = (not kept.anew, written(path), path)
    return (in_place, not ended, borne_out, claim.created, _end(claim), known, newer)


def written(path: str) -> float:
    """Return a file's time (unix seconds); 0 where the file is gone by now."""
    with suppress(OSError):
        return os.stat(path).st_mtime
    return 0.0


def is_older(proxy: Proxy, kept: Kept, row: Claim | None) -> bool:
    """Return whether the database has more than a record: a later claim, a later end of the lease, or a root.

    :param row: the board's claim in the database.
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
