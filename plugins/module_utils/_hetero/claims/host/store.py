# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a compute host's hardware cannot tell: who claimed an instance of which size, who has which GPU, and what
happened. A claim of memory, processors, disk and GPUs is one transaction.

allocation.py decides which GPUs are free. Others make and start what was claimed.
"""

from __future__ import annotations

import json
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Mapping, Sequence

from ...core.backups import UNREADABLE
from ...core.errors import BadInput, NoneFree, Refused
from ...core.plays import have_it_otherwise, stays
from ...core.printable import printable
from ...core.this_node import THIS_NODE
from ...files.whole_file import write_whole
from ...scheduling.fit import AMOUNTS
from ...site import leases
from ...site.instance import age, key_body, valid_instance
from ...site.instance_states import ARRIVING, CLAIMED, ENDING, LEAVING, STARTING, ways_from
from ...site.key_prints import keys_told
from ...site.kinds import OF_HOSTS
from ...site.owners import is_owner, refuse_mixed, refuse_taken, same
from ..ended import RELEASE_PHASE
from ..record_files import sound
from .allocation import allocate
from .allocation_rows import read_allocation
from .claim_copies import KeptClaims
from .tables import marked_beside, marked_in

if TYPE_CHECKING:
    import sqlite3

    from .allocation import Allocation, Gpu, GpuRequest, Seen
    from .claim_records import Arrival, Claim

#: Phase of the event that each change of state writes.
STATE_PHASE = "state"
#: Fields of a claim that `put` may change.
FIELDS = (
    *("state", "note", "expires", "container", "address", "host_key", "image", "image_hash", "ssh_public_key"),
    *("first_id", "mover", "departure", "flavor", *AMOUNTS),
)
#: Phase of the event with which a claim begins.
CLAIM_PHASE = "claim"
#: What a claim's record tells of what was made for it.
MADE = ("container", "host_key", "image", "image_hash", "ssh_public_key", "departure")
#: Seconds by which a state is at least later than the one before it.
LATER = 0.001


@dataclass(frozen=True)
class Asked:
    """What is asked for one instance.

    :param kind: section of the configuration: "lxc" or "kvm".
    :param wanted: its GPUs; None for none.
    :param lease_hours: hours from now until its lease ends; None or 0 for no end.
    :param request: the common name, if it is one of several instances.
    :param no_image: why an instance that is claimed already could not have the image, in words; None where it could.
    :param held: {memory_mb and so on: (how much of it others are to get, who in words)}.
    :param arrives: of one that moves here from another host.
    """

    instance: str
    owner: str
    flavor: dict[str, Any]
    image: str
    ssh_public_key: str
    kind: str
    wanted: GpuRequest | None = None
    lease_hours: float | None = None
    request: str | None = None
    no_image: str | None = None
    held: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    arrives: Arrival | None = None


@dataclass(frozen=True)
class Event:
    """Something that happened. `address` is a GPU's."""

    id: int
    time: float
    actor: str
    instance: str | None
    address: str | None
    phase: str
    text: str
    seconds: float | None


