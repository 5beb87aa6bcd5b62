# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep a copy of each claim on a compute host in a file (claim_records.py), together with the database.

A file is written before the database is committed, so it is never older than the database. Where the two differ, the
database is older, or a process was killed between them: of two ends of a lease the later one counts, and an end that is
not known ends nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Mapping

from ...core.errors import HeteroError, Refused
from ...core.plays import play
from ...core.printable import printable
from ...site.instance_states import ARRIVING, ENDING, NEVER_RAN
from ...site.leases import later
from ..pruning import RECORDS, RECORDS_BEGIN
from ..pruning import Kept as KeptEvents
from ..store import ClaimsStore
from .claim_records import TYPES, Claim, ClaimRecords
from .tables import LAYOUT, claims_beside

if TYPE_CHECKING:
    import sqlite3

LOST = "the record of its claim is lost"
ANOTHERS = "that is the record of another claim of that name, of {owner}"
#: What is done about a lease whose end may be later than the database says.
WORD = (
    "the database may be older than what it said: its lease is not ended: "
    f"{play('extend_instance', instance='{name}', hours='HOURS')} says anew when it ends, "
    f"{play('terminate_instance', instance='{name}')} ends it now"
)
NEWER = (
    "the database is older than it, or the record: its lease is not ended: put a newer copy of the database back, or, "
    f"once it is known that the database is right, remove the record; then {play('reconcile')}"
)


@dataclass
class Touch:
    """What a transaction does to an instance: the claim that ends, whether one begins, fields of its claim."""

    ended: Claim | None = None
    begun: bool = False
    put: dict[str, Any] = field(default_factory=dict)


