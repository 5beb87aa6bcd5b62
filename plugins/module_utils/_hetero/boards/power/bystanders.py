# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notice that an outlet which was switched off fed another instance's board than the one that its wiring names.

Where the board itself was silent before, its silence proves nothing. So the other boards of its PDU that may run are
asked before the switching and after it. One that answered and then stays silent was cut, whatever its state is called;
its outlet is switched on again (boot/proven_cuts.py). The answer of a kernel counts, which accepts or refuses a connect
also where the board is busy. A board that answered itself before, and is silent now, proves its outlet, so the others
are not waited for.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Callable, Iterable

from ...core.deadline import Deadline
from ...core.errors import HeteroError
from ...core.locks import held_by_another
from ...core.plays import play
from ...drivers.boot.registry import BootDrivers
from ...roots.ownership import has_root
from ...site import board_states
from ..records.board_records import ANSWER, STATE_PHASE, TO_BE
from . import pdu_names, unseen_cuts
from .last_outlet import MOST_LOOKED_AT, PHASE
from .power_proof import LOOK
from .presence import strain

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ..records.board_records import Record
    from ..records.proxy import Proxy
    from .board_views import PowerWork
    from .unseen_cuts import UnseenCut

#: Seconds after its outlet was read back as off from which an answer proves that a board has power by another one:
#: before, it may live on what its power supply has stored.
SETTLED = 1.0
#: Looks in vain that count as silence, and the seconds of each on an idle node: 2 s after the switching it is certain.
LOOKS, EACH = 4, 0.25
#: States in which a board is without power by a verb of its own tenant.
STOPPED = (board_states.SHUTTING_DOWN, board_states.POWER_OFF)

FELL_SILENT = (
    "{names} answered until {outlet} was switched off, and {is_} silent since, so that outlet may feed {them}, not "
    "{board}: look at the plugs of both ({cabling} says what the outlets of free boards feed)"
)
#: What is said of an outlet that is off, of which nobody had seen whom it cut: where it cut nobody, and where it may.
SEEN_LATE = "{outlet} was switched off before, and no other board has lost its power by that"
MAY_BE_CUT = (
    "{names} answered until {outlet} was switched off for {board}, {is_} silent now, and may have lost power by that: "
    "look there before it is rebooted by power; where it is dark, its plug may be in that outlet: put the plugs right, "
    "or the wiring"
)


