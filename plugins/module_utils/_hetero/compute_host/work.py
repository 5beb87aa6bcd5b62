# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The work on one instance under its lock, whatever it runs in: its claim, its image, its ssh. container.py has the
steps of a container, guest.py those of a KVM guest.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Collection, Protocol, Sequence

from ..core.deadline import Deadline
from ..core.errors import HeteroError, Refused, TimedOut
from ..core.plays import play
from ..core.this_node import THIS_NODE
from ..drivers.boot import ssh
from ..site import instance_states
from ..site.instance import RUNS_ALREADY
from ..site.leases import until
from ..site.moves import is_half
from .host_fit import why_no_image
from .info import claim_fields
from .moved_instances import copy_beside, elsewhere, of_another

if TYPE_CHECKING:
    from ..claims.host.allocation import Allocation
    from ..claims.host.claim_records import Claim
    from ..core.changes import Change
    from ..images.store import Image
    from .host import Host

#: Seconds to remove an instance again, also where its start has used up all of the verb's time.
BACK = 60.0
#: The error for a container or guest that has run although the database does not say that it was made. A tenant may
#: have used it: a run of this collection that was killed leaves only such as were never started.
HAS_RUN = (
    f"{{thing}} has run, and the database of {THIS_NODE}, which may be older than that, knows of none that was made "
    "for it"
)
KEEP = (
    f"nothing of it is touched: put a newer copy of the database back, then run {play('reconcile')}; or, once nobody "
    "wants it, end it by the commands of LXC or libvirt"
)
#: If its sign is gone (a file, or what holds it is not mounted).
LOST = "is gone, and {name} has run: nothing is made in its place"
LOST_WAY = "put it back (is its file system mounted?); where nobody has it any more, {anew} makes a new one"
HALF_WAY = (
    f"put it back (is its file system mounted?), or run {play('reconcile')}, which finds where it runs; then run this "
    f"again; {play('terminate_instance', instance='{name}')} ends all of it"
)
#: In place of the image's hash, while what is there is older than what its tenant asked for in its place.
TO_BE_REMOVED = ""
#: The event of a removal that something new follows.
MADE_ANEW = "is made anew of {image}: what is in it goes"
NO_ADDRESS = "put a newer copy of the database back"


class Report(Protocol):
    """A function that is called for each thing that was done.

    :param text: what was done, for people.
    :param seconds: seconds that it took, or None.
    :param event: whether it is also written down as an event of the instance.
    """

    def __call__(self, phase: str, text: str, seconds: float | None = None, event: bool = True) -> None: ...


class Endable(Protocol):
    """A container or guest, with the methods that end it: by its own init, or by force."""

    @property
    def running(self) -> bool: ...
    def shutdown(self, timeout: float) -> None: ...
    def stop(self) -> None: ...


#: What a rebuild changes in a claim before it removes anything.
BEFORE_A_REBUILD = ("image", "ssh_public_key", "image_hash", "state", "note")


