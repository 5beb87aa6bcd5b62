# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims that the database does not have, or has otherwise, taken over from their own records
(records/claim_records.py): after it was lost, or put back from an old backup.

What carries its own evidence is adopted: a root that was made for this very claim, and a board that shows its key, or
whose outlet is off. What contradicts itself is said and left to a person. How boards are asked is
verbs/reconciliation.py's.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Collection

from ...core.errors import HeteroError, Refused
from ...core.plays import play
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
from ...site.leases import until
from ...site.owners import refuse_taken
from ..power.power_proof import PLUGS
from ..power.presence import OTHER_KEY, OWN_KEY
from ..records.lost_database import way_by_copy
from ..records.misfiled_records import ADOPT, WORD, astray, said_of

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ..records.claim_records import Claim, Kept
    from ..records.proxy import Proxy
    from .looked_board import LookedBoard, LookedWork

#: States that an adopted board keeps, whatever its outlet says: who is to look after it was told there.
KEEPS = (ERROR, MAINTENANCE)
PUT_BACK = (
    "put a newer backup of the database back; or, once its owner agrees, stop and clean the board (modules tilera_boot "
    "with state=stopped, board_image with state=absent)"
)
NOT = "not adopted, nothing of it is touched"
END = play("terminate_instance", instance="{name}")
ASK = f"{NOT}: {PLUGS}; once it is known to be {{name}}'s, {ADOPT} takes its record's word"
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
#: What is done by a word that the database is right.
ANEW = "written anew, the record only (root and board are not touched)"
LOST = (
    "the record of {name}'s claim is lost, and the database may be older than what it said: nothing is touched, and "
    f"its lease is not ended: where the database is right (see its lease: {play('status')}), {ADOPT} has it written "
    "anew"
)
LOST_ENDLESS = f"the record of {{name}}'s claim is lost: {play('reconcile')} writes it anew"


def unknown_lease(proxy: Proxy, claim: Claim) -> tuple[str, str] | None:
    """(what, remedy) where the record of a claim is lost, or cannot be read, and may have known of a later end of its
    lease; None where the end of the lease is known, or there is none.
    """
    if claim.expires is None:
        return None
    try:
        kept = proxy.store.kept(claim.board)
    except HeteroError as error:
        return f"{error.thing}: {error.what}", WORD.format(name=claim.instance)
    if kept is not None or not is_record_lost(proxy, claim):
        return None
    what, _colon, remedy = (astray(proxy, claim) or LOST.format(name=claim.instance)).partition(": ")
    return what, remedy


def must_know_the_lease(proxy: Proxy, claim: Claim) -> None:
    """Refused where the lease of a claim is not known: its record would be written anew, with the one of the database.

    :raises Refused: as unknown_lease.
    """
    unknown = unknown_lease(proxy, claim)
    if unknown:
        what, remedy = unknown
        raise Refused(what, f"board{claim.board}", remedy)


def is_record_lost(proxy: Proxy, claim: Claim) -> bool:
    """Whether a claim had a record that is gone."""
    return any(lost.is_same(claim) for lost in proxy.store.lost())


def contradiction_of(proxy: Proxy, board: Board, claim: Claim | None) -> Refused | None:
    """What any verb refuses a board for (ownership.refuse_anothers); None where nothing contradicts its claim."""
    try:
        refuse_anothers(proxy, board, claim)
    except Refused as error:
        return error
    return None


def is_of_nobody_else(proxy: Proxy, board: Board, claim: Claim) -> bool:
    """Whether the record of a claim cannot be read, and what was made for the board is proven to be that claim's.

    Whoever ends the claim then ends that record, too. One that may be the only one of another board is not touched.
    """
    try:
        proxy.store.kept(board.id)
    except HeteroError as error:
        only = "of" in error.facts and not proxy.store.is_copy(error)
        return not only and is_of_claim(proxy, board, claim) and contradiction_of(proxy, board, claim) is None
    return False


def doubt_of(proxy: Proxy, board: Board, claim: Claim, power: str | None) -> Refused | None:
    """The error of a claim that only the database has, and that may be older than who has the board; None for none.

    :param power: what its outlet is, None where nobody knows.
    """
    doubtful = (power != "off" or has_root(proxy, board)) and not is_borne_out(proxy, board, claim)
    return unproven(board, claim) if doubtful else None


