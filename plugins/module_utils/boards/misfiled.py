# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a file in the place of a board's record that says nothing of that board: it cannot be read, or is
another board's; and of records that lie in no board's place. Reads only; what is done about it is adopting.py's.
"""

from __future__ import annotations

import os
import time

from ..errors import HeteroError
from ..images.ownership import FORGOTTEN, forgotten_of, is_of_claim
from ..leases import until
from ..plays import play
from .lost_database import way_by_copy

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

#: Boards whose records lie in each other's places are put right by one command, which is said of the first of them.
OTHERS = "what is said of board{first} brings it to its place"
ELSEWHERE = (
    "the record of {name}'s claim is not in its place, and {path} is one of that claim, by which its lease is {lease}: "
    f"nothing is touched: where that is right, {{way}}; where the database is right ({play('status')}), {ADOPT} has "
    "it written anew"
)
#: What is said of a file that is called as no record is, and is one.
STRAY = "record of {name}'s claim on board{number} (lease {lease}), which nothing reads there: "
ENDED = "that claim has ended: remove it once nobody wants it"
SAME = "its place has the same one: remove this one once nobody wants it"
NEWER = "its place has one that knows as much or more (lease {lease}): remove this one once nobody wants it"
LATER = "its place has that of {other}'s later claim: remove this one once it is known that {name}'s claim has ended"
OLDER = "its place has one that may know less ({other}'s, lease {lease}): {way}"


def said_of(proxy, board, row, contradiction, error):
    """(what is said of a record that cannot be read, whether a word for the row's instance has it written anew)."""
    found, other = f"{error.thing}: {error.what}", error.facts.get("of")
    if other is not None and not proxy.store.is_copy(error):
        return f"{found}, {MOVE.format(way=way_of(proxy, error.thing, other), number=other)}", False
    if row is None or contradiction:
        return f"{error}{way_by_copy(proxy, board.id)}", False
    forgotten = forgotten_of(proxy, board, row)
    if forgotten:
        return f"{forgotten}: {FORGOTTEN}", False
    if row.image_hash and not is_of_claim(proxy, board, row):
        return f"{found}, {NO_PROOF.format(name=row.instance)}", False
    there = astray(proxy, row)
    return (f"{found}; {there}" if there else f"{found}, {WORD.format(name=row.instance)}"), True


def way_of(proxy, path, board):
    """How a board's record comes to its place from where it lies; a command for several is said of one of them only."""
    ring = proxy.store.ring(path)
    if ring and proxy.store.path_of_kept(ring[0]) != path:
        return OTHERS.format(first=ring[0])
    return proxy.store.way_back(path, board)


def astray(proxy, claim):
    """What is said where a record of a claim, which has none in its place, lies elsewhere; None where none does."""
    own = proxy.store.path_of_kept(claim.board)
    for path, kept in proxy.store.kept_anywhere():
        if path != own and kept.claim.is_same(claim) and kept.claim.board == claim.board:
            place = min([*proxy.store.ring(path), *proxy.store.place_of(path)], default=None)
            way = proxy.store.way_back(path, claim.board) if place is None else OTHERS.format(first=place)
            return ELSEWHERE.format(name=claim.instance, path=path, lease=_lease(kept), way=way)
    return None


def stray(proxy, path, kept):
    """What is said of a whole record of a claim in no board's place. The only one of a claim is never to be removed."""
    claim = kept.claim
    said = STRAY.format(name=claim.instance, number=claim.board, lease=_lease(kept))
    if proxy.store.has_ended(claim) and not claim.is_same(proxy.store.record(claim.board).claim):
        return said + ENDED
    way = proxy.store.way_back(path, claim.board)
    try:
        here = proxy.store.kept(claim.board)
    except HeteroError:
        here = None
    if here is None:
        return said + way
    own = proxy.store.path_of_kept(claim.board)
    text = SAME if here == kept else OLDER if _is_newer(path, kept, here, own) else NEWER
    text = LATER if text == NEWER and not here.claim.is_same(claim) else text
    return said + text.format(name=claim.instance, other=here.claim.instance, lease=_lease(here), way=way)


def _is_newer(path, kept, here, own):
    """Whether a record is newer than the one in its place: of a later claim, or, of the same one, written later; what
    was written anew after it was lost is the older one.
    """
    if not here.claim.is_same(kept.claim):
        return kept.claim.created > here.claim.created
    if here.anew != kept.anew:
        return here.anew
    return os.stat(path).st_mtime > os.stat(own).st_mtime


def _lease(kept):
    expires = kept.claim.expires
    return "without end" if expires is None else until(expires, time.time())
