# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Describe files in the place of a board's record that say nothing of the board, because they cannot be read or are
another board's record; and describe records that lie in no board's place.

This file only reads; evidence/adoption.py acts.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ...core.errors import HeteroError
from ...core.plays import play
from ...roots.ownership import FORGOTTEN, forgotten_of, is_of_claim
from ...site.leases import until
from . import record_order
from .board_record_files import OTHERS
from .lost_database import way_by_copy

if TYPE_CHECKING:
    from ...core.errors import Refused
    from ...site.boards_file import Board
    from .claim_records import Claim, Kept
    from .proxy import Proxy

ADOPT = play("reconcile", adopt="{name}")
#: A record was written before the database was, so the newest change of a claim may be in one that nobody can read, or
#: that another board's was copied over.
WORD = (
    "and the database may be older than what it said: nothing is touched: correct it, or where the database is "
    f"right (see its lease: {play('status')}), {ADOPT} has it written anew"
)
NO_PROOF = (
    "neither it nor made.json of a root bears out that the board is {name}'s, as the database has it: nothing is "
    f"touched: bring either back; or, where the database is right, remove the record; {ADOPT} has it written anew then"
)
MOVE = (
    "and it may be the only one: nothing of either is touched: {way}, or remove it once it is known that "
    "nobody has board{number}"
)
ELSEWHERE = (
    "the record of {name}'s claim is not in its place, and {path} is one of that claim, by which its lease is {lease}: "
    f"nothing is touched: {{way}}; where the database is right ({play('status')}), {ADOPT} has it written anew"
)
#: It may be older than what the database says: a lease that was longer once.
RIGHT = "where that is right, {way}"
#: Text about a record that is not to be moved to its place.
KEEP = "{why}: look at this one, and keep it"
KNOWN = "the database knows more than it (lease {lease})"
TAKEN = "the database has {other}'s later claim"
INSTEAD = "what goes to its place is {path}"
#: Text about a file that is a record, and whose name is none of a record.
STRAY = "record of {name}'s claim on board{number} (lease {lease}), which nothing reads there: "
ENDED = "that claim has ended: remove it once nobody wants it"
SAME = "its place has the same one: remove this one once nobody wants it"
NEWER = "its place has one that knows as much or more (lease {lease}): remove this one once nobody wants it"
LATER = "its place has that of {other}'s later claim: remove this one once it is known that {name}'s claim has ended"
OLDER = "its place has one that may know less ({other}'s, lease {lease}): {way}"
BEFORE = KEEP.format(why="its place has one that was written later, and does not know all of it (lease {lease})")
APART = KEEP.format(why="its place has one with lease {lease}, and each knows what the other does not")


def said_of(
    proxy: Proxy, board: Board, row: Claim | None, contradiction: Refused | None, error: HeteroError
) -> tuple[str, bool]:
    """Return what is said of a record that cannot be read, and whether an operator's word has it written anew.

    :param row: the claim that the database has of the board; the word is one for its instance.
    :param contradiction: what any other verb refuses the board for.
    :param error: why the record cannot be read.
    """
    path = error.thing or proxy.store.path_of_kept(board.id)
    found, moved = f"{path}: {error.what}", way_of_only(proxy, board.id, error)
    if moved:
        return f"{found}, {moved}", False
    if row is None or contradiction:
        return f"{error}{way_by_copy(proxy, board.id)}", False
    forgotten = forgotten_of(proxy, board, row)
    if forgotten:
        return f"{forgotten}: {FORGOTTEN}", False
    if row.image_hash and not is_of_claim(proxy, board, row):
        return f"{found}, {NO_PROOF.format(name=row.instance)}", False
    there = astray(proxy, row)
    return (f"{found}; {there}" if there else f"{found}, {WORD.format(name=row.instance)}"), True


def way_of_only(proxy: Proxy, board: int, error: HeteroError) -> str | None:
    """Return what is said where the unreadable record in a board's place is another board's only one; else None."""
    other = error.facts.get("of")
    if other is None or proxy.store.is_copy(error):
        return None
    return MOVE.format(way=way_of(proxy, proxy.store.path_of_kept(board), other), number=other)