def end_by_word(proxy: Proxy, look: LookedBoard, names: Collection[str]) -> str | None:
    """End the claim of the database against which there is another's root, disk or record, or that nothing else bears
    out, by an operator's word.

    It is a claim that ended since the database was copied; what speaks against it is then looked at as nobody's.

    :param names: instances of which an operator says that.
    :returns: the instance whose claim was ended, or would be; None where none was.
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
    """Find the claim that a board is to be asked for, where its own record gives it another than the database does.

    The claim is put into the board's record for the time it is asked. What cannot be adopted is said.

    :param wanted: names of which the database is believed where their record cannot be read, or is another board's.
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
        _keep_anew(
            proxy, look, f"the record of {kept.claim.instance}'s claim is older than the database's", "corrected"
        )
        return
    why = _objection(proxy, work, kept)
    if why is None and not kept.is_somebodys and not kept.claim.is_same(row):
        _forget(proxy, look, kept)
    elif why and row is not None and not is_of_claim(proxy, work.board, kept.claim):
        found = f"is {kept.claim.instance}'s by {proxy.store.path_of_kept(work.board.id)}, but {why}"
        _by_word(proxy, look, row.instance, found, wanted)
    elif why:
        name = kept.claim.instance
        _leave(look, f"is {name}'s by {proxy.store.path_of_kept(work.board.id)}, but {why}: {NOT}: {PUT_BACK}")
    else:
        look.kept = kept
        work.record = replace(work.record, claim=kept.claim)


def _as_in_database(proxy: Proxy, look: LookedBoard, row: Claim, wanted: Collection[str], recorded: bool) -> None:
    """Say what is wrong with a claim of the database to which the board's own record adds nothing.

    :param recorded: whether there is a record, which says the same.
    """
    work = look.work
    if work.contradiction:
        way = way_by_copy(proxy, work.board.id)
        _leave(look, f"{work.contradiction.what}: {FORGET.format(name=row.instance)}{way}")
    elif not recorded and forgotten_of(proxy, work.board, row):
        _leave(look, f"{forgotten_of(proxy, work.board, row)}: {FORGOTTEN}")
    elif not recorded and (row.instance in wanted or not _is_left_over(proxy, look, row)):
        _lost(proxy, look, row, wanted)


def _is_left_over(proxy: Proxy, look: LookedBoard, row: Claim) -> bool:
    return look.power == "off" and is_lost(proxy, look.work.board, row)


def _lost(proxy: Proxy, look: LookedBoard, row: Claim, wanted: Collection[str]) -> None:
    """A claim is in the database only; one without an end of its lease has none that may be too early."""
    doubt = doubt_of(proxy, look.work.board, row, look.power)
    there = astray(proxy, row)
    if (there or doubt) and row.instance not in wanted:
        _leave(look, there or str(doubt))
    elif row.expires is None or not is_record_lost(proxy, row):
        _keep_anew(proxy, look, f"{row.instance}'s claim is in the database only", "written beside it, too")
    elif row.instance in wanted:
        _keep_anew(proxy, look, f"the record of {row.instance}'s claim is lost", ANEW)
    else:
        _leave(look, LOST.format(name=row.instance))


def _by_word(proxy: Proxy, look: LookedBoard, name: str, found: str, wanted: Collection[str]) -> None:
    """Let an operator say which is right: a record whose root is not here, or the claim of the database.

    :param name: the instance that has the board by the database.
    """
    if name in wanted:
        _keep_anew(proxy, look, found, ANEW)
    else:
        _leave(look, f"{found}: {NOT}: {PUT_BACK}; or {ADOPT.format(name=name)} says that the database is right")


def _unreadable(proxy: Proxy, look: LookedBoard, error: HeteroError, wanted: Collection[str]) -> None:
    """Say of a board that its record says nothing of it: it cannot be read, or is another board's."""
    work, row = look.work, look.work.claim
    text, by_word = said_of(proxy, work.board, row, work.contradiction, error)
    if by_word and row is not None and row.instance in wanted:
        _keep_anew(proxy, look, f"{error.thing}: {error.what}", ANEW)
    else:
        _leave(look, text)


