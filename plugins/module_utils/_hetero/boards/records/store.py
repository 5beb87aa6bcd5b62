# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The database of what hardware cannot tell: who claimed which board, the state of each board, and what happened.

Claims are decided here, each in one transaction. Other files know which boards fit a flavor, and switch the hardware.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Collection, Container, Iterable, Sequence

from ...core.errors import HeteroError, NoneFree, Refused
from ...core.plays import have_it_otherwise, play, stays
from ...core.this_node import THIS_NODE
from ...site import board_states, leases
from ...site.instance import key_body, valid_instance
from ...site.key_prints import keys_told
from ...site.owners import must_be_made, refuse_mixed, refuse_taken, same
from .board_records import CLAIM_PHASE, MAY_HAVE_RUN, RELEASE_PHASE, RELEASED, STATE_PHASE, UNWATCHED
from .claim_copies import KeptClaims, tells_of_power
from .claim_records import Claim
from .energy import MeteredClaims
from .maintenance_records import STATES, OutOfUse, agree

if TYPE_CHECKING:
    from .board_records import Record
    from .claim_records import Kept

#: The remedy for an instance whose board or root does not come up again.
AGAIN = (
    f"when the fault is mended, {play('stop_instance', instance='{name}')} and "
    f"{play('start_instance', instance='{name}')} bring it up; "
    f"{play('rebuild_instance', instance='{name}', fresh='true')} gives it a new root, "
    f"{play('terminate_instance', instance='{name}')} ends it"
)
#: In place of an instance's name: a board that any instance has is refused.
NOBODY = ""
#: The fields of a claim that `put` may change.
FIELDS = ("host_key", "image_hash", "boot_source", "expires", "image", "ssh_public_key")
#: The boot source of a claim that names none.
NFS = "nfs"


@dataclass(frozen=True)
class ClaimTerms:
    """The fields of a claim that all instances of a request share: owner, flavor, image, keys and boot source.

    An instance that is claimed again keeps its board only if these are the same.
    """

    owner: str
    flavor: dict[str, Any]
    image: str
    ssh_public_key: str
    boot_source: str = NFS


def nobodys(board_name: str, wanted: str | None) -> Refused:
    """Return the refusal of a board that is to be made ready or booted, and has no claim.

    :param wanted: the instance or request that had it when it was looked up; None for whoever has it.
    """
    if wanted is None:
        return Refused("is claimed by nobody", board_name, "claim it: board_claim")
    what = f"was given back meanwhile: another request was for {wanted} as well, and ended so, or it was terminated"
    return Refused(what, board_name, f"ask for {wanted} again")


def must_be_of(
    claim: Claim | None, instance: str | None, board_name: str, created: Container[float] | None = ()
) -> None:
    """Raise Refused where a board was meanwhile given to another instance, or to another one of that name.

    :param instance: name of an instance or request; None for any, NOBODY to refuse any. A board without a claim passes.
    :param created: see must_be_made.
    """
    if claim is None:
        return
    if instance == NOBODY:
        raise Refused(f"was claimed for {claim.instance} meanwhile", board_name, "nothing of it is touched: leave it")
    if instance is not None and instance not in (claim.instance, claim.request):
        what = f"is not {instance}'s any more, it was given to {claim.instance} meanwhile"
        raise Refused(what, board_name, f"run this again, which looks up where {instance} is")
    must_be_made(claim, created)


def why_not_free(record: Record, now: float) -> str | None:
    """Return in words why a board cannot be claimed, or None for a free one."""
    claim = record.claim
    instance, created = (claim.instance, claim.created) if claim else (None, now)
    return board_states.why_not_free(record.state, record.note, instance, now - (record.since or now), now - created)


