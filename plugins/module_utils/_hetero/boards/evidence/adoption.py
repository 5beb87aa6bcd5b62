# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Adopt claims from their own records (records/claim_records.py) into a database that lacks them or differs from them,
because it was lost or put back from an old backup.

A claim is adopted where there is evidence for it: a root that was made for this very claim, and a board that shows its
key or whose outlet is off. A contradiction is reported and left to a person. verbs/reconciliation.py looks at the
boards.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Collection

from ...core.errors import HeteroError, Refused
from ...core.plays import play
from ...core.this_node import THIS_NODE
from ...roots.ownership import (
    FORGOTTEN,
    forgotten_of,
    has_root,
    is_borne_out,
    is_lost,
    is_of_claim,
    kept_of,
    refuse_anothers,
    unproven,
    why_not_of,
)
from ...roots.provision import made_ready
from ...site import board_states
from ...site.board_states import ERROR, MAINTENANCE, POWER_OFF, RUNNING, SHUTTING_DOWN
from ...site.leases import as_date, until
from ...site.owners import refuse_taken
from ..power.presence import OTHER_KEY, OWN_KEY
from ..records.board_records import NOBODYS
from ..records.lost_database import way_by_copy
from ..records.misfiled_records import ADOPT, astray, said_of
from .unknown_leases import LOST, OLDER_RECORD, unknown_lease
from .unserved_boards import NOT, way_on

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ..records.claim_records import Claim, Kept
    from ..records.proxy import Proxy
    from .looked_board import LookedBoard, LookedWork

#: States that an adopted board keeps, whatever its outlet is: their notes tell a person what to look after.
KEEPS = (ERROR, MAINTENANCE)
PUT_BACK = (
    "put a newer backup of the database back; or, once its owner agrees, stop and clean the board (modules tilera_boot "
    "with state=stopped, board_image with state=absent)"
)
END = play("terminate_instance", instance="{name}")
FORGET = (
    "nothing is touched: put a newer backup of the database back; correct the boards file, where boards got other "
    f"numbers or MACs; or, where both are right, {play('reconcile', forget='{name}')} ends {{name}}'s claim, and "
    "touches nothing of the board"
)
NO_FORGETTING = (
    f"nothing on the board is another's, so forget does not end {{name}}'s claim: {END} ends it, and frees the board"
)
RUNS = (
    "it runs {name} and shows its key, so its claim is not ended: correct what contradicts it (the boards file, where "
    f"boards got other numbers or MACs); {END} ends it"
)
ENDED_RECORD = "the record of {name}'s claim is here, and that claim has ended"
#: What is done where an operator says that the database is right.
ANEW = "written anew, the record only (root and board are not touched)"


def contradiction_of(proxy: Proxy, board: Board, claim: Claim | None) -> Refused | None:
    """Return the error for which verbs refuse a board (ownership.refuse_anothers); None where they do not."""
    try:
        refuse_anothers(proxy, board, claim)
    except Refused as error:
        return error
    return None


def is_of_nobody_else(proxy: Proxy, board: Board, claim: Claim) -> bool:
    """Return whether a claim's record cannot be read, and the board's root is proven to be that claim's.

    The end of the claim may then remove that record, too. False where it may be the only record of another board.
    """
    try:
        proxy.store.kept(board.id)
    except HeteroError as error:
        only = "of" in error.facts and not proxy.store.is_copy(error)
        return not only and is_of_claim(proxy, board, claim) and contradiction_of(proxy, board, claim) is None
    return False


def doubt_of(proxy: Proxy, board: Board, claim: Claim, power: str | None) -> Refused | None:
    """Return the error of a claim that only the database has, and which may be older than the board's present tenant.

    :param power: "on" or "off", as the outlet is; None where that is not known.
    :returns: None where the outlet is off and there is no root, or where anything else says that the claim is right.
    """
    doubtful = (power != "off" or has_root(proxy, board)) and not is_borne_out(proxy, board, claim)
    return unproven(board, claim) if doubtful else None


