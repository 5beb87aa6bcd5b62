# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes of `status` on the record of a board's claim: it is lost, unreadable, or newer than the database.

This file only reads; adoption.py acts on the same facts.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Container

from ...core.errors import HeteroError
from ...core.plays import play
from ...site.leases import until
from ..records.misfiled_records import ADOPT, astray, said_of
from .adoption import contradiction_of, doubt_of, is_stale
from .unknown_leases import LOST, LOST_ENDLESS, unknown_lease

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ..records.board_records import Record
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy

NEWER = f"the database is older than it: run {play('reconcile')}"


def told_of_record(proxy: Proxy, board: Board, record: Record, lost: Container[int]) -> str | None:
    """Return the note of `status` on the record of a board's claim.

    :returns: None where nobody has the board, or where the record says what the database says.
    :param record: board_records.Record of the board.
    :param lost: ids of boards whose claims' records are gone.
    """
    claim = record.claim
    if claim is None:
        return None
    name = claim.instance
    try:
        kept = proxy.store.kept(board.id)
    except HeteroError as error:
        text, by_word = said_of(proxy, board, claim, contradiction_of(proxy, board, claim), error)
        brief = by_word and not astray(proxy, claim)
        return f"{error.thing}: {error.what}: {ADOPT.format(name=name)}" if brief else text
    if kept:
        newer = _told_of_newer(proxy, board, kept.claim)
        unknown = None if newer or kept.claim.is_same(claim) else unknown_lease(proxy, claim)
        return ": ".join(unknown) if unknown else newer
    if board.id not in lost or proxy.store.is_ending(claim):
        return None  # the claim is ending, and its record goes first
    there = astray(proxy, claim)
    if there:
        return there
    doubt = doubt_of(proxy, board, claim, record.power or "off")
    if doubt:
        return f"{doubt.what}: {doubt.remedy}"
    return LOST.format(name=name) if claim.expires is not None else LOST_ENDLESS.format(name=name)


def _told_of_newer(proxy: Proxy, board: Board, claim: Claim) -> str | None:
    """Return the note on a record that is newer than the database; None where it is not.

    The database is read once more, after the record, for each change of a claim is written to the record first.
    """
    row = proxy.store.record(board.id).claim
    if row is None or claim == row or is_stale(proxy, board, row, contradiction_of(proxy, board, row), claim):
        return None
    if not claim.is_same(row):
        return f"is {claim.instance}'s of {claim.owner} by the record of its claim; {NEWER}"
    if claim.expires != row.expires:
        return f"the record of its claim has another lease: {until(claim.expires, time.time())}; {NEWER}"
    others = [name.replace("_", " ") for name, value in vars(claim).items() if value != vars(row)[name]]
    return f"the record of its claim has another {' and '.join(others)}; {NEWER}"