def decide(proxy: Proxy, look: LookedBoard, kept: Kept, wanted: Collection[str]) -> None:
    """Adopt what was proposed, where what was seen of the board bears it out.

    :param kept: the claim that was proposed.
    :param wanted: names whose records are believed whatever the board answers.
    """
    work = look.work
    name = kept.claim.instance
    work.record = proxy.store.record(work.board.id)
    why = "its outlet is not known" if look.power is None else _contradicted(look)
    if look.power is None or (why and name not in wanted):
        _leave(look, f"is {name}'s by the record of its claim, but {why}: {ASK.format(name=name)}")
        return
    state, note = _state(look, kept)
    proof = why or {True: "it shows its own key"}.get(look.ssh == OWN_KEY, "its outlet is off")
    found = f"is {name}'s of {kept.claim.owner} by its root and the record of its claim, {proof}"
    found += _other_lease(work.claim, kept.claim)
    if work.note(f"{work.board.name} claim", _shown(work.claim), _shown(kept.claim)):
        proxy.store.adopt(kept, state, note, proof)
        work.read()
        work.contradiction = None
        look.mend(found, "adopted")
    else:
        look.mend(found, "would be adopted")
        look.settled = True


def catch_up(proxy: Proxy, claim: Claim) -> Claim:
    """Return a claim as its own record has it, where the database does not know, or no more, of the root made for it.

    The record is written first: a writer that was killed, and a backup from just after the claim, leave the database
    behind it. What was made would else be made anew. The caller holds the board's lock, or is in a transaction.
    """
    board = proxy.boards.get(claim.board)
    if claim.image_hash or board is None:
        return claim
    with proxy.store.transaction():  # nobody is between its record and its row
        claim = proxy.store.claim_of(claim.instance) or claim
        kept = kept_of(proxy, claim)
        if kept is None or claim.image_hash or not is_of_claim(proxy, board, kept.claim):
            return claim
        proxy.store.adopt(kept, kept.state, kept.note, "the root that its record names is there")
        return kept.claim


def _other_lease(row: Claim | None, claim: Claim) -> str:
    """Return what is said of a lease that the database has otherwise."""
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
    """A claim for which nothing was made yet holds nothing of anybody: who asked asks again."""
    work, name = look.work, kept.claim.instance
    if look.power != "off" or made_ready(proxy, work.board):
        _leave(look, f"is claimed for {name} by its record, by which its root was yet to be made: {NOT}: {PUT_BACK}")
        return
    _keep_anew(proxy, look, f"was claimed for {name}, for whom nothing was made yet", "given back")


def is_stale(proxy: Proxy, board: Board, row: Claim, contradiction: Refused | None, claim: Claim) -> bool:
    """Whether the database knows better than a record: of its claim there is the root, or nothing at all.

    :param row: the claim that the database has.
    :param contradiction: what is against that (contradiction_of).
    :param claim: the one that the record has.
    """
    if contradiction:
        return False
    if claim.is_same(row):
        # It is written before the database is, so it is the newer one; but what it says was made is to be there, and
        # a rebuild that came to nothing takes no root.
        return row.image_hash is not None and is_of_claim(proxy, board, row) and claim.image_hash != row.image_hash
    return is_of_claim(proxy, board, row) or (claim.created < row.created and not made_ready(proxy, board))


def _objection(proxy: Proxy, work: LookedWork, kept: Kept) -> str | None:
    """Why a claim cannot be adopted whatever its board answers; None where it can."""
    claim, row = kept.claim, work.claim
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
    """Whether a claim has moved since the database was copied, which has it on another board: its root is only here."""
    board = proxy.boards.get(elsewhere.board)
    left = board is None or made_ready(proxy, board)
    return claim.is_same(elsewhere) and not elsewhere.image_hash and not left


def _contradicted(look: LookedBoard) -> str | None:
    """What of power and answer contradicts a claim; None where they bear it out."""
    if look.ssh == OWN_KEY:
        return None  # whatever its outlet says
    if look.ssh == OTHER_KEY:
        return f"another host key answers at {look.work.board.ip}"
    if look.power == "on":
        return "its outlet is on, and it does not show its key"
    return None if look.ssh is None else f"its outlet is off, and something answers at {look.work.board.ip}"


def _state(look: LookedBoard, kept: Kept) -> tuple[str, str]:
    """(state, note) of a board whose claim is adopted."""
    if kept.state in KEEPS:
        return kept.state, kept.note
    if look.ssh == OWN_KEY or look.power == "on":
        return RUNNING, ""
    if kept.state == SHUTTING_DOWN:
        return kept.state, kept.note
    return POWER_OFF, kept.note if kept.state == POWER_OFF else board_states.FOUND_OFF


def _shown(claim: Claim | None) -> dict[str, Any]:
    return dict(vars(claim), flavor=claim.flavor.get("name")) if claim else {}
