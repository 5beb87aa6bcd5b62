# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a file in the place of a board's record that says nothing of that board: it cannot be read, or is
another board's. Reads only; what is done about it is adopting.py's.
"""

from __future__ import annotations

from ..images.ownership import FORGOTTEN, forgotten_of, is_of_claim
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


def said_of(proxy, board, row, contradiction, error):
    """(what is said of a record that cannot be read, whether a word for the row's instance has it written anew)."""
    found, other = f"{error.thing}: {error.what}", error.facts.get("of")
    if other is not None and not proxy.store.is_copy(error):
        return f"{found}, {MOVE.format(way=proxy.store.way_back(error.thing, other), number=other)}", False
    if row is None or contradiction:
        return f"{error}{way_by_copy(proxy, board.id)}", False
    forgotten = forgotten_of(proxy, board, row)
    if forgotten:
        return f"{forgotten}: {FORGOTTEN}", False
    if row.image_hash and not is_of_claim(proxy, board, row):
        return f"{found}, {NO_PROOF.format(name=row.instance)}", False
    return f"{found}, {WORD.format(name=row.instance)}", True
