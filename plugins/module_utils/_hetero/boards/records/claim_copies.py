# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep a copy of each claim of a board in a file beside the root (claim_records.py), together with the database.

A file is written before the database is committed, so it is never older than the database.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...claims.pruning import RECORDS, RECORDS_BEGIN
from ...claims.pruning import Kept as KeptEvents
from ...core.errors import HeteroError
from ...site import board_states
from .board_records import (
    CLAIM_PHASE,
    MAY_HAVE_RUN,
    NO_USE_SEEN,
    NOBODYS,
    STATE_PHASE,
    SWITCH,
    TO_BE,
    UNWATCHED,
    Recorded,
)
from .claim_records import ClaimRecords, Kept
from .maintenance_records import FOLDER as MAINTENANCE_FOLDER
from .maintenance_records import STATES, MaintenanceRecords, OutOfUse

if TYPE_CHECKING:
    from .board_records import Record
    from .claim_records import Claim, Fed


#: States that a board with a claim has only after it was to be switched on, and before it was seen off again.
POWERED = (*board_states.AT_WORK, board_states.SHUTTING_DOWN)
#: (phase, pattern of the text) of events of an instance that ran.
RAN = ((board_states.RUNNING, "%"), (STATE_PHASE, f"% → {board_states.RUNNING}%"))


@dataclass
class Touch:
    """What a transaction does to a board: the claim that ends there, whether one begins, fields of its claim, whether
    its state changes, which outlet is known to feed it, which state out of use (maintenance, error) ends.
    """

    ended: Claim | None = None
    begun: bool = False
    put: dict[str, Any] = field(default_factory=dict)
    moved: bool = False
    fed: Fed | None = None
    left: str | None = None


