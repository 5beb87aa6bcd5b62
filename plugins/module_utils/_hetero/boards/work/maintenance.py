# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take boards out of use for an operator, and put them back; nothing is switched or removed.

A board is put back only when its outlet is read as off and nothing is left on it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Sequence

from ...core.errors import BadInput, Refused
from ...core.plays import play
from ...roots.provision import leftovers
from ...site import board_states
from ..evidence.free_boards import refuse_somebodys, served, unknown_tenant
from ..power.last_outlet import Feeds
from ..power.outlet_power import outlet_power
from ..records.disk_records import used
from ..records.maintenance_records import LONGEST, STATES, agree
from ..records.store import NOBODY, must_be_of
from .each_board import each

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...core.deadline import Deadline
    from ...site.boards_file import Board
    from ..records.board_records import Record
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy
    from .each_board import Report
    from .looks import Look

PHASE = "maintenance"
#: The remedy for a board that somebody has.
ENDED_FIRST = f"once its owner agrees, {play('terminate_instance', instance='{name}')} ends it; then run this again"
#: The remedy for one whose check goes on, or was killed: `hetero reap` frees that (verbs/ended_checks.py).
CHECKED = "run this again in a minute, once its check has ended"
#: The remedy for a board out of use by its own record that somebody has by the database.
BY_DATABASE = (
    "{name} has it by the database: where that is older, once its owner agrees, "
    f"{play('terminate_instance', instance='{name}')} ends it, and {play('reconcile')} keeps the board out of use; "
    f"where it is right, {play('maintenance', node='{board}', state='off')} ends that record, and touches nothing else"
)


def begin(proxy: Proxy, ids: Sequence[int], reason: str, change: Change, deadline: Deadline) -> dict[str, Any]:
    """Take boards that nobody has out of use; return the module's result.

    A board that somebody has by its root or by the record of a claim is refused: if that claim were adopted later, its
    instance could not start.

    :param reason: a text for people.
    :raises BadInput: it is longer than the record of it (maintenance_records.py).
    """
    if len(reason) > LONGEST:
        raise BadInput(f"has {len(reason)} characters, and at most {LONGEST} are kept", "reason", "say it in fewer")

    def one(board: Board, claim: Claim | None, report: Report, change: Change) -> dict[str, Any]:
        record = proxy.store.record(board.id)
        if claim:
            what = f"is {record.state}, and {claim.instance} of {claim.owner} has it"
            raise Refused(what, board.name, ENDED_FIRST.format(name=claim.instance))
        if record.state not in (board_states.POWER_OFF, board_states.ERROR, board_states.MAINTENANCE):
            checked = board_states.is_checked(record.state, record.note)
            what = f"is {record.state}{f' ({record.note})' if record.note else ''}"
            raise Refused(what, board.name, CHECKED if checked else "repair it first")
        refuse_somebodys(proxy, board, unknown_tenant(proxy, board))
        changed = _note(change, board, record, board_states.MAINTENANCE, reason)
        if changed:
            if not change.check:
                _take_out(proxy, board, reason)
            report(PHASE, f"on: {reason}")
        else:
            report.line(PHASE, f"on already: {reason}")
        return dict(changed=changed, state=board_states.MAINTENANCE, note=reason)

    return each(proxy, ids, PHASE, one, change, deadline)


