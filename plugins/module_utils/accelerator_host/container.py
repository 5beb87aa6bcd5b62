# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One instance and its container, step by step: root, start, GPUs, ssh; each looks first, and is told to people.

In which order, and what is done when a step fails, is for instances.py.
"""

from __future__ import annotations

import time
from functools import partial

from ..boot import ssh
from ..change import Change
from ..errors import Refused, TimedOut
from ..gpus import attaching, reach
from ..lxc import creating, identity, images, limits, private_nodes
from ..lxc.liblxc import Container
from . import states
from .claiming import wanted_of
from .info import claim_fields


class Work:
    """One instance under its lock.

    :param report: called with (phase, text, seconds) for each thing that was done.
    """

    def __init__(self, host, claim, change, deadline, report):
        self.host = host
        self.claim = claim
        self.change = change
        self.deadline = deadline
        self.report = report
        self.container = Container(claim.instance, host.config["lxcpath"])
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

    @property
    def is_made(self):
        """Whether its container is there, and is the one that was made for this claim."""
        return self.claim.container is not None and self.container.defined and self._is_ours()

    def _is_ours(self):
        return identity.key_of(self.container) == self.claim.container

    def put(self, **fields):
        self.claim = self.host.store.put(self.claim.instance, **fields)

    def move(self, state, note=""):
        if (self.claim.state, self.claim.note) != (state, note) and not self.change.check:
            self.put(state=state, note=note)

    def image(self, name):
        """The image of that name, of an architecture that runs here; None in a dry run that would take it in first."""
        folder, say = self.host.folder("images"), partial(self.report, "image")
        image = images.resolve(folder, name, self.change, say, self.deadline)
        if image is None:
            return None
        if image.arch != self.host.cpu_arch:
            what = f"image {name} is for {image.arch}, this host is {self.host.cpu_arch}"
            raise Refused(what, self.claim.instance, "ask for another image")
        return image

    # ---- steps

    def make(self):
        """Root, configuration, keys and limits; what is there and as it was asked for is left alone."""
        start = time.monotonic()
        if self.is_made:
            self.correct((creating.CONFIGURATION, creating.KEY), self._say_put_back)
            return
        image = self.image(self.claim.image)
        self.change.note(self.claim.instance, {"container": None}, {"container": f"from {self.claim.image}"})
        if self.change.check:
            self.report("image", f"root would be made from {self.claim.image}")
            return
        self._refuse_stranger()
        self.move(states.REBUILDING if self.claim.state == states.REBUILDING else states.BUILDING)
        host_key = creating.create(self._spec(image), self.deadline)
        unlimited = limits.missing(self.claim.memory_mb, self.claim.vcpus)
        self.put(container=identity.key_of(self.container), host_key=host_key, image_hash=image.hash)
        self.report("image", f"root ready from {image.name}, {self.claim.address}", time.monotonic() - start)
        if unlimited:
            self.report("image", f"not limited, as this host has no such cgroup controller: {', '.join(unlimited)}")

    def _refuse_stranger(self):
        """A claim that never had a container has none, but for what a killed run of this left."""
        if self.claim.container is not None and self.container.defined and not self._is_ours():
            what = f"{self.container.config_file} is not the container that was made for it"
            raise Refused(what, self.claim.instance, "look into it; to be made anew, it must be moved away")

    def correct(self, parts, say):
        """Have these parts of a container that is there as its claim says.

        :param say: called with those that are put back, or would be.
        """
        missing = [part for part in creating.missing(self._spec()) if part in parts]
        if missing:
            self.change.note(self.claim.instance, {"missing": missing}, {"missing": []})
            say(missing)
            if not self.change.check:
                creating.put_back(self._spec(), missing)

    def _say_put_back(self, missing):
        if self.claim.state == states.STOPPED and missing == [creating.CONFIGURATION]:
            return  # one that was stopped does not start with the host; from now on it does again
        self.report("image", f"{'would be ' if self.change.check else ''}put back: {', '.join(missing)}")

    def _spec(self, image=None):
        config = self.host.config
        return creating.Spec(
            name=self.claim.instance,
            lxcpath=config["lxcpath"],
            image=image,
            ssh_public_key=self.claim.ssh_public_key,
            bridge=config["bridge"],
            address=self.claim.address,
            prefix_length=config["prefix_length"],
            gateway=config["gateway"],
            memory_mb=self.claim.memory_mb,
            vcpus=self.claim.vcpus,
            unprivileged=config["unprivileged"],
            autostart=self.autostart,
            command=self.host.machine.command,
        )

    def start(self):
        start = time.monotonic()
        if self.container.running:
            return
        self.change.note(self.claim.instance, {"state": self.claim.state}, {"state": states.RUNNING})
        if self.change.check:
            self.report("container", "container would be started")
            return
        if self.claim.state not in (states.BUILDING, states.REBUILDING):
            self.move(states.STARTING)
        self.container.start(self.deadline.left)
        self.report("container", "container started", time.monotonic() - start)

    def give_gpus(self):
        """Its GPUs open, all others proven closed."""
        rows = self.host.store.allocations(self.claim.holder)
        wanted = rows[0].wanted if rows else wanted_of(self.host, self.claim.flavor)
        if wanted is None:
            return
        start = time.monotonic()
        free = {gpu.address for gpu in self.host.gpus} - {row.address for row in self.host.store.allocations()}
        change = Change(self.change.check)  # of its own, to see whether it was this that changed something
        result = attaching.attach(self.host.site, self.container, wanted, change, self.deadline)
        self.change.take(change)
        own = [gpu["address"] for gpu in result["gpus"]]
        kind = {gpu.address for gpu in self.host.gpus if wanted.arch in (None, gpu.arch)}
        named = f"{wanted.arch} GPUs" if wanted.arch else "GPUs"
        text = f"{len(own)} of {len(kind & (free | set(own)))} free {named}: {' '.join(own)} open"
        self.more.update(gpus=own, isolation=result["isolation"])
        if result["changed"] or self.claim.state != states.RUNNING:
            self.report("gpus", text + _others(result["others"]), time.monotonic() - start)

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
        if claim.state != states.RUNNING:
            self.report("ssh", "ssh answers", time.monotonic() - start)

    def remove(self):
        """The container with its processes, its root and its nodes; nothing of it can open a GPU afterwards."""
        self._refuse_stranger()
        creating.remove(self.container)
        private_nodes.forget(self.container, base=self.host.machine.private)
        self.put(container=None, host_key=None, image_hash=None)

    @property
    def result(self):
        claim = self.claim
        known = ssh.known_hosts_line(claim.address, claim.host_key) if claim.host_key else None
        return dict(claim_fields(self.host, claim), known_hosts=known, **self.more)


def _others(others):
    """What is proven of the GPUs that it was not given."""
    closed = sum(other["state"] == reach.CLOSED for other in others)
    only = len(others) - closed
    said = f"; the other {closed} proven closed" if closed else ""
    return f"{said}; {only} closed by the lack of a node only" if only else said