class Work(ABC):
    """One instance under its lock."""

    #: The words for what an instance runs in, and for that with all that was made for it.
    word, whole = "container", "container and root"
    container: Endable

    def __init__(self, host: Host, claim: Claim, change: Change, deadline: Deadline, report: Report) -> None:
        self.host = host
        self.claim = claim
        self.change = change
        self.deadline = deadline
        self.report = report
        #: Whether the instance starts when the host boots.
        self.autostart = True
        #: What cloud-init gets if the root is made now.
        self.user_data: str | None = None
        #: Fields of the result besides the claim's.
        self.more: dict[str, Any] = {}

    def read(self) -> None:
        """Read the claim anew, for another process may have had the lock before."""
        claim = self.host.store.claim_of(self.claim.instance)
        if claim is None or claim.created != self.claim.created:
            raise Refused("was given back meanwhile", self.claim.instance, "run this again")
        self.claim = self.host.store.as_recorded(claim, self.is_of, self.change.check)
        if self.claim.state == instance_states.ARRIVING and self.is_made and self.has_run():  # older than its start
            if self.change.check:
                self.claim = replace(self.claim, state=instance_states.STARTING, note="")
            else:
                self.put(state=instance_states.STARTING, note="")

    @abstractmethod
    def is_of(self, claim: Claim) -> bool:
        """Return whether what is there is what a claim's record says that it was made."""

    def put(self, **fields: Any) -> None:
        self.claim = self.host.store.put(self.claim.instance, **fields)

    def move(self, state: str, note: str = "") -> None:
        if (self.claim.state, self.claim.note) != (state, note) and not self.change.check:
            self.put(state=state, note=note)

    def image(self, name: str) -> Image:
        """Return the image of that name; raise Refused if it does not run here."""
        image = self.host.images.get(name)
        why = why_no_image(self.host, image)
        if why:
            raise Refused(why, self.claim.instance, "ask for another image")
        return image

    def must_have_still(self, image: Image, old: Claim) -> None:
        """Raise HeteroError, with the claim as it was, where an image was removed or replaced since it was looked at.

        The claim names it by now, so that nobody removes it any more. It is in error where nothing leads from a rebuild
        to the state it had, that of a start which was cut off.
        """
        try:
            if self.image(self.claim.image).hash != image.hash:
                raise Refused("was replaced meanwhile", f"image {image.name}", "run this again")
        except HeteroError as error:
            before = {name: getattr(old, name) for name in BEFORE_A_REBUILD}
            if old.state not in instance_states.ways_from(instance_states.REBUILDING):
                before.update(state=instance_states.ERROR, note=str(error))
            self.put(**before)
            raise

    def _refuse_what_ran(self, thing: str, ran: Callable[[], bool]) -> None:
        """Raise Refused if what is there is that of another claim; or if, by the database, nothing was made for this
        one, but what is there has run.

        :param ran: called to see whether what is there has run.
        """
        others = of_another(self.host, self.word, os.path.dirname(self.sign))
        if others:
            raise Refused(others, self.claim.instance)
        if self.claim.container is None and (ran() or self._ran_by_record):
            raise Refused(HAS_RUN.format(thing=thing), self.claim.instance, KEEP)

    @property
    def _ran_by_record(self) -> bool:
        """Return whether what is there was made, and handed over, by the claim's record; the database may be older."""
        kept = self.kept
        if kept is None or kept.container is None or not os.path.lexists(self.sign):
            return False
        # a process that is killed between record and database leaves one that was just made
        quiet = (*instance_states.NEVER_RAN, instance_states.ENDING, instance_states.ARRIVING)
        return kept.state not in quiet and not (kept.state == self.claim.state == instance_states.REBUILDING)

    @property
    def making(self) -> str:
        """The state in which it is made: BUILDING where nobody has had it, or its end was begun, else REBUILDING."""
        anew = self.claim.state not in (*instance_states.NEVER_RAN, instance_states.ENDING)
        return instance_states.REBUILDING if anew else instance_states.BUILDING

    @property
    def address(self) -> str:
        """Return the instance's IPv4 address; raise Refused if the database has lost it."""
        if self.claim.address is None:
            raise Refused("has no address in the host's database", self.claim.instance, NO_ADDRESS)
        return self.claim.address

    @property
    def is_lost(self) -> bool:
        """Return whether what was made for the claim is missing or not whole, although it is not being made anew.

        So it is, too, where only the claim's record knows that it was made: the database may be older.
        """
        if self.is_made or (self.claim.container is None and os.path.lexists(self.sign)):
            return False
        return self._had_one(instance_states.MADE_ANEW)

    def _had_one(self, but: Collection[str]) -> bool:
        """Return whether a container or guest was made, by the claim or its record, of which one is in another state.

        :param but: these states do not count.
        """
        claims = [claim for claim in (self.claim, self.kept) if claim is not None]
        return any(one.container is not None for one in claims) and any(one.state not in but for one in claims)

    def must_not_be_lost(self) -> None:
        """Raise Refused if the instance is lost, for what is left of it may be all that its tenant has."""
        self._refuse_stranger()
        moved = None if self.is_made else self._copy_beside or elsewhere(self.host, self.claim)
        if self.is_lost:
            half = is_half(self.claim.state, self.claim.note)  # is made anew by no verb
            way = moved or (HALF_WAY if half else LOST_WAY).format(anew=self.anew, name=self.claim.instance)
            raise Refused(LOST.format(name=self.claim.instance), self.sign, way)
        if moved:
            raise Refused(moved, self.claim.instance)

    @property
    def _copy_beside(self) -> str | None:
        beside = copy_beside(self.host, self.claim)
        return beside if beside and self._had_one(()) else None

    def must_be_alone(self) -> None:
        """Raise Refused if a copy of what was made lies beside it, as where a person was moving it."""
        beside = self._copy_beside
        if beside:
            raise Refused(beside, self.claim.instance)

    @property
    def anew(self) -> str:
        """The command line that makes the instance anew, whatever was in it."""
        return play("rebuild_instance", instance=self.claim.instance, fresh="true")

    @property
    def is_left_old(self) -> bool:
        """Return whether a rebuild was cut off before it removed what there was: the claim says what is to come.

        The record of the claim has to say so, too: of a rebuild that ended since, an older database knows nothing.
        """
        kept = self.kept
        both = self.claim.image_hash == TO_BE_REMOVED and kept is not None and kept.image_hash == TO_BE_REMOVED
        return both and self.is_made

    def must_not_be_newer(self) -> None:
        """Raise Refused where database and record, both older, say that a rebuild is to be ended, and what is there was
        made since that was begun, and has run. A container has another id by then.
        """

    @property
    def _rebuild_begun(self) -> float:
        """The time at which a rebuild was last begun."""
        said = MADE_ANEW.partition("{")[0]
        events = self.host.store.newest_events(self.claim.instance, 500)
        return max([event.time for event in events if event.text.startswith(said)], default=self.claim.since)

    @property
    def kept(self) -> Claim | None:
        """Return the record of this very claim, which may be newer than the database; None where there is none."""
        kept = self.host.store.kept(self.claim.instance)
        return kept if kept is not None and kept.is_same(self.claim) else None

    @abstractmethod
    def has_run(self) -> bool:
        """Return whether a container or guest is there and was ever started."""

    @property
    @abstractmethod
    def is_made(self) -> bool:
        """Return whether the container or guest that was made for this claim is there."""

    @property
    @abstractmethod
    def sign(self) -> str:
        """The file whose existence shows that the container or guest is there."""

    @property
    @abstractmethod
    def has_root(self) -> bool:
        """Return whether its root, or what is left of it, is there, whether or not it is whole."""

    @property
    @abstractmethod
    def inside(self) -> str:
        """Return the command, or the file, by which people see on the host what the instance does."""

    @abstractmethod
    def _refuse_stranger(self) -> None:
        """Raise Refused if what is there was not made for this claim."""

    @abstractmethod
    def must_be_own(self) -> None:
        """Raise HeteroError where what is there is not its own, or cannot be ended; `remove` would refuse it, too.

        A verb asks before its first change.
        """

    @abstractmethod
    def must_be_makeable(self, image: Image) -> None:
        """Raise HeteroError where `make` would fail; what there is is removed for it only after that was asked."""

    @abstractmethod
    def must_be_whole(self) -> None:
        """Raise HeteroError where one that was made would not start again, for its root is missing or another's."""

    @abstractmethod
    def must_start(self) -> None:
        """Raise HeteroError where its next start would fail for its address or its devices.

        A verb asks before it ends or removes what there is.
        """

    def must_have_devices(self) -> None:
        """Raise Refused if one of its devices is no more at its address, or another one is there.

        GPUs of containers are looked at where they are given, and by module gpu_reconcile.
        """

    @abstractmethod
    def make(self) -> None:
        """Make the container or guest; leave alone what is there and as the claim asks for."""

    @abstractmethod
    def correct(self, parts: Collection[str], say: Callable[[Sequence[str]], object]) -> None:
        """Put back these parts of what was made where they differ from the claim.

        :param say: called with the parts that are put back, or would be in check mode.
        """

    @abstractmethod
    def start(self) -> None:
        """Start it if it does not run."""

    @abstractmethod
    def give_devices(self) -> None:
        """Give it its devices, and prove what it has."""

    @abstractmethod
    def remove(self) -> None:
        """Remove what was made for it."""

    @abstractmethod
    def is_on_host(self, row: Allocation) -> bool:
        """Return whether a device that was given is there; one that was taken out is nobody's to have."""

    @abstractmethod
    def give_back(self) -> None:
        """Have its devices ready for others, after it was removed."""

    def _say_put_back(self, missing: Sequence[str]) -> None:
        self.report("image", f"{'would be ' if self.change.check else ''}put back: {', '.join(missing)}")

    @property
    def harm(self) -> str | None:
        """Return the fault of the instance's disk that cannot be mended while it runs; None if none is known."""
        return None

    @property
    def leaves(self) -> str | None:
        """Return, in words, what only a running one has, and nothing tells of once it has ended; None of all others."""
        return None

    @property
    def time_to_remove(self) -> Deadline:
        """The deadline for the instance's removal; the next try removes what is left then."""
        return Deadline(max(BACK, self.deadline.left))

    def answer(self) -> None:
        """Wait until its ssh server shows the host key that was put into it; raise TimedOut if it does not."""
        if self.change.check:
            return
        start = time.monotonic()
        if not ssh.answers(self.address, self.claim.host_key, self.deadline):
            what = f"ssh did not answer at {self.address} within {self.deadline.seconds:g} s"
            log = "see its console log, and whether its image starts sshd"
            raise TimedOut(what, self.claim.instance, log)
        if self.claim.state != instance_states.RUNNING:
            self.report("ssh", "ssh answers", time.monotonic() - start)
        else:  # no event, for a user may ask for it each day
            self.report("ssh", RUNS_ALREADY, event=False)

    @property
    def result(self) -> dict[str, Any]:
        claim = self.claim
        known = ssh.known_hosts_line(claim.address, claim.host_key) if claim.address and claim.host_key else None
        ends = until(claim.expires, time.time()) if claim.expires else None
        return {**claim_fields(self.host, claim), "known_hosts": known, "until": ends, **self.more}