def end(proxy: Proxy, ids: Sequence[int], change: Change, deadline: Deadline) -> dict[str, Any]:
    """Put boards back into use; return the module's result. A board that is on or not clean stays out of use.

    Of one that somebody has, what is left is its tenant's. Where only its own record has it out of use, that ends.
    """

    def one(board: Board, claim: Claim | None, report: Report, change: Change) -> dict[str, Any]:
        record, out = proxy.store.record(board.id), proxy.store.out_of_use(board.id)
        whose = f", and {claim.instance} of {claim.owner} has it" if claim else ""
        if out and claim is None:
            record = replace(record, state=out.state, note=out.reason)
        changed = record.state == board_states.MAINTENANCE
        if changed:
            _must_be_free(proxy, board, claim, deadline)
            _note(change, board, record, board_states.POWER_OFF, "")
            if not change.check:
                proxy.store.power_seen(board.id, "off")
                proxy.store.take_out(board.id)
                proxy.store.move(board.id, board_states.POWER_OFF)
            left = "" if claim else ", nothing is left on it"
            report(PHASE, f"off: its outlet is off{left}{whose}")
        elif out and claim:
            changed = change.note(board.name, {"out of use": out.reason}, {"out of use": ""})
            if not change.check:
                proxy.store.end_out_of_use(board.id, out)
            report(PHASE, f"off: its own record of that is ended ({out.reason}); it is in state {record.state}{whose}")
        else:
            way = f": {play('repair', node=board.name)} frees it" if record.state == board_states.ERROR else ""
            report.line(PHASE, f"off already: it is in state {record.state}{whose}{way}")
        state = board_states.POWER_OFF if record.state == board_states.MAINTENANCE else record.state
        return dict(changed=changed, state=state, note="")

    return each(proxy, ids, PHASE, one, change, deadline)


def catch_up(look: Look) -> None:
    """Bring the database and the board's own record of its being out of use into agreement after the database was put
    back, or was lost.

    A board that somebody has by the database is left as it is, and so is a free one in whose place another board's
    record lies.
    """
    work, store = look.work, look.work.proxy.store
    record, out = store.record(work.board.id), store.out_of_use(work.board.id)
    misplaced = store.anothers_out_of_use(work.board.id)
    if misplaced:
        look.note(misplaced)
    if misplaced and record.claim is None and record.state not in STATES:
        look.settled = True  # its own record, which is not in its place, may say why nobody is to get it
    elif out and record.claim:
        look.note(f"{out.told}: {BY_DATABASE.format(name=record.claim.instance, board=work.board.name)}")
    elif record.claim is None and not agree(record.state, out):
        if work.change.check:
            work.record = replace(record, state=out.state, note=out.reason) if out else record
        else:
            store.take_out(work.board.id)
            work.record = store.record(work.board.id)
        where, done = ("its own record", "out of use again") if out else ("the database only", "written beside it")
        found = f"in {work.record.state} by {where} ({work.record.note})"
        look.mend(found, f"would be {done}" if work.change.check else done)


def _take_out(proxy: Proxy, board: Board, reason: str) -> None:
    """Take a board that nobody has out of use, unless it was claimed meanwhile: a claim needs no lock of a board."""
    with proxy.store.transaction():
        must_be_of(proxy.store.record(board.id).claim, NOBODY, board.name)
        proxy.store.move(board.id, board_states.MAINTENANCE, reason)


def _must_be_free(proxy: Proxy, board: Board, claim: Claim | None, deadline: Deadline) -> None:
    """Raise Refused where a board in maintenance is on, or, if nobody has it, where anything is left on it."""
    left = _left(proxy, board, claim, deadline)
    others = Feeds(proxy).doubt(board, claim) if left else None
    if others:
        raise Refused(f"stays in maintenance: {others}", board.name, others.remedy)
    made_ready = served(proxy, board) if left and claim is None else None
    if made_ready:
        raise Refused(f"stays in maintenance: it {made_ready.what}", board.name, made_ready.remedy)
    if left:
        pdu, outlet = proxy.outlet(board)
        remedy = f"switch {pdu} outlet {outlet} off (pdu_power)"
        if claim is None:
            remedy += ", remove the rest (board_image, state absent; board_wipe for its disks)"
        raise Refused(f"stays in maintenance: {'; '.join(left)}", board.name, remedy)


def _left(proxy: Proxy, board: Board, claim: Claim | None, deadline: Deadline) -> list[str]:
    """Return why a board stays in maintenance: its outlet as the PDU reads it now, and what lies here for nobody."""
    proxy.outlet(board)
    seen: dict[str, Any] = {"id": board.id}
    errors = outlet_power(proxy, [seen], deadline)
    outlet = [] if seen["power"] == "off" else [f"its outlet is {seen['power'] or 'not known'}"]
    here = [] if claim else [*leftovers(proxy, board), *used(proxy, board)]
    return [*outlet, *errors.values(), *here]


def _note(change: Change, board: Board, record: Record, state: str, note: str) -> bool:
    return change.note(board.name, {"state": record.state, "note": record.note}, {"state": state, "note": note})