class Store(KeptClaims):
    """The database of a compute host."""

    def snapshot(self) -> ContextManager[None]:
        """Have all reads of the block see one moment of the database. Other processes may write meanwhile."""
        return self._db.snapshot()

    # ---- instances

    def claim(
        self, asked: Asked, capacity: Mapping[str, int], live: Callable[[], Seen], gpus: Sequence[Gpu]
    ) -> tuple[Claim, bool]:
        """Give an instance its memory, processors, disk and GPUs: all of it, or nothing.

        :param capacity: what all instances of this host together may have, by AMOUNTS.
        :param live: asks the kernel who can open which GPU; called inside the transaction if GPUs are wanted.
        :param gpus: the GPUs that discovery found.
        :returns: (the claim, whether it is new). An instance that is claimed again keeps what it has.
        :raises Refused: the name is another owner's, or would be one instance and several, or was claimed with another
            flavor, image or key.
        :raises NoneFree: `facts['rejected']` says what is short, and for each GPU why it is not given.
        """
        instance = valid_instance(asked.instance)
        request = asked.request or instance
        if asked.kind not in OF_HOSTS:
            raise BadInput(f"is {asked.kind!r}", "kind", f"give one of {', '.join(OF_HOSTS)}")
        with self._db.transaction():
            old = self.claim_of(instance)
            if old is not None:
                _refuse_other(old, asked)
            else:
                refuse_taken(map(vars, self._claims()), request, [instance], asked.owner)
            there = self._claims() if old is None else [old]
            refuse_mixed(list(map(vars, there)), request, [instance])
            if old is None:
                self._insert(asked, request, self._fitting(asked, capacity))
            claim = self._must_have(instance)
            if asked.wanted is not None:
                allocate(self, claim.holder, asked.wanted, gpus, live)
        return claim, old is None

    def _fitting(self, asked: Asked, capacity: Mapping[str, int]) -> dict[str, int]:
        """Return what the flavor takes; raise NoneFree if the host has less left."""
        instance, takes = asked.instance, {key: int(asked.flavor.get(key) or 0) for key in AMOUNTS}
        # a record in its own place is no lack of room: who claims for it sees that its name is taken
        claims = [claim for claim in self.in_use() if claim.instance != instance]
        short = {}
        for key, unit in AMOUNTS.items():
            left = capacity[key] - sum(getattr(claim, key) for claim in claims)
            held, why = asked.held.get(key, (0, ""))
            if takes[key] > left - held:
                told = f" ({held} {why})" if held else ""
                short[key] = f"{takes[key]} {unit} wanted, {max(0, left)} of {capacity[key]} left{told}"
        if short:
            raise NoneFree("; ".join(short.values()), instance, "wait, or ask for less", rejected=short)
        return takes

    def _insert(self, asked: Asked, request: str, takes: Mapping[str, int]) -> None:
        now = time.time()
        row: dict[str, Any] = dict(takes, instance=asked.instance, request=request, owner=asked.owner, kind=asked.kind)
        row.update(flavor=json.dumps(asked.flavor, sort_keys=True), image=asked.image)
        row.update(ssh_public_key=asked.ssh_public_key, state=CLAIMED, since=now, created=now)
        row["expires"] = leases.end(asked.lease_hours or 0.0, None, now)
        if asked.arrives:
            row.update(state=ARRIVING, note=asked.arrives.note, mover=asked.arrives.mover)
            row.update(created=asked.arrives.created, expires=asked.arrives.expires)
        places = ", ".join("?" for column in row)
        self._db.write(f"INSERT INTO instances ({', '.join(row)}) VALUES ({places})", tuple(row.values()))
        self._touched(asked.instance).begun = True
        self.event(asked.instance, CLAIM_PHASE, f"claimed by {asked.owner}")

    def put(self, instance: str, **fields: Any) -> Claim:
        """Change FIELDS of a claim. A new container takes over the instance's GPUs.

        :raises Refused: the new state may not follow the present one.
        """
        unknown = set(fields) - set(FIELDS)
        if unknown:
            raise TypeError(f"no fields of a claim to change: {sorted(unknown)}")
        with self._db.transaction():
            old = self._must_have(instance)
            state = fields.get("state", old.state)
            if state != old.state:
                if state not in ways_from(old.state):
                    what = f"is in state {old.state!r} and cannot go to {state!r}"
                    raise Refused(what, instance, f"from there: {', '.join(sorted(ways_from(old.state)))}")
                note = fields.get("note")
                # a record is newer than a database by it, also where the clock was set back meanwhile
                fields["since"] = max(time.time(), old.since + LATER)
                self.event(instance, STATE_PHASE, f"{old.state} → {state}" + (f": {note}" if note else ""))
            self._touched(instance).put.update(fields)
            if "flavor" in fields:
                fields["flavor"] = json.dumps(fields["flavor"], sort_keys=True)
            columns = ", ".join(f"{column} = ?" for column in fields)
            self._db.write(f"UPDATE instances SET {columns} WHERE instance = ?", (*fields.values(), instance))
            new = self._must_have(instance)
            if new.holder != old.holder:
                self._db.write("UPDATE allocations SET holder = ? WHERE holder = ?", (new.holder, old.holder))
            return new

    def as_recorded(self, claim: Claim, is_there: Callable[[Claim], bool], dry: bool = False) -> Claim:
        """Return a claim, with what its own record tells of what was made for it, and of its move to or from another
        host, where the database is an older copy.

        :param is_there: returns whether what the record tells of is what lies there.
        :param dry: write nothing into the database.
        """
        kept = self.kept(claim.instance)
        if kept is None or not kept.is_same(claim):
            return claim
        is_newer = claim.container is not None and kept.since > claim.since
        has_come = claim.container is None and claim.state == kept.state == ARRIVING  # its root is whole since
        if not (is_newer or has_come):
            return claim
        moved = _moved_since(claim, kept)
        by = dict(mover=kept.mover, departure=kept.departure)
        told: list[dict[str, Any]] = [dict(by, state=state, note=kept.note) for state in moved]
        made = {name: getattr(kept, name) for name in MADE}
        if kept.container and made != {name: getattr(claim, name) for name in MADE} and is_there(kept):
            told.append(made)
        with nullcontext() if dry else self.transaction():  # the record must not lose the last state for the first one
            for fields in told:
                claim = replace(claim, **fields) if dry else self.put(claim.instance, **fields)
        return claim

    def release(self, instance: str, owner: str | None = None) -> Claim | None:
        """End a claim with all that it holds. The caller has checked that its container is gone.

        :param owner: if given, another owner's claim is refused.
        :returns: the claim that ended, or None.
        """
        with self._db.transaction():
            claim = self.claim_of(instance)
            if claim is None:
                return None
            if not is_owner(owner, claim.owner):
                raise Refused(f"belongs to {claim.owner}", instance, f"have {claim.owner} do it")
            for allocation in self.allocations(claim.holder):
                self.free(allocation)
            self._db.write("DELETE FROM instances WHERE instance = ?", (instance,))
            self._touched(instance).ended = claim
            self.event(instance, RELEASE_PHASE, f"released by {claim.owner if owner is None else owner}")
            return claim

    def instance_of(self, holder: str) -> str | None:
        """Return the name of the instance whose GPUs are allocated to `holder`, or None."""
        return next((claim.instance for claim in self._claims() if claim.holder == holder), None)

    def _must_have(self, instance: str) -> Claim:
        claim = self.claim_of(instance)
        if claim is None:
            raise Refused(f"is no instance of {THIS_NODE}", instance, "provision it first")
        return claim

    # ---- GPUs and other PCI devices

    def allocations(self, holder: str | None = None) -> list[Allocation]:
        """Return all allocations by address, or those of one holder."""
        where, values = ("", ()) if holder is None else ("WHERE holder = ?", (holder,))
        rows = self._db.rows(f"SELECT * FROM allocations {where} ORDER BY address, since", values)
        return [self._allocation(row) for row in rows]

    def _allocation(self, row: sqlite3.Row) -> Allocation:
        try:
            return read_allocation(row)
        except UNREADABLE as error:
            raise self._damaged(f"what it says of who has {row['address']!r} cannot be read") from error

    def grant(self, allocation: Allocation) -> None:
        """Write an allocation down, new or changed."""
        row = dict(vars(allocation), wanted=json.dumps(vars(allocation.wanted), sort_keys=True))
        row["nodes"] = json.dumps(allocation.nodes)
        places = ", ".join("?" for column in row)
        # Not INSERT OR REPLACE, which would drop another holder's row if the table's index refuses this one.
        renewed = ", ".join(f"{column} = excluded.{column}" for column in row)
        self._db.write(
            f"INSERT INTO allocations ({', '.join(row)}) VALUES ({places})"
            f" ON CONFLICT (address, holder) DO UPDATE SET {renewed}",
            tuple(row.values()),
        )

    def free(self, allocation: Allocation) -> None:
        """Remove an allocation. The caller has checked that its holder cannot open the device."""
        key = (allocation.address, allocation.holder)
        self._db.write("DELETE FROM allocations WHERE address = ? AND holder = ?", key)

    # ---- folders of containers

    def made(self) -> set[str]:
        """Return the keys of all containers and guests that were made for claims which are not being ended, and of all
        that have a GPU.
        """
        made = [claim.container for claim in self.in_use() if claim.state != ENDING]
        return set(filter(None, [*made, *(row.holder for row in self.allocations())]))

    def marked(self) -> dict[str, str | None]:
        return marked_in(self.path)

    def note_marked(self, folder: str, mark: str | None = None) -> None:
        """Write down that a folder of containers has the mark: where that is missing, another is seen there."""
        marked = {**self.marked(), folder: mark}
        lines = ("\t".join(filter(None, line)) + "\n" for line in marked.items())
        with suppress(OSError):  # on a full disk, the next one who is given a GPU does it
            write_whole(marked_beside(self.path), "".join(lines), 0o600)

    # ---- events

    def events(
        self, after: int = 0, instance: str | None = None, address: str | None = None, limit: int = 500
    ) -> list[Event]:
        """Return at most `limit` events with an id above `after`, the oldest first; only of an instance or GPU, if
        given.
        """
        return self._events(after, instance, address, "ASC", limit)

    def newest_events(self, instance: str | None, limit: int) -> list[Event]:
        """Return the last `limit` events of an instance, or of all for None, the oldest of them first."""
        return self._events(0, instance, None, "DESC", limit)[::-1]

    def was_told(self, instance: str, phase: str, text: str) -> bool:
        """Return whether this is the last event of an instance, which so needs none more that says the same."""
        return [(event.phase, event.text) for event in self.newest_events(instance, 1)] == [(phase, printable(text))]

    def newest_event_about(self, words: str) -> Event | None:
        """Return the last event of any instance whose text has these words in it, such as a container's id."""
        where = "instance IS NOT NULL AND instr(text, ?) > 0"
        rows = self._db.rows(f"SELECT * FROM events WHERE {where} ORDER BY id DESC LIMIT 1", [words])
        return _event(rows[0]) if rows else None

    def _events(self, after: int, instance: str | None, address: str | None, order: str, limit: int) -> list[Event]:
        where = "id > ?"
        values: list[Any] = [after]
        for column, value in (("instance", instance), ("address", address)):
            if value is not None:
                where, values = f"{where} AND {column} = ?", [*values, value]
        rows = self._db.rows(f"SELECT * FROM events WHERE {where} ORDER BY id {order} LIMIT ?", [*values, limit])
        return [_event(row) for row in rows]