class Store(MeteredClaims, KeptClaims):
    """The state database of a proxy node."""

    # ---- boards

    def move(self, board: int, state: str, note: str = "") -> None:
        """Put a board into a state; where it is in that state, `since` stays, and a new note is recorded.

        :raises Refused: a board cannot go from its state to this one.
        """
        with self._db.transaction():
            old = self.record(board)
            if state != old.state and state not in board_states.TRANSITIONS[old.state]:
                ways = ", ".join(sorted(board_states.TRANSITIONS[old.state]))
                raise Refused(
                    f"is in state {old.state!r} and cannot go to {state!r}", f"board{board}", f"from there: {ways}"
                )
            if (state, note) == (old.state, old.note):
                self._touched(board).moved = True  # its claim's record may say otherwise, where the database was older
                return
            since = old.since if state == old.state else time.time()
            self._upsert(board, state=state, since=since, note=note)
            if state == board_states.ERROR:
                self._look_again(board)
            if old.state in STATES and state != old.state and (old.claim is None or self._is_told(old)):
                self._touched(board).left = old.state
            text = f"{old.state} → {state}" if state != old.state else f"still {state}"
            self.event(board, STATE_PHASE, f"{text}: {note}" if note else text)

    def take_out(self, board: int) -> bool:
        """Bring database and record of a board that nobody has into agreement on whether the board is out of use.

        The record has a maintenance, or a fault, that began after the database's backup. Where a record of a claim is
        there, of an instance that may be adopted, no such record is made: the database may be older than the claim.

        :returns: True where either of them was changed.
        """
        with self._db.transaction():
            record, out = self.record(board), self.out_of_use(board)
            if record.claim or agree(record.state, out):
                return False
            if out:
                self._upsert(board, state=out.state, since=out.since, note=out.reason)
                if out.state == board_states.ERROR:
                    self._look_again(board)
                text = f"{record.state} → {out.state}: {out.reason} (by its own record)"
                self.event(board, STATE_PHASE, text)
            elif self._may_be_claimed(board):
                return False
            else:
                self._touched(board).moved = True
            return True

    def end_out_of_use(self, board: int, out: OutOfUse) -> None:
        """End a board's own record of its being out of use by an operator's word; its claim and state stay."""
        with self._db.transaction():
            self._touched(board).left = out.state
            self.event(board, STATE_PHASE, f"its record of {out.state} is ended by an operator's word: {out.reason}")

    def _may_be_claimed(self, board: int) -> bool:
        try:
            return self.kept(board) is not None
        except HeteroError:
            return True

    def _is_told(self, record: Record) -> bool:
        """Return whether the board's own record of being out of use tells of what the database tells of."""
        known = OutOfUse(record.note, record.since or 0.0, record.state)
        return self.out_of_use(record.board) == known

    def power_seen(self, board: int, power: str) -> None:
        """Record the outlet's state as it was read: "on" or "off"."""
        if power not in ("on", "off"):
            raise ValueError(f"power {power!r}")
        self._upsert(board, power=power, power_seen=time.time())

    def _look_again(self, board: int) -> None:
        """Forget the outlet's state, so that only a later look counts, whatever the clock shows, which may jump."""
        self._upsert(board, power=None, power_seen=None)

    def _upsert(self, board: int, **fields: Any) -> None:
        with self._db.transaction():
            self._db.write("INSERT OR IGNORE INTO boards (board, state) VALUES (?, ?)", (board, board_states.POWER_OFF))
            columns = ", ".join(f"{column} = ?" for column in fields)
            self._db.write(f"UPDATE boards SET {columns} WHERE board = ?", (*fields.values(), board))
            if "state" in fields:
                self._touched(board).moved = True

    # ---- claims

    def claim(
        self,
        request: str,
        instances: Sequence[str],
        wanted: ClaimTerms,
        candidates: Collection[int],
        lease_hours: float | None = None,
        partial: bool = False,
        no_image: str | None = None,
    ) -> list[Claim]:
        """Give each instance a board, the first free ones of `candidates`; only one process gets a board.

        :param candidates: board ids, the most wanted first.
        :param partial: claim what is free, also if that is fewer boards than instances; else all or none.
        :param no_image: why what is claimed already could not have the wanted image, in words; None where it could.
        :returns: the claims, in the order of `instances`. An instance that has its board keeps it.
        :raises Refused: the name is another owner's, or one instance and several at once, or was claimed with another
            flavor, image or key.
        :raises NoneFree: `facts['rejected']` says for each candidate that is not free why.
        """
        for instance in instances:
            valid_instance(instance)
        with self._db.transaction():
            names = set(instances)
            held = {claim.instance: claim for claim in self._claims() if claim.instance in names}
            for claim in held.values():
                _refuse_other(claim, wanted, no_image)
            missing = [instance for instance in instances if instance not in held]
            if missing:
                refuse_taken(map(vars, self._claims()), request, instances, wanted.owner)
            refuse_mixed(list(map(vars, self._claims() if missing else held.values())), request, list(instances))
            free, rejected = self._free(candidates, len(missing))
            if len(free) < len(missing) and not (partial and (free or held)):
                raise _none_free(request, len(missing), len(free), rejected)
            now = time.time()
            expires = leases.end(lease_hours or 0.0, None, now)
            for instance, board in zip(missing, free):
                held[instance] = Claim(board, instance, request, created=now, expires=expires, **vars(wanted))
                self._insert(held[instance])
                self._look_again(board)
                self.event(board, CLAIM_PHASE, f"claimed for {instance} by {wanted.owner}", instance=instance)
        return [held[instance] for instance in instances if instance in held]

    def move_claim(self, instance: str, candidates: Iterable[int]) -> Claim:
        """Give an instance whose board is in error the next free candidate; the board stays in error.

        The host key goes with the root it was made for.

        :raises Refused: no such instance, its board is not in error, or it ran there: its root would stay behind.
        :raises NoneFree: no candidate is free; the claim stays where it is.
        """
        with self._db.transaction():
            old = self._must_have(instance)
            state = self.record(old.board).state
            if state != board_states.ERROR:
                what = f"is on board{old.board}, which is in state {state!r}, not in error"
                raise Refused(what, instance, "leave it there")
            if self.has_run(old):
                raise Refused(f"ran on board{old.board}, where its root is", instance, AGAIN.format(name=instance))
            free, rejected = self._free([board for board in candidates if board != old.board], 1)
            if not free:
                raise _none_free(instance, 1, 0, rejected)
            # The root that was made for the instance is that of the failed board.
            clear = "host_key = NULL, image_hash = NULL"
            self._db.write(f"UPDATE claims SET board = ?, {clear} WHERE instance = ?", (free[0], instance))
            self._touched(old.board).ended = old
            self._touched(free[0]).begun = True
            self._look_again(free[0])
            self.event(old.board, CLAIM_PHASE, f"{instance} moved to board{free[0]}", instance=instance)
            self.event(free[0], CLAIM_PHASE, f"{instance} moved here from board{old.board}", instance=instance)
            return self._must_have(instance)

    def release(self, board: int, claim: Claim | None, out_of_use: str | None = None) -> None:
        """End a board's claim and put it into state power off. The caller has checked the hardware.

        :param claim: the claim that ends, None for a board that nobody has.
        :param out_of_use: where given, the board goes into state error with this note.
        :raises Refused: the board has another claim by now.
        """
        with self._db.transaction():
            found = self.record(board).claim
            if found and not found.is_same(claim):
                what = f"was claimed for {found.instance} meanwhile"
                raise Refused(what, f"board{board}", "nothing of it is touched: run this again")
            self.move(board, board_states.ERROR if out_of_use else board_states.POWER_OFF, out_of_use or "")
            if found:
                self._account(found)
                self.event(board, RELEASE_PHASE, RELEASED.format(name=found.instance), instance=found.instance)
                self._end(found)

    def adopt(self, kept: Kept, state: str, note: str, why: str, on: bool = False) -> None:
        """Write a claim from its own record into the database, in place of the board's present claim.

        evidence/adoption.py decides when. If the present claim is the same one, the database keeps what it knows of
        the claim's power.

        :param why: what proves the claim, for the event.
        :param on: whether the board has power for the claim.
        """
        claim = kept.claim
        with self._db.transaction():
            here = self.record(claim.board).claim
            for old in (here, self.claim_of(claim.instance)):
                if old:
                    self._end(old)
            self._insert(claim)
            # No record has the time since which the instance runs; the time of its claim is the earliest.
            since = min(claim.created, time.time()) if state == board_states.RUNNING else time.time()
            self._upsert(claim.board, state=state, since=since, note=note)
            self._touched(claim.board).left = board_states.ERROR  # what runs was started after that fault was mended
            phase = STATE_PHASE if claim.is_same(here) else CLAIM_PHASE
            self.event(claim.board, phase, f"adopted for {claim.instance} of {claim.owner}: {why}")
            if kept.ran:
                self.event(claim.board, board_states.RUNNING, f"{claim.instance} has run before this")
            elif on or tells_of_power(kept):
                self.event(claim.board, UNWATCHED, MAY_HAVE_RUN.format(name=claim.instance))

    def forget(self, claim: Claim, why: str) -> None:
        """End a claim by an operator's word; do not touch the board's state, its root, or what runs on it."""
        with self._db.transaction():
            self._account(claim)
            text = f"{claim.instance}'s claim is ended by an operator's word: {why}"
            self.event(claim.board, RELEASE_PHASE, text, instance=claim.instance)
            self._end(claim)

    def _end(self, claim: Claim) -> None:
        self._db.write("DELETE FROM claims WHERE board = ?", (claim.board,))
        self._touched(claim.board).ended = claim

    def put(self, instance: str, **fields: Any) -> None:
        """Change FIELDS of a claim, which become known while it is served, or which its owner changes."""
        unknown = set(fields) - set(FIELDS)
        if unknown:
            raise TypeError(f"no fields of a claim to change: {sorted(unknown)}")
        with self._db.transaction():
            self._touched(self._must_have(instance).board).put.update(fields)
            columns = ", ".join(f"{column} = ?" for column in fields)
            self._db.write(f"UPDATE claims SET {columns} WHERE instance = ?", (*fields.values(), instance))

    def _must_have(self, instance: str) -> Claim:
        claim = self.claim_of(instance)
        if claim is None:
            raise Refused(f"is no instance of {THIS_NODE}", instance, "claim a board for it first")
        return claim

    def _insert(self, claim: Claim) -> None:
        row = dict(vars(claim), flavor=json.dumps(claim.flavor, sort_keys=True))
        places = ", ".join("?" for column in row)
        self._db.write(f"INSERT INTO claims ({', '.join(row)}) VALUES ({places})", tuple(row.values()))
        self._touched(claim.board).begun = True

    def _free(self, candidates: Collection[int], count: int) -> tuple[list[int], dict[str, str]]:
        """Return (the first `count` free candidates, {board name: why not} of those that are not free)."""
        now = time.time()
        free: list[int] = []
        rejected: dict[str, str] = {}
        for board, record in self.records(candidates).items():
            why = why_not_free(record, now)
            if why:
                rejected[f"board{board}"] = why
            elif len(free) < count:
                free.append(board)
        return free, rejected