def end_by_word(proxy: Proxy, look: LookedBoard, names: Collection[str]) -> str | None:
    """End a board's claim that is only in the database, where an operator says that it ended since the backup.

    It is ended only where another's root, disk or record contradicts it, or nothing else says that it is right. The
    contradicting root or record is then looked at as that of a board without a claim.

    :param names: instances of which an operator says that.
    :returns: the instance whose claim was ended, or would be in check mode; None where none was.
    """
    work, row = look.work, look.work.claim
    if row is None or row.instance not in names:
        return None
    against = work.contradiction
    if against is None and look.ssh != OWN_KEY:
        against = doubt_of(proxy, work.board, row, look.power)
    if against is None:
        look.note(NO_FORGETTING.format(name=row.instance))
        return None
    if look.ssh == OWN_KEY and is_of_claim(proxy, work.board, row):
        look.note(RUNS.format(name=row.instance))
        return None
    why = against.what
    if work.note(f"{work.board.name} claim", _shown(row), {}):
        proxy.store.forget(row, why)
        work.contradiction = None
        work.read()
        look.mend(why, f"{row.instance}'s claim was ended")
    else:
        look.mend(why, f"{row.instance}'s claim would be ended")
        look.settled = True
    return row.instance


def propose(proxy: Proxy, look: LookedBoard, wanted: Collection[str]) -> None:
    """Find the claim that may be adopted for a board whose own record has another claim than the database.

    The claim is put into the work's record while the board is looked at. What cannot be adopted is reported.

    :param wanted: instances for which an operator says that the database is right.
    """
    work, row = look.work, look.work.claim
    try:
        kept = proxy.store.kept(work.board.id)
    except HeteroError as error:
        _unreadable(proxy, look, error, wanted)
        return
    if kept is None or kept.claim == row:
        if row is not None:
            _as_in_database(proxy, look, row, wanted, recorded=kept is not None)
        return
    if row is not None and is_stale(proxy, work.board, row, work.contradiction, kept.claim):
        found, unknown = OLDER_RECORD.format(name=kept.claim.instance), unknown_lease(proxy, row)
        if unknown and row.instance not in wanted:
            _leave(look, ": ".join(unknown))
        else:
            _keep_anew(proxy, look, found, ANEW if unknown else "corrected")
        return
    name, nothing_left = kept.claim.instance, row is None and _is_left_over(proxy, look, kept.claim)
    if nothing_left and name not in wanted and proxy.store.was_released(kept.claim):
        _keep_anew(proxy, look, ENDED_RECORD.format(name=name), "removed")
        return
    why = _objection(proxy, work, kept)
    if why is None and not kept.is_somebodys and not kept.claim.is_same(row):
        _forget(proxy, look, kept)
    elif why and row is not None and not is_of_claim(proxy, work.board, kept.claim):
        found = f"is {name}'s by {proxy.store.path_of_kept(work.board.id)}, but {why}"
        _by_word(proxy, look, row.instance, found, wanted)
    elif why:
        _leave(look, f"is {name}'s by {proxy.store.path_of_kept(work.board.id)}, but {why}: {NOT}: {PUT_BACK}")
    else:
        look.kept = kept
        work.record = replace(work.record, claim=kept.claim)


def _as_in_database(proxy: Proxy, look: LookedBoard, row: Claim, wanted: Collection[str], recorded: bool) -> None:
    """Report what is wrong with a claim of the database that the board's own record confirms, or that has no record.

    :param recorded: True where there is a record, which says the same as the database.
    """
    work = look.work
    if work.contradiction:
        way = way_by_copy(proxy, work.board.id)
        _leave(look, f"{work.contradiction.what}: {FORGET.format(name=row.instance)}{way}")
    elif not recorded and forgotten_of(proxy, work.board, row):
        _leave(look, f"{forgotten_of(proxy, work.board, row)}: {FORGOTTEN}")
    elif not recorded and (row.instance in wanted or not _is_left_over(proxy, look, row)):
        _lost(proxy, look, row, wanted)


def _is_left_over(proxy: Proxy, look: LookedBoard, claim: Claim) -> bool:
    return look.power == "off" and is_lost(proxy, look.work.board, claim)