class KeptClaims(Recorded):
    """The part of a proxy's database (store.py) that keeps those files, and those of maintenance beside them.

    :param records: the folder of claims; None keeps no files.
    """

    def __init__(
        self,
        path: str,
        actor: str | None = None,
        create: bool = True,
        busy: float = 10.0,
        write: bool | None = None,
        records: str | None = None,
    ) -> None:
        super().__init__(path, actor, create, busy, write)
        self._records_of_claims = ClaimRecords(records) if records else None
        self._maintenance: MaintenanceRecords | None = None
        if records:
            self._maintenance = MaintenanceRecords(os.path.join(os.path.dirname(records), MAINTENANCE_FOLDER))
            self._db.before_commit = self._keep

    @property
    def _files(self) -> ClaimRecords:
        """The records that are to be read or written.

        :raises ValueError: the database was opened without them.
        """
        if self._records_of_claims is None:
            raise ValueError(f"{self.path} is open without records of claims")
        return self._records_of_claims

    def kept(self, board: int) -> Kept | None:
        """Return what a board's own record of its claim says, or None without a record.

        :raises HeteroError: it cannot be read.
        """
        return self._records_of_claims.read(board) if self._records_of_claims else None

    def out_of_use(self, board: int) -> OutOfUse | None:
        """Return what a board's own record says of its being out of use, or None without a record.

        Where another board's record lies in the board's place, or the board's own lies elsewhere, the database alone is
        believed. Then a board that is free by the database counts as in maintenance, or as in the state that its own
        record tells: the record that belongs here may be gone. A fault that the database tells may be older than such
        a maintenance.
        """
        own = self._maintenance.read(board) if self._maintenance else None
        if self._maintenance is None or (own is not None and own.of is None):
            return own
        there = self._maintenance.elsewhere(board)
        if own is None and there is None:
            return None
        record = self.record(board)
        if record.claim is not None:
            return None
        known = record.state in (board_states.MAINTENANCE, there.state if there else board_states.ERROR)
        return OutOfUse(record.note, record.since or 0.0, record.state) if known else own or there

    def anothers_out_of_use(self, board: int) -> str | None:
        """Return what is said where a board's record of being out of use lies elsewhere, or its place has another
        board's; else None.
        """
        return self._maintenance.misplaced(board) if self._maintenance else None

    def out_of_use_boards(self) -> list[int]:
        """Return the ids of the boards in whose places records of being out of use lie."""
        return self._maintenance.boards() if self._maintenance else []

    def kept_anywhere(self) -> list[tuple[str, Kept]]:
        """Return [(path, Kept)] of all records that can be read, wherever they lie and whatever their names."""
        return self._records_of_claims.readable() if self._records_of_claims else []

    def _times_of_records(self) -> list[float]:
        return [kept.claim.created for _path, kept in self.kept_anywhere()]

    def _kept_events(self) -> KeptEvents:
        """Return which old events stay: those of the life of each claim, and the end of each that has a record yet.

        A record of a claim that ended, which a person left somewhere, would else be taken for that of a lost claim.
        """
        kept = KeptEvents("board")
        for claim in self.claims():
            where, values = "board = ? AND instance = ? AND phase = ?", (claim.board, claim.instance, CLAIM_PHASE)
            newest = self._db.rows(f"SELECT max(id) FROM events WHERE {where}", values)[0][0]
            kept.since[claim.board] = newest or 0
            for name in (claim.instance, claim.request):
                kept.lives[name] = min(claim.created, kept.lives.get(name, claim.created))
        for _path, record in self.kept_anywhere():
            key, created = (record.claim.board, record.claim.instance), record.claim.created
            kept.ends[key] = min(created, kept.ends.get(key, created))
        return kept

    def named_in(self, board: int) -> int | None:
        """Return the other board that the record in a board's place names; None where there is none, or its own."""
        return self._records_of_claims.named_in(board) if self._records_of_claims else None

    def is_copy(self, error: HeteroError) -> bool:
        """Return whether the unreadable record in a board's place is a copy of another board's good record."""
        return self._records_of_claims is not None and self._records_of_claims.is_copy(error)

    def way_back(self, path: str, board: int) -> str:
        """Return how a person moves a board's record of its claim to its place (board_record_files.py)."""
        return self._files.way_back(path, board)

    def ring(self, path: str) -> list[int]:
        """Return the boards that have each other's records in a ring (board_record_files.py)."""
        return self._files.ring(path)

    def place_of(self, path: str) -> list[int]:
        """Return [id of the board in whose place a record lies]; an empty list for a record in no board's place."""
        return self._files.place_of(path)

    def event(
        self, board: int | None, phase: str, text: str, seconds: float | None = None, instance: str | None = None
    ) -> int:
        """Write an event down, as Recorded does; that an instance may have run comes into its claim's record, too."""
        with self._db.transaction():
            if phase == UNWATCHED and board is not None:
                self._touched(board)
            return super().event(board, phase, text, seconds, instance)

    def feed(self, board: int, fed: Fed) -> None:
        """Write into the record of a board's claim which outlet feeds the board."""
        with self._db.transaction():
            self._touched(board).fed = fed

    def path_of_kept(self, board: int) -> str:
        """Return the path of a board's own record of its claim."""
        return self._files.path(board)

    def kept_boards(self) -> list[int]:
        """Return the ids of the boards that have such a record."""
        return self._records_of_claims.boards() if self._records_of_claims else []

    def strays(self) -> list[str]:
        """Return the paths of files beside the records whose names are none of records."""
        return self._records_of_claims.strays() if self._records_of_claims else []

    def keep_anew(self, board: int) -> None:
        """Write a board's record anew from the database, whatever it says; remove that of a board without a claim.

        Another board's that lies there is kept, under another name.
        """
        with self._db.transaction():  # so that no other process changes the claim meanwhile
            record = self.record(board)
            try:
                found = self.kept(board)
            except HeteroError:
                found = None
            if record.claim:
                self._files.write(board, self._as_kept(record, record.claim, found, True))
            elif board in self.kept_boards():
                self._files.remove(board)

    def keep_missing(self) -> None:
        """Write the records of claims of an earlier release, which kept none, once for a database.

        A record that is missing later, or while other records are there, was lost, and may have been newer than the
        database: reconcile handles that.
        """
        with self._db.transaction():
            if self._db.is_copy or self._keeps_all():
                return
            for claim in [] if self.kept_boards() else self.claims():
                self._files.write(claim.board, self._as_kept(self.record(claim.board), claim, None))
            self.event(None, RECORDS, RECORDS_BEGIN)

    def lost(self) -> list[Claim]:
        """Return claims whose records are gone.

        There are none where an earlier release made the claims and nothing was written since.
        """
        if not self._records_of_claims:
            return []
        there = set(self.kept_boards())
        gone = {row["board"] for row in self._db.rows("SELECT board FROM claims")} - there
        if not gone or not (there or self._keeps_all()):
            return []
        return [claim for claim in self.claims() if claim.board in gone]

    def is_record_lost(self, claim: Claim) -> bool:
        """Return whether a claim had a record that is gone; that of an earlier claim may be back in its place."""
        try:
            kept = self.kept(claim.board)
        except HeteroError:
            return False
        if kept is None:
            return any(lost.is_same(claim) for lost in self.lost())
        return is_of_before(kept, claim)

    def _keep(self, touched: dict[int, Touch]) -> None:
        """Write, before a transaction is committed, the records of boards whose claims or states it changes.

        Another claim's record stays, unless that claim was cut off before anything was made for it.

        In a record of the same claim only what this transaction changes is written: the database may be older than the
        record (put back from a backup), and must not overwrite what it does not know. A record that was lost or cannot
        be read is written only for a claim that begins or gets another root; else reconcile and an operator find out
        whose the board is.

        :param touched: {board: Touch}.
        """
        self.keep_missing()
        for board, touch in touched.items():
            record = self.record(board)
            self._keep_out_of_use(record, touch)
            try:
                found = self.kept(board)
            except HeteroError:
                if "image_hash" not in touch.put:
                    continue
                found = None
            if found is None and not touch.begun and "image_hash" not in touch.put:
                continue
            wanted = self._as_kept(record, record.claim, found, not touch.begun) if record.claim else None
            if wanted and found and found.claim.is_same(wanted.claim):
                known = wanted if touch.moved else found
                claim = replace(found.claim, **touch.put)
                wanted = replace(wanted, claim=claim, state=known.state, note=known.note)
            if wanted and touch.fed:
                wanted = replace(wanted, fed=touch.fed, anew=False)
            if wanted and wanted != found and (found is None or _may_be_replaced(found, wanted)):
                self._files.write(board, wanted)
            elif found and not wanted and found.claim.is_same(touch.ended):
                self._files.remove(board)
            elif found and touch.fed and found.fed != touch.fed:
                self._files.write(board, replace(found, fed=touch.fed, anew=False))

    def _keep_out_of_use(self, record: Record, touch: Touch) -> None:
        """Write or remove a board's record of being out of use when its state or its claim changes.

        The record stays where only an older database does not know of it. A fault does not replace such a maintenance.
        """
        if self._maintenance is None or not (touch.moved or touch.ended or touch.left):
            return
        if touch.left:
            self._maintenance.forget(record.board, touch.left)
        maintenance, out = board_states.MAINTENANCE, self._maintenance.read(record.board)
        if out and out.of is not None and touch.left:
            self._maintenance.remove(record.board)
            return
        unknown = out is not None and out.state == maintenance and maintenance not in (record.state, touch.left)
        if record.claim is None and record.state in STATES and not unknown:
            self._maintenance.write(record.board, OutOfUse(record.note, record.since or 0.0, record.state))
        elif out and out.state == touch.left:
            self._maintenance.remove(record.board)

    def _touched(self, board: int) -> Touch:
        return self._db.touched.setdefault(board, Touch())

    def _as_kept(self, record: Record, claim: Claim, found: Kept | None, anew: bool = False) -> Kept:
        """Return the Kept that is to be written as the record of a board's claim.

        :param found: the present record; if it is of the same claim, what only the record knows is taken from it.
        :param anew: whether the claim's record was lost, if the present one is not of the same claim.
        """
        same = found if found and found.claim.is_same(claim) else None
        fed, anew = (same.fed, same.anew) if same else (None, anew)
        return Kept(claim, record.state, record.note, self.has_run(claim), fed, anew)

    def has_run(self, claim: Claim) -> bool:
        """Return whether a claim's instance ever ran on its board, by the board's events or the claim's record.

        What such an instance left on the board is its tenant's.
        """
        return self.has_had(claim, (*RAN, (UNWATCHED, "%"))) or self._ran_by_record(claim)

    def has_shown_no_use(self, claim: Claim) -> bool:
        """Return whether a claim's instance counts as one that ran only because its board had power unwatched, and its
        root showed no use then. False where the database may be older than that: by the record, or without one.
        """
        unused, may = (text.format(name="%") for text in (NO_USE_SEEN, MAY_HAVE_RUN))
        if not self.has_had(claim, [(UNWATCHED, unused)]) or self.has_had(claim, (*RAN, (UNWATCHED, may))):
            return False
        with suppress(HeteroError):
            kept = self.kept(claim.board)
            return kept is not None and kept.claim.is_same(claim) and not self.is_older_than(claim)
        return False

    def had_power(self, claim: Claim) -> bool:
        """Return whether a board ever had power for its claim."""
        switched = self.first_since_claim(claim, SWITCH, f"%{TO_BE.format(state='on')}")
        return self.has_run(claim) or switched is not None or self.is_older_than(claim)

    def is_older_than(self, claim: Claim) -> bool:
        """Return whether the record of a claim tells of a boot, or a stop, that an older database does not know of."""
        with suppress(HeteroError):  # one that cannot be read counts as of one that ran
            kept = self.kept(claim.board)
            if kept is not None and kept.claim.is_same(claim):
                return tells_of_power(kept) and kept.state != self.record(claim.board).state
        return False

    def _ran_by_record(self, claim: Claim) -> bool:
        """Return whether an instance ran, or may have run, by the record of its claim.

        That is also assumed where the record cannot be read, and where it was lost after something was made.
        """
        try:
            kept = self.kept(claim.board)
        except HeteroError:
            return True
        if kept is None or is_of_before(kept, claim):
            return self._records_of_claims is not None and claim.image_hash is not None
        return kept.claim.is_same(claim) and kept.ran


def _may_be_replaced(found: Kept, wanted: Kept) -> bool:
    """Return whether a record may be overwritten: by one of the same claim, or because nothing was made for its own."""
    return not found.is_somebodys or found.claim.is_same(wanted.claim)


def tells_of_power(kept: Kept) -> bool:
    """Return whether a board had power for its claim by the state that the claim's record tells.

    A fault tells of that, too, but for that of a board which was found on, and was never switched on for the claim.
    """
    fault = kept.state == board_states.ERROR and kept.note != NOBODYS.format(name=kept.claim.instance)
    return fault or kept.state in POWERED


def is_of_before(kept: Kept, claim: Claim) -> bool:
    """Return whether a record is one of an earlier claim of the board, whose own record is gone."""
    return not kept.claim.is_same(claim) and kept.claim.created < claim.created
