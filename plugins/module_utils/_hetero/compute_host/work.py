# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One instance under its lock, whatever it runs in: its claim, its image, its ssh. The steps of a container are
container.py's, those of a KVM guest guest.py's.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from ..core.deadline import Deadline
from ..core.errors import Refused, TimedOut
from ..core.plays import play
from ..core.this_node import THIS_NODE
from ..drivers.boot import ssh
from ..site import instance_states
from .host_claims import wrong_arch
from .info import claim_fields

#: Seconds to take an instance back, also where all the time that there was is spent on its start.
BACK = 60.0
#: What one of us that was killed leaves never started; what has run is somebody's.
HAS_RUN = (
    f"{{thing}} has run, and the database of {THIS_NODE}, which may be older than that, knows of none that was made "
    "for it"
)
KEEP = (
    f"nothing of it is touched: put a newer copy of the database back, then run {play('reconcile')}; or, once nobody "
    "wants it, end it by the commands of LXC or libvirt"
)
#: Where its sign is gone (a file, or what holds it is not mounted).
LOST = "is gone, and {name} has run: nothing is made in its place"
LOST_WAY = "put it back (is its file system mounted?); where nobody has it any more, {anew} makes a new one"


class Work(ABC):
    """One instance under its lock.

    :param report: called with (phase, text, seconds) for each thing that was done.
    """

    #: How people call what it runs in, and that with all that was made for it.
    word, whole = "container", "container and root"

    def __init__(self, host, claim, change, deadline, report):
        self.host = host
        self.claim = claim
        self.change = change
        self.deadline = deadline
        self.report = report
        #: Whether it is to start with the host.
        self.autostart = True
        #: Fields of the result besides the claim's.
        self.more = {}

    def read(self):
        """The claim as it is now; somebody else may have had the lock before."""
        claim = self.host.store.claim_of(self.claim.instance)
        if claim is None or claim.created != self.claim.created:
            raise Refused("was given back meanwhile", self.claim.instance, "run this again")
        self.claim = claim

    def put(self, **fields):
        self.claim = self.host.store.put(self.claim.instance, **fields)

    def move(self, state, note=""):
        if (self.claim.state, self.claim.note) != (state, note) and not self.change.check:
            self.put(state=state, note=note)

    def image(self, name):
        """The image of that name, of an architecture that runs here."""
        image = self.host.images.get(name)
        if image.arch != self.host.cpu_arch:
            raise Refused(wrong_arch(self.host, image), self.claim.instance, "ask for another image")
        return image

    def _refuse_what_ran(self, thing, ran):
        """Refused where somebody's is there, and was never made by what the database knows of the claim.

        :param ran: called to see whether what is there has run.
        """
        if self.claim.container is None and ran():
            raise Refused(HAS_RUN.format(thing=thing), self.claim.instance, KEEP)

    @property
    def is_lost(self):
        """Whether what ran is not there, or not whole, and nobody asked for that."""
        return (
            self.claim.container is not None and self.claim.state not in instance_states.MADE_ANEW and not self.is_made
        )

    def must_not_be_lost(self):
        """Refused where it is: what is left may be all that somebody has."""
        self._refuse_stranger()
        if self.is_lost:
            anew = play("rebuild_instance", instance=self.claim.instance, fresh="true")
            raise Refused(LOST.format(name=self.claim.instance), self.sign, LOST_WAY.format(anew=anew))

    @property
    @abstractmethod
    def is_made(self):
        """Whether what was made for this claim is there."""

    @property
    @abstractmethod
    def sign(self):
        """The file by which it is there."""

    @abstractmethod
    def _refuse_stranger(self):
        """Refused where what is there was not made for this claim."""

    def _say_put_back(self, missing):
        self.report("image", f"{'would be ' if self.change.check else ''}put back: {', '.join(missing)}")

    @property
    def harm(self):
        """What is wrong with its disk and cannot be mended while it runs; None where nothing is known."""
        return None

    @property
    def time_to_remove(self):
        """A Deadline; what is not removed by then is by the next try."""
        return Deadline(max(BACK, self.deadline.left))

    def answer(self):
        """Its ssh server shows the host key that was put into it."""
        if self.change.check:
            return
        start = time.monotonic()
        claim = self.claim
        if not ssh.answers(claim.address, claim.host_key, self.deadline):
            what = f"ssh did not answer at {claim.address} within {self.deadline.seconds:g} s"
            log = "see its console log, and whether its image starts sshd"
            raise TimedOut(what, claim.instance, log)
        if claim.state != instance_states.RUNNING:
            self.report("ssh", "ssh answers", time.monotonic() - start)

    @property
    def result(self):
        claim = self.claim
        known = ssh.known_hosts_line(claim.address, claim.host_key) if claim.host_key else None
        return dict(claim_fields(self.host, claim), known_hosts=known, **self.more)