def _lost(proxy: Proxy, look: LookedBoard, row: Claim, wanted: Collection[str]) -> None:
    """Write the record of a claim that is only in the database anew, or report why that needs an operator's word."""
    doubt = doubt_of(proxy, look.work.board, row, look.power)
    there = astray(proxy, row)
    if (there or doubt) and row.instance not in wanted:
        _leave(look, there or str(doubt))
    elif row.expires is None or not proxy.store.is_record_lost(row):
        _keep_anew(proxy, look, f"{row.instance}'s claim is in the database only", "written beside it, too")
    elif row.instance in wanted:
        _keep_anew(proxy, look, f"the record of {row.instance}'s claim is lost", ANEW)
    else:
        _leave(look, LOST.format(name=row.instance))


def _by_word(proxy: Proxy, look: LookedBoard, name: str, found: str, wanted: Collection[str]) -> None:
    """Ask an operator which is right: a record whose root is not here, or the claim of the database.

    :param name: the instance that has the board by the database.
    """
    if name in wanted:
        _keep_anew(proxy, look, found, ANEW)
    else:
        _leave(look, f"{found}: {NOT}: {PUT_BACK}; or {ADOPT.format(name=name)} says that the database is right")


def _unreadable(proxy: Proxy, look: LookedBoard, error: HeteroError, wanted: Collection[str]) -> None:
    """Report that a board's record cannot be read, or is another board's; write it anew where an operator says so."""
    work, row = look.work, look.work.claim
    text, by_word = said_of(proxy, work.board, row, work.contradiction, error)
    if by_word and row is not None and row.instance in wanted:
        _keep_anew(proxy, look, f"{error.thing}: {error.what}", ANEW)
    else:
        _leave(look, text)


def decide(proxy: Proxy, look: LookedBoard, kept: Kept, wanted: Collection[str]) -> None:
    """Adopt the proposed claim where the board's outlet and answer confirm it, else report the contradiction.

    :param kept: the record of the claim that was proposed.
    :param wanted: instances whose records an operator has confirmed, whatever their boards answer.
    """
    work = look.work
    name = kept.claim.instance
    work.record = proxy.store.record(work.board.id)
    why = "its outlet is not known" if look.power is None else _contradicted(look)
    if look.power is None or (why and name not in wanted):
        _leave(look, f"is {name}'s by the record of its claim, but {why}: {way_on(proxy, look, kept.claim)}")
        return
    state, note = _state(look, kept)
    proof = why or ("it shows its own key" if look.ssh == OWN_KEY else "its outlet is off")
    found = f"is {name}'s of {kept.claim.owner} by its root and the record of its claim, {proof}"
    found += _other_lease(work.claim, kept.claim)
    if work.note(f"{work.board.name} claim", _shown(work.claim), _shown(kept.claim)):
        on = look.power == "on" and kept.note != NOBODYS.format(name=name)
        proxy.store.adopt(replace(kept, ran=kept.ran or look.ssh == OWN_KEY), state, note, proof, on)
        work.read()
        work.contradiction = None
        look.mend(found, "adopted")
    else:
        look.mend(found, "would be adopted")
        look.settled = True


def catch_up(proxy: Proxy, claim: Claim) -> Claim:
    """Return a claim as its own record has it, where the database lacks the root that was made for it.

    The record is written before the database. The database therefore lacks the root where a writer was killed, or where
    it was put back from a backup of just after the claim, and the root would be made anew. The caller holds the board's
    lock, or is in a transaction.
    """
    board = proxy.boards.get(claim.board)
    if claim.image_hash or board is None:
        return claim
    with proxy.store.transaction():  # no other process has written the record and not yet the database
        claim = proxy.store.claim_of(claim.instance) or claim
        kept = kept_of(proxy, claim)
        if kept is None or claim.image_hash or not is_of_claim(proxy, board, kept.claim):
            return claim
        proxy.store.adopt(kept, kept.state, kept.note, "the root that its record names is there")
        return kept.claim


def _other_lease(row: Claim | None, claim: Claim) -> str:
    """Return a text on a lease that differs between database and record; an empty one where it does not."""
    if row is None or not claim.is_same(row) or claim.expires == row.expires:
        return ""
    now = time.time()
    return f"; its lease, by the database {until(row.expires, now)}, is {until(claim.expires, now)}"


