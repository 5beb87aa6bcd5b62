# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A step by which an instance moves from one compute host to another: a call on one of the two, under its lock.

departures.py has the steps on the host that it leaves, arrivals.py those on the host to which it moves. Each looks
first, so that a move which was cut off anywhere goes on when all steps are taken again.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, Iterator, Mapping

from ..core.deadline import Deadline
from ..core.errors import Refused, naming
from ..core.plays import play
from ..core.this_node import THIS_NODE
from ..site import instance_states
from ..site.moves import END, ENDED, GOES_ON, PHASE
from ..site.owners import must_be_made, must_own
from .lifecycle import held, reporter, work_of
from .roots_out_of_sight import must_be_seen

if TYPE_CHECKING:
    from ..core.changes import Change
    from .host import Host
    from .work import Work

#: A module's result.
Result = Dict[str, Any]
VERB = "migrate"
MAY_HAVE_RUN = "was started here, and its tenant may have written to its root since: nothing of it is removed"
WORD = (
    f"{play('migrate_instance', instance='{name}')} goes on; an operator's word, with -e back=true, gives up what was "
    "written here, and starts the former root again"
)
LOOK = f"{play('status')} shows where it is"
NOT_OFF = "is not off, or does not leave this host any more: nothing of its root is read"
OTHER_RUN = "is moved by another run since: this one does nothing more"


@dataclass(frozen=True)
class Asked:
    """What a step is asked for.

    :param created: when the instance was claimed (unix seconds); a later claim of that name is refused.
    :param owner: if given, another owner's instance is refused.
    :param run: the run of playbook migrate_instance. `arriving` and `leaving` write it into the two claims; `settled`
        and `recalled` do, each before the root on the other host is removed. The steps of a run are refused once
        another one has written its own there: each could start a root, or remove one.
    :param seen: the run that the claim here named when this run looked where the instance is; "" for none. What
        another one has claimed since is not taken over.
    :param other: the other host, by its name in the inventory.
    :param came: what the old host `described`.
    :param has: {file: {number: sum}} of the pieces that the new host has.
    :param piece: a piece of a file (sparse_copy.py), with the name of the `file`.
    :param digests: {file: digest} of the whole files on the old host.
    :param host_key: the ssh host key that the instance proved on the new host.
    :param departure: that of which the root on the new host was copied (Claim.departure).
    :param force: give up also what was started (given_up).
    """

    instance: str
    created: float
    owner: str | None = None
    run: str = ""
    seen: str = ""
    other: str = ""
    came: Mapping[str, Any] = field(default_factory=dict)
    has: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    piece: Mapping[str, Any] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    host_key: str = ""
    departure: str = ""
    force: bool = False
    timeout: float = 300.0
    soft_timeout: float = 30.0


@dataclass(frozen=True)
class Step:
    """One step on one host."""

    host: Host
    asked: Asked
    change: Change
    lines: list[Result] = field(default_factory=list)

    @contextmanager
    def work(self) -> Iterator[Work]:
        """Give the work on the instance, under its lock."""
        host, asked = self.host, self.asked
        claim = host.store.claim_of(asked.instance)
        if claim is None:
            raise Refused(f"no such instance on {THIS_NODE}", asked.instance, LOOK)
        must_own(claim, asked.owner)
        must_be_made(claim, (asked.created,))
        report = reporter(host, claim.instance, self.change, self.lines)
        work = work_of(host, claim, self.change, Deadline(asked.timeout), report)
        with naming(claim.instance), held(work, VERB, work.deadline):
            work.read()
            yield work

    @contextmanager
    def left(self) -> Iterator[Work]:
        """Give the work on an instance that is leaving, and off."""
        with self.work() as work:
            if work.claim.state != instance_states.LEAVING or work.container.running or is_mounted(work):
                raise Refused(NOT_OFF, self.asked.instance, GOES_ON.format(name=self.asked.instance))
            self.must_be_its_run(work)
            yield work

    @contextmanager
    def arrives(self) -> Iterator[Work]:
        """Give the work on an instance that arrives, and was never started here."""
        with self.work() as work:
            must_not_end(work)
            if work.claim.state != instance_states.ARRIVING:
                raise Refused(MAY_HAVE_RUN, self.asked.instance, WORD.format(name=self.asked.instance))
            self.must_be_its_run(work)
            yield work

    def must_be_its_run(self, work: Work) -> None:
        """Raise Refused where another run has taken the move up since this one wrote itself into the claim."""
        if (work.claim.mover or "") != self.asked.run:
            raise Refused(OTHER_RUN, self.asked.instance, LOOK)

    def is_as_seen(self, work: Work) -> bool:
        """Return whether no other run has moved it since this one looked."""
        return (work.claim.mover or "") in (self.asked.seen, self.asked.run)

    def must_be_as_seen(self, work: Work) -> None:
        """Raise Refused where another run has moved it since this one looked: it was decided by what is so no more."""
        if not self.is_as_seen(work):
            raise Refused(OTHER_RUN, self.asked.instance, LOOK)

    def take_up(self, work: Work) -> None:
        """Write this run into the claim: no other one takes a step with it from then on. The claim's record has that,
        too, and so it holds where the database is put back.
        """
        before, after = {"mover": work.claim.mover or ""}, {"mover": self.asked.run}
        if self.change.note(self.asked.instance, before, after) and not self.change.check:
            work.put(**after)


def must_not_end(work: Work) -> None:
    """Raise Refused where the end of an instance was begun here: what is left of it is no root that runs."""
    if work.claim.state == instance_states.ENDING:
        name = work.claim.instance
        raise Refused(ENDED.format(node=work.host.name), name, END.format(name=name))


def is_mounted(work: Work) -> bool:
    """Return whether this host has the root of a container mounted."""
    return os.path.ismount(os.path.join(os.path.dirname(work.sign), "rootfs"))


def end(work: Work, text: str) -> None:
    """Remove what was made for an instance here, and end its claim; each is read back.

    :raises Refused: nothing of it is to be seen, and what holds it may not be mounted.

    The claim keeps the note of the move: where this is cut off, only the move ends what is left.
    """
    must_be_seen(work, moves=True)
    work.change.note(work.claim.instance, {"state": work.claim.state}, {})
    if work.change.check:
        return
    start = time.monotonic()
    work.move(instance_states.ENDING, work.claim.note)
    work.remove()
    work.give_back()
    work.host.store.release(work.claim.instance)
    work.report(PHASE, text, time.monotonic() - start)