def _refuse_other(claim: Claim, wanted: ClaimTerms, no_image: str | None) -> None:
    """Raise Refused unless a claim has the wanted fields; the error shows neither key."""
    if not same(claim.owner, wanted.owner):
        raise Refused(f"belongs to {claim.owner}", claim.instance, "choose another name")
    other = [
        name
        for name, same in (
            ("flavor", claim.flavor == wanted.flavor),
            ("image", claim.image == wanted.image),
            ("boot source", (claim.boot_source or NFS) == wanted.boot_source),
            ("ssh key", key_body(claim.ssh_public_key) == key_body(wanted.ssh_public_key)),
        )
        if not same
    ]
    if other:
        remedy = have_it_otherwise(claim.instance, other, vars(wanted))
        for part in ("boot source", "flavor"):
            remedy = stays(claim.instance, part) if part in other else remedy
        if "image" in other and no_image:
            remedy = f"{no_image}: choose another image"
        has = {"flavor": claim.flavor.get("name"), "image": claim.image, "boot source": claim.boot_source or NFS}
        as_it_is = {part.replace(" ", "_"): has[part] for part in other if part in has}
        what = f"has board{claim.board} with another {' and '.join(other)}"
        what += f" (it has {keys_told(claim.ssh_public_key)})" if "ssh key" in other else ""
        raise Refused(what, claim.instance, remedy, as_it_is=as_it_is)


def _none_free(request: str, wanted: int, free: int, rejected: dict[str, str]) -> NoneFree:
    boards = "a board" if wanted == 1 else f"{wanted} boards"
    return NoneFree(f"wants {boards}, {free or 'none'} free", request, "wait, or ask for less", rejected=rejected)