def way_of(proxy: Proxy, path: str, board: int) -> str:
    """Return how a board's record comes to its place from where it lies."""
    why = None if proxy.store.ring(path) else _stays(proxy, path, board, proxy.store.record(board).claim)
    return why or proxy.store.way_back(path, board)


def _stays(proxy: Proxy, path: str, board: int, row: Claim | None) -> str | None:
    """Return why a board's record that lies elsewhere does not go to its place, or None for the one that may.

    :param row: the claim that the database has of the board.
    """
    there = record_order.elsewhere(proxy, board)
    newest = next((one for one, kept in there if not record_order.is_older(proxy, kept, row)), None)
    kept = dict(there).get(path)
    if newest == path or kept is None:
        return None
    if row is None or not record_order.is_older(proxy, kept, row):
        return KEEP.format(why=INSTEAD.format(path=newest))
    same = kept.claim.is_same(row)
    return KEEP.format(why=KNOWN.format(lease=_lease(row)) if same else TAKEN.format(other=row.instance))


def astray(proxy: Proxy, claim: Claim) -> str | None:
    """Return what is said where a record of a claim, which has none in its place, lies elsewhere, or None."""
    there = [one for one in record_order.elsewhere(proxy, claim.board) if one[1].claim.is_same(claim)]
    if not there:
        return None
    path, kept = next((one for one in there if not record_order.is_older(proxy, one[1], claim)), there[0])
    ring = proxy.store.ring(path)
    way = None if ring else _stays(proxy, path, claim.board, claim)
    if way is None:
        place = min([*ring, *proxy.store.place_of(path)], default=None)
        back = proxy.store.way_back(path, claim.board) if place is None else OTHERS.format(first=place)
        way = RIGHT.format(way=back)
    return ELSEWHERE.format(name=claim.instance, path=path, lease=_lease(kept.claim), way=way)


def stray(proxy: Proxy, path: str, kept: Kept) -> str:
    """Return what is said of a whole record of a claim in no board's place."""
    claim = kept.claim
    said = STRAY.format(name=claim.instance, number=claim.board, lease=_lease(claim))
    return said + of_elsewhere(proxy, path, kept)


def of_elsewhere(proxy: Proxy, path: str, kept: Kept) -> str:
    """Return what is done with a whole record of a claim that lies in another place than its own.

    The only record of a claim is never to be removed.
    """
    claim, row = kept.claim, proxy.store.record(kept.claim.board).claim
    if proxy.store.has_ended(claim) and not claim.is_same(row):
        return ENDED
    try:
        here = proxy.store.kept(claim.board)
    except HeteroError:
        here = None
    text = "{way}" if here is None else _beside(proxy, path, kept, here, row)
    way = "" if "{way}" not in text else _way(proxy, path, kept, row)
    other, lease = (here.claim.instance, _lease(here.claim)) if here else ("", "")
    return text.format(name=claim.instance, other=other, lease=lease, way=way)


def _way(proxy: Proxy, path: str, kept: Kept, row: Claim | None) -> str:
    """Return how a record in no board's place comes to its place.

    :param row: the claim that the database has. Where it says something else of the same claim, that is said, too.
    """
    claim, why = kept.claim, _stays(proxy, path, kept.claim.board, row)
    way = why or proxy.store.way_back(path, claim.board)
    return RIGHT.format(way=way) if why is None and claim.is_same(row) and claim != row else way


def _beside(proxy: Proxy, path: str, kept: Kept, here: Kept, row: Claim | None) -> str:
    """Return what is said of a record beside the one in its place.

    The one in its place may be of a later claim, or, of the same claim, written later or know more. One that was
    written anew after it was lost is the older one.

    :param here: the one in its place.
    """
    if here == kept:
        return SAME
    if not here.claim.is_same(kept.claim):
        return OLDER if kept.claim.created > here.claim.created else LATER
    less, more = record_order.knows_less(kept, here), record_order.knows_less(here, kept)
    if less:
        return APART if more else NEWER
    later = record_order.written(path) > record_order.written(proxy.store.path_of_kept(kept.claim.board))
    if record_order.is_older(proxy, here, row) or (later if here.anew == kept.anew else here.anew):
        return OLDER
    return BEFORE if more else NEWER


def _lease(claim: Claim) -> str:
    return "without end" if claim.expires is None else until(claim.expires, time.time())