def _leave(look: LookedBoard, text: str) -> None:
    look.note(text)
    look.settled = look.left = True


def _keep_anew(proxy: Proxy, look: LookedBoard, found: str, done: str) -> None:
    if not look.work.change.check:
        proxy.store.keep_anew(look.work.board.id)
    look.mend(found, f"would be {done}" if look.work.change.check else done)


def _forget(proxy: Proxy, look: LookedBoard, kept: Kept) -> None:
    """Remove the record of a claim for which nothing was made yet; report it where its board is on or has a root."""
    work, name = look.work, kept.claim.instance
    if look.power != "off" or made_ready(proxy, work.board):
        _leave(look, f"is claimed for {name} by its record, by which its root was yet to be made: {NOT}: {PUT_BACK}")
        return
    _keep_anew(proxy, look, f"was claimed for {name}, for whom nothing was made yet", "given back")


def is_stale(proxy: Proxy, board: Board, row: Claim, contradiction: Refused | None, claim: Claim) -> bool:
    """Return whether a record is older than the database: the root is that of the database's claim, or there is none.

    :param row: the claim that the database has.
    :param contradiction: the error that contradicts this claim (contradiction_of), or None.
    :param claim: the claim that the record has.
    """
    if contradiction:
        return False
    if claim.is_same(row):
        # A record is written before the database, so it is usually the newer one. But the root that it names must be
        # there, and a rebuild that was cut off has not removed the root of before.
        return row.image_hash is not None and is_of_claim(proxy, board, row) and claim.image_hash != row.image_hash
    return is_of_claim(proxy, board, row) or (claim.created < row.created and not made_ready(proxy, board))


def _objection(proxy: Proxy, work: LookedWork, kept: Kept) -> str | None:
    """Return why a claim of a record cannot be adopted, whatever its board answers; None where it can be."""
    claim, row = kept.claim, work.claim
    if claim.created > time.time() + 86400 and not claim.is_same(row):  # no play takes an answer with it (is_made)
        return f"it was claimed at {as_date(claim.created)}, which is still to come by the clock of {THIS_NODE}"
    elsewhere = proxy.store.claim_of(claim.instance)
    if elsewhere is not None and elsewhere.board != claim.board and not _moved_here(proxy, claim, elsewhere):
        return f"{claim.instance} has board{elsewhere.board} by the database"
    others = [vars(one) for one in proxy.store.claims() if one.board != work.board.id]
    try:
        refuse_taken(others, claim.request, [claim.instance], claim.owner)
    except Refused as error:
        return str(error)
    if claim.is_same(row) and not claim.image_hash:
        return None
    return why_not_of(proxy, work.board, claim, work.change.check) if claim.image_hash else None


def _moved_here(proxy: Proxy, claim: Claim, elsewhere: Claim) -> bool:
    """Return whether a claim moved here after the backup: the database has it on another board, which has no root."""
    board = proxy.boards.get(elsewhere.board)
    left = board is None or made_ready(proxy, board)
    return claim.is_same(elsewhere) and not elsewhere.image_hash and not left


def _contradicted(look: LookedBoard) -> str | None:
    """Return what contradicts a claim, by the board's outlet and its answer; None where nothing does."""
    if look.ssh == OWN_KEY:
        return None  # whatever its outlet says
    if look.ssh == OTHER_KEY:
        return f"another host key answers at {look.work.board.ip}"
    if look.power == "on":
        return "its outlet is on, and it does not show its key"
    return None if look.ssh is None else f"its outlet is off, and something answers at {look.work.board.ip}"


def _state(look: LookedBoard, kept: Kept) -> tuple[str, str]:
    """Return (state, note) that a board gets when its claim is adopted."""
    if kept.state in KEEPS:
        return kept.state, kept.note
    if look.ssh == OWN_KEY or look.power == "on":
        return RUNNING, ""
    if kept.state == SHUTTING_DOWN:
        return kept.state, kept.note
    return POWER_OFF, kept.note if kept.state == POWER_OFF else board_states.FOUND_OFF


def _shown(claim: Claim | None) -> dict[str, Any]:
    return dict(vars(claim), flavor=claim.flavor.get("name")) if claim else {}