class KeptClaims(ClaimsStore[Claim]):
    """The part of a host's database (store.py) that keeps those files."""

    layout, table, order, claim_type, types = LAYOUT, "instances", "instance", Claim, TYPES

    def __init__(
        self, path: str, actor: str | None = None, create: bool = True, busy: float = 10.0, write: bool | None = None
    ) -> None:
        super().__init__(path, actor, create, busy, write)
        self.records = ClaimRecords(claims_beside(path))
        self._db.before_commit = self._keep

    def _claim(self, row: sqlite3.Row | Mapping[str, Any]) -> Claim:
        """Return a row's claim, with the later end of its lease, the database's or that of its own record, and with the
        run that moves it and its departure by that record, which is never older.
        """
        claim = super()._claim(row)
        touch = self._db.touched.get(claim.instance) or Touch()
        kept = None if touch.begun else self.kept(claim.instance)
        if kept is None or not claim.is_same(kept):
            return claim
        kept_too = {name: getattr(kept, name) for name in ("mover", "departure") if name not in touch.put}
        has_end = claim.expires is not None and "expires" not in touch.put
        return replace(claim, **kept_too, expires=later(claim.expires, kept.expires) if has_end else claim.expires)

    def kept(self, instance: str) -> Claim | None:
        """Return what an instance's own record says of its claim; None without a record that can be read."""
        try:
            return self.records.read(instance)
        except HeteroError:
            return None

    def forgotten(self, instance: str) -> Claim | None:
        """Return the record of a claim for which something was made, and which the database does not know; None where
        an instance's name has no such record.
        """
        claim, kept = self.claim_of(instance), self.kept(instance)  # in this order: another process may end the claim
        if kept is None or kept.is_same(claim):
            return None
        # of one that was on its way here, its root is where it came from
        return kept if kept.container is not None or kept.state not in (*NEVER_RAN, ARRIVING, ENDING) else None

    def all_forgotten(self) -> list[Claim]:
        """Return all records that `forgotten` finds."""
        return [kept for kept in map(self.forgotten, self.records.instances()) if kept is not None]

    def in_use(self) -> list[Claim]:
        """Return all claims, with those that are forgotten. What they have is in use, whatever the database says."""
        return [*self.claims(), *self.all_forgotten()]

    def _times_of_records(self) -> list[float]:
        kept = map(self.kept, self.records.instances())
        return [max(claim.created, claim.since) for claim in kept if claim]

    def doubt_of(self, claim: Claim) -> tuple[str, str] | None:
        """Return (what is wrong, what to do) where the end of a claim's lease is not known; None where it is.

        Its record is lost, cannot be read, or is another claim's, and the database may be older than it.
        """
        if claim.expires is None:
            return None
        word = WORD.format(name=claim.instance)
        try:
            kept = self.records.read(claim.instance)
        except HeteroError as error:
            return f"{error.thing}: {error.what}", word
        if kept is None:
            return (f"{self.records.path(claim.instance)}: {LOST}", word) if self._keeps_records() else None
        if claim.is_same(kept):
            return None
        return f"{self.records.path(claim.instance)}: {ANOTHERS.format(owner=kept.owner)}", NEWER

    def must_be_its_record(self, claim: Claim) -> None:
        """Raise Refused where the record in a claim's place is another claim's, which the database does not know."""
        kept = self.kept(claim.instance)
        if kept is not None and not claim.is_same(kept):
            path = self.records.path(claim.instance)
            raise Refused(f"{path}: {ANOTHERS.format(owner=kept.owner)}", claim.instance, NEWER)

    def other_lease(self, claim: Claim) -> tuple[float | None, float | None] | None:
        """Return the ends of a claim's lease by its record and by the database where they differ, or None."""
        kept = self.kept(claim.instance)
        rows = self._db.rows("SELECT expires FROM instances WHERE instance = ?", (claim.instance,))
        if kept is None or not rows or not claim.is_same(kept) or kept.expires == rows[0]["expires"]:
            return None
        return kept.expires, rows[0]["expires"]

    def keep_missing(self) -> None:
        """Write the records of claims of an earlier release, which kept none, once for a database.

        A record that is missing later, or while other records are there, was lost, and may have been newer than the
        database: doubt_of tells.
        """
        with self._db.transaction():
            if self._db.is_copy or self._keeps_all():
                return
            for claim in [] if self.records.instances() else self.claims():
                self.records.write(claim)
            self.event(None, RECORDS, RECORDS_BEGIN)

    def event(
        self, instance: str | None, phase: str, text: str, seconds: float | None = None, address: str | None = None
    ) -> int:
        """Write an event down and return its id."""
        return self._db.write(
            "INSERT INTO events (time, actor, instance, address, phase, text, seconds) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (time.time(), self.actor, instance, address, phase, printable(text), seconds),
        )

    def _kept_events(self) -> KeptEvents:
        """Return which old events stay: those of the life of each claim, of an instance or of all of its request."""
        kept = KeptEvents("address")
        for claim in self.claims():
            for name in (claim.instance, claim.request):
                kept.lives[name] = min(claim.created, kept.lives.get(name, claim.created))
        return kept

    def _keeps_records(self) -> bool:
        """Return whether each claim has, or had, a record; False where an earlier release made them all."""
        return bool(self.records.instances()) or self._keeps_all()

    def _touched(self, instance: str) -> Touch:
        return self._db.touched.setdefault(instance, Touch())

    def _keep(self, touched: dict[str, Touch]) -> None:
        """Write, before a transaction is committed, the records of the claims that it changes.

        In a record of the same claim only what this transaction changes is written: the database may be older than the
        record (put back from a copy), and must not overwrite what it does not know. One that was lost or cannot be read
        is written only for a claim that begins, or whose lease is said anew. Another claim's stays, unless one begins
        in its place, for which the caller has seen that nothing of that name is there, nor was by the record.

        :param touched: {instance: Touch}.
        """
        self.keep_missing()
        for instance, touch in touched.items():
            claim = self.claim_of(instance)
            try:
                found, is_readable = self.records.read(instance), True
            except HeteroError:
                found, is_readable = None, False
            if claim is None and touch.begun:
                pass  # it was refused what it asked for, and wrote none: what lies in its place is another's
            elif claim is None:
                # What nobody can read says nothing of anybody's, and its name is free from now on.
                if not is_readable or (touch.ended is not None and touch.ended.is_same(found)):
                    self.records.remove(instance)
            elif touch.begun:
                self.records.write(claim)
            elif found is not None:
                if found.is_same(claim) and replace(found, **touch.put) != found:
                    self.records.write(replace(found, **touch.put))
            elif "expires" in touch.put:
                self.records.write(claim)