class Bystanders:
    """The boards of other instances that may lose their power when those of this call are switched off.

    :param own: ids of the boards that this call works on.
    """

    def __init__(self, proxy: Proxy, own: Iterable[int]) -> None:
        self._proxy, self._own = proxy, set(own)
        self._pdus = pdu_names.Remembered(proxy.config.pdus)
        self._drivers = BootDrivers(proxy)
        #: {board id of a work: {board id: its record} of those that are looked at for it}.
        self._near: dict[int, dict[int, Record]] = {}
        #: {board id of a work: ids of the boards that answered before its outlet was switched}.
        self._answered: dict[int, set[int]] = {}
        #: {board id of a work whose outlet was switched before: what is known of that}, and {board id of it: {board id:
        #: its record} of those that are only told of}.
        self._recalled: dict[int, UnseenCut] = {}
        self._unsure: dict[int, dict[int, Record]] = {}
        #: Ids of the boards of works whose outlets this process was to switch off.
        self._begun: set[int] = set()

    @cached_property
    def _others(self) -> dict[str, dict[int, str]]:
        """{PDU name: {id of a board of another call: its outlet}}, by the wiring."""
        found: dict[str, dict[int, str]] = {}
        for board in self._proxy.boards.values():
            fed = self._proxy.wiring(board).fed
            if fed and board.id not in self._own:
                found.setdefault(fed[0], {})[board.id] = fed[1]
        return found

    def find(self, work: PowerWork) -> bool:
        """Read which boards are to be looked at, and return whether there are any."""
        near = [
            board
            for pdu in self._alike(work.pdu) & self._others.keys()
            for board, outlet in self._others[pdu].items()
            if (pdu, outlet) != (work.pdu, work.outlet)
        ]
        records = self._proxy.store.records(near) if near else {}
        self._near[work.board.id] = {board: record for board, record in records.items() if self._may_run(record)}
        self._answered.pop(work.board.id, None)
        return self.watched(work)

    def watched(self, work: PowerWork) -> bool:
        """Return whether any board is looked at for a work."""
        return bool(self._near.get(work.board.id))

    def before(self, work: PowerWork) -> None:
        """Look which of them answer, and whether the work's own board does; for any thread."""
        boards = [work.board.id, *self._near[work.board.id]]
        self._answered[work.board.id] = self._which(boards, lambda board: self._drivers.of(board).alive(board, LOOK))

    def to_be_cut(self, work: PowerWork) -> str:
        """Begin to count the time, and return the text of the event that an outlet is to be switched off.

        It names the boards that answer.

        A process that is killed then leaves them to the next one (recall).
        """
        unseen_cuts.begins(self._proxy, work.board.id)
        self._begun.add(work.board.id)
        names = ", ".join(f"board{board}" for board in sorted(self._answered.get(work.board.id, ())))
        return (ANSWER.format(boards=names) if names else "") + _to_be_off(work)

    def lost(self, work: PowerWork) -> None:
        """Keep that this process lost the PDU of an outlet that it may have switched off, and cannot look."""
        if work.board.id in self._begun:
            unseen_cuts.lost(self._proxy, work.board.id)

    def recall(self, work: PowerWork) -> float | None:
        """Take over the look whom an outlet cut, from a process that switched it off and was killed or lost its PDU.

        Only boards that answered before are asked. Those whose state changed since, or that a verb works on, are only
        told of (may_be_cut), and so are all where it was too long ago.

        :returns: the seconds since then; None where the outlet was not switched off so, or nobody's power is to be
            given back.
        """
        board = work.board.id
        unseen = unseen_cuts.of(self._proxy, board)
        if unseen is None:
            return None
        is_known = unseen.outlet == f"{work.pdu} outlet {work.outlet}" and not self._is_older(board)
        seconds = unseen.seconds if is_known else None
        others = self._proxy.store.records(unseen.left - {board})
        moved = {one for one in others if self._proxy.store.has_since(one, STATE_PHASE, unseen.event)}
        on = {one: record for one, record in others.items() if not (one in moved and record.state in STOPPED)}
        sure = [one for one in on if seconds is not None and one not in moved and self._may_run(on[one])]
        self._near[board] = {one: on[one] for one in sure}
        self._unsure[board] = {one: on[one] for one in on if one not in sure and self._may_be_on(on[one])}
        self._answered[board] = {*sure, *self._unsure[board], *(unseen.left & {board})}
        self._recalled[board] = unseen
        return seconds

    def recalled(self, work: PowerWork) -> bool:
        """Return whether the look was taken over whom a work's outlet cut."""
        return work.board.id in self._recalled

    def may_be_cut(self, work: PowerWork, silent: Iterable[int]) -> str:
        """Return what is to be said of who may have been cut by a switching that was recalled, "" where there is none.

        Their boards keep it as an event.
        """
        unseen, known = self._recalled.get(work.board.id), {}
        if unseen:
            known = {**self._near[work.board.id], **self._unsure[work.board.id]}
        found = [known[board] for board in silent if board in known]
        if unseen is None or not found:
            return ""
        is_ = "is" if len(found) == 1 else "are"
        text = MAY_BE_CUT.format(names=_names(found), outlet=unseen.outlet, board=work.board.name, is_=is_)
        for record in found:
            if self._proxy.store.last_said(record.board, text) is None:
                self._proxy.store.event(record.board, PHASE, text)
        return text

    def silent(self, work: PowerWork, off: Deadline, own: bool) -> list[int]:
        """Return the ids of those that answered before, and are silent now; for any thread.

        :param off: was set when the outlet was read back as off.
        :param own: whether the work's own board was found silent since.
        """
        answered = self._answered.get(work.board.id, set())
        if work.board.id in answered and own:
            return []  # it was its outlet
        answered = answered - {work.board.id}
        return sorted(self._which(answered, lambda board: self._fell(board, off)))

    def cut(self, work: PowerWork, silent: Iterable[int]) -> list[Record]:
        """Return the records of the boards that fell silent without a verb that works on them, or did meanwhile.

        Where the database has no claim of a board, the claim of the board's own record counts: the database may be
        older.
        """
        near = self._near.get(work.board.id, {})
        known = [board for board in silent if board in near]
        now = self._proxy.store.records(known) if known else {}
        found = [record for board, record in now.items() if self._may_run(record) and _is_same(record, near[board])]
        return [record if record.claim else self._as_kept(record) for record in found]

    def _may_run(self, record: Record) -> bool:
        """Return whether a board may be on, and no verb of another process works on it.

        This process switches none but those of this call, also where it holds the locks of others (reconcile).
        """
        held = held_by_another(self._proxy.config.run_folder, f"board{record.board}")
        return not held and self._may_be_on(record)

    def _is_older(self, board: int) -> bool:
        """Return whether the database is older than the record of a board's claim, or that cannot be read."""
        try:
            kept = self._proxy.store.kept(board)
        except HeteroError:
            return True
        return kept is not None and kept.state != self._proxy.store.record(board).state

    def _may_be_on(self, record: Record) -> bool:
        """Return whether a board may be on, by its state, or by what else lies here: the database may be older."""
        if record.state != board_states.POWER_OFF:
            return True
        try:
            kept = self._proxy.store.kept(record.board)
        except HeteroError:
            return True
        return kept.state != board_states.POWER_OFF if kept else has_root(self._proxy, self._proxy.board(record.board))

    def _as_kept(self, record: Record) -> Record:
        with suppress(HeteroError):
            kept = self._proxy.store.kept(record.board)
            return replace(record, claim=kept.claim) if kept else record
        return record

    def _alike(self, pdu: str) -> set[str]:
        """Return all names that a PDU may have: until that is known, an outlet of each counts as one of its."""
        noted = pdu_names.address(self._pdus[pdu]) if pdu in self._pdus else None
        return {pdu, *(self._pdus.alike(noted, pdu_names.may_be_same) if noted else ())}

    def _which(self, boards: Iterable[int], asked: Callable[[Board], bool]) -> set[int]:
        """Return those of the boards of which `asked` is true, all asked at the same time."""
        boards = list(boards)

        def one(board: int) -> bool:
            try:
                return asked(self._proxy.board(board))
            except HeteroError:
                return False  # its wiring names no driver of ours, so nothing is known of it

        if not boards:
            return set()
        with ThreadPoolExecutor(max_workers=min(MOST_LOOKED_AT, len(boards))) as threads:
            return {board for board, seen in zip(boards, threads.map(one, boards)) if seen}

    def _fell(self, board: Board, off: Deadline) -> bool:
        """Return whether a board stays silent once it can live on no stored power any more."""
        Deadline(SETTLED - off.spent).nap(SETTLED)
        seconds = EACH * strain()
        for _look in range(LOOKS):
            window = Deadline(seconds)
            if self._drivers.of(board).alive(board, seconds):
                return False
            window.nap(seconds)  # no route to it is said at once
        return True


def _is_same(now: Record, before: Record) -> bool:
    same = now.claim.is_same(before.claim) if now.claim else before.claim is None
    return same and now.since == before.since


def fell_silent(work: PowerWork, cut: Iterable[Record]) -> str:
    """Return the note on an outlet that cut other boards."""
    cut = list(cut)
    one = len(cut) == 1
    return FELL_SILENT.format(
        names=_names(cut),
        outlet=f"{work.pdu} outlet {work.outlet}",
        is_="is" if one else "are",
        them="it" if one else "them",
        board=f"{work.instance} on {work.board.name}" if work.instance else work.board.name,
        cabling=play("cabling"),
    )


def _names(records: Iterable[Record]) -> str:
    return " and ".join(f"{f'{one.claim.instance} on ' if one.claim else ''}board{one.board}" for one in records)


def _to_be_off(work: PowerWork) -> str:
    return f"{work.pdu} outlet {work.outlet} {TO_BE.format(state='off')}"