def _event(row: sqlite3.Row) -> Event:
    """Return the event of a row. What cannot be in a damaged one is left out: it is shown, and ends no verb."""
    texts = {name: row[name] if isinstance(row[name], str) else "" for name in ("actor", "phase", "text")}
    names = {name: row[name] if isinstance(row[name], str) else None for name in ("instance", "address")}
    when, seconds = sound(row["time"]) or 0.0, sound(row["seconds"])
    return Event(row["id"], when, instance=names["instance"], address=names["address"], seconds=seconds, **texts)


def _moved_since(claim: Claim, kept: Claim) -> list[str]:
    """Return the states to which a claim went since its database was copied, where that was a part of a move: it has
    left, and another host may run it; or it was started here, and its tenant may have written to its root.
    """
    began = claim.state == ARRIVING and kept.state != ARRIVING
    first = [ENDING if kept.state == ENDING else STARTING] if began else []
    left = kept.state == LEAVING != claim.state and LEAVING in ways_from((first or [claim.state])[0])
    return [*first, *([LEAVING] if left else [])]


def _refuse_other(claim: Claim, asked: Asked) -> None:
    """Raise Refused unless a claim has this owner, kind, flavor, image and key. No key is shown."""
    if not same(claim.owner, asked.owner):
        raise Refused(f"belongs to {claim.owner}", claim.instance, "choose another name")
    other = [name for name in ("kind", "flavor", "image") if getattr(claim, name) != getattr(asked, name)]
    if key_body(claim.ssh_public_key) != key_body(asked.ssh_public_key):
        other.append("ssh key")
    if other:
        remedy = have_it_otherwise(claim.instance, other, vars(asked))
        if "flavor" in other or "kind" in other:
            remedy = stays(claim.instance, "flavor")
        if "image" in other and asked.no_image:
            remedy = f"{asked.no_image}: choose another image"
        what = f"is here since {age(time.time() - claim.created)} with another {' and '.join(other)}"
        what += f" (it has {keys_told(claim.ssh_public_key)})" if "ssh key" in other else ""
        raise Refused(what, claim.instance, remedy)
