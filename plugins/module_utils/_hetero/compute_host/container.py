# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of an instance in a container: root, start, GPUs, ssh. Each step looks first, and reports what it did.

lifecycle.py calls them in order, and decides what is done when a step fails.
"""

from __future__ import annotations

import os
import shlex
import time
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Collection, Mapping, Sequence

from ..claims.host.allocation import DETACHING, allocate, gpu_of
from ..core.changes import Change
from ..core.errors import HeteroError, Refused, TimedOut, naming
from ..core.plays import play
from ..hypervisors import pinning
from ..hypervisors.lxc import disks, folders, id_maps, identity, limits, new_container, own_root, private_nodes
from ..hypervisors.lxc.liblxc import Container
from ..hypervisors.lxc_gpus import attachment, open_rights
from ..hypervisors.lxc_gpus.access import HOST
from ..scheduling.compute_hosts import gpu_arch, gpu_count
from ..scheduling.extra_specs import satisfies
from ..site import instance_states
from .host_claims import free_ids, wanted_of
from .moved_instances import by_another_path, note_if_elsewhere
from .work import Work

if TYPE_CHECKING:
    from ..claims.host.allocation import Allocation, GpuRequest
    from ..claims.host.claim_records import Claim
    from ..core.deadline import Deadline
    from ..images.store import Image
    from .host import Host
    from .work import Report

#: What a person does about a copy of the container that was made for a claim.
PUT_BACK = (
    "its folder is a copy of that one's, such as from a backup or on another disk: where it is to be the container "
    "from now on, and none else is, write {number} in place of {old} into the line '# hetero.compute: id' of that "
    "file, then run this again"
)

#: Of such a copy, in another folder of containers (lxcpath), once that is written: the first one would be another.
FORMER = (
    "{former}, of which that is a copy, is there still: where the copy is to be the container from now on, give the "
    "former one, once it does not run, another name (mv -T {former} {former}.former); then run this again"
)

#: Text about files in the folder of a container that was never made: a person's, or the rest of a lost claim's.
SOMEBODYS = "{folder} is not empty, and nothing was made there for this claim: nothing of it is removed"
SOMEBODYS_WAY = "see whose it is; move it to another name (mv, once nothing is mounted in it), then run this again"

#: Of an instance without a GPU that was asked for as its flavor asks.
ALL_BY_HAND = (
    "all its GPUs were asked for by hand: where its flavor's is not among them, for it was taken back, ask for as many "
    "as it is to have (module hetero.compute.lxc_gpu_attach, count {count}{kind})"
)


class ContainerWork(Work):
    """An instance in a container, under its lock."""

    container: Container

    def __init__(self, host: Host, claim: Claim, change: Change, deadline: Deadline, report: Report) -> None:
        super().__init__(host, claim, change, deadline, report)
        self.container = Container(claim.instance, host.config.lxc.lxcpath)

    @property
    def is_made(self) -> bool:
        """Return whether the container is there, and was made for this claim."""
        return self.claim.container is not None and self.container.defined and self._is_ours()

    @property
    def sign(self) -> str:
        """The file whose existence shows that the container is there."""
        return self.container.config_file

    @property
    def has_root(self) -> bool:
        root = disks.root_of(self.container)
        return disks.has(self.container) or (os.path.isdir(root) and bool(os.listdir(root)))

    @property
    def inside(self) -> str:
        """Return the command that opens a shell in the container from its host, for people."""
        return f"lxc-attach -P {self.container.lxcpath} -n {self.container.name}"

    def read(self) -> None:
        """Read the claim anew; a container whose folder was moved, with all of the claim's, is the claim's there."""
        super().read()
        old = self.claim.container
        with suppress(Refused):  # one whose configuration cannot be read may be another's
            key = identity.key_of(self.container)
            if not old or not key or key == old or identity.id_of(key) != identity.id_of(old):
                return
            if not os.path.lexists(old.rpartition("#")[0]) and by_another_path(self.claim, self.container) is None:
                self.claim = replace(self.claim, container=key)
                if not self.change.check:
                    self.put(container=key)

    def is_of(self, claim: Claim) -> bool:
        return identity.key_of(self.container) == claim.container

    def _is_ours(self) -> bool:
        return self.is_of(self.claim)

    # ---- steps

    def make(self) -> None:
        """Make root, configuration, keys and limits; leave alone what is there and as the claim asks for."""
        start = time.monotonic()
        if self.is_made:
            if not self.container.running:
                identity.must_run_by_no_other(self.container)
                self.must_be_alone()
            self.correct((new_container.CONFIGURATION, new_container.KEY), self._say_put_back)
            return
        self.must_not_be_lost()
        new_container.must_hold_only_own(self.container)
        self.refuse_unmounted()
        image = self.image(self.claim.image)
        self.change.note(self.claim.instance, {"container": None}, {"container": f"from {self.claim.image}"})
        if self.change.check:
            self.report("image", f"root would be made from {self.claim.image}")
            return
        if self.claim.container is None:
            self.move(self.making)
        else:  # its end was cut off, and is ended here: the new one, if that is cut off as well, is not taken for it
            new_container.remove(self.container, self.deadline, self.host.machine.disks)
            self.put(state=self.making, note="", container=None, host_key=None, image_hash=None)
        self._settle_ids()
        host_key = new_container.create(self.spec(image), self.deadline)
        unlimited = limits.missing(self.claim.memory_mb, self.claim.vcpus, self.host.config.lxc.pids)
        self.put(container=identity.key_of(self.container), host_key=host_key, image_hash=image.hash)
        identity.note_marks([self.container.lxcpath], self.host.store)
        new_container.put_back(self.spec(), [new_container.CONFIGURATION])  # from now on, the host may start it
        self.report("image", f"root ready from {image.name}, {self.claim.address}", time.monotonic() - start)
        if unlimited:
            self.report("image", f"not limited, as this host has no such cgroup controller: {', '.join(unlimited)}")

    def _refuse_stranger(self) -> None:
        """Raise Refused if something is there that was not made for this claim.

        A claim that never had a container accepts nothing, except what a killed run of this method left.
        """
        identity.key_of(self.container)  # one whose configuration cannot be read may be another's
        self._refuse_what_ran(self.container.thing, self.has_run)
        if self.claim.container is not None and self.container.defined and not self._is_ours():
            refusal = by_another_path(self.claim, self.container)
            if refusal:
                raise refusal
            what = f"{self.container.config_file} is not the container that was made for it"
            raise Refused(what, self.claim.instance, self._way_on())
        identity.must_run_by_no_other(self.container)
        unknown = self.claim.container is None and (self.container.defined or not self._had_one(()))
        if unknown and not new_container.is_nobodys(self.container):
            raise Refused(SOMEBODYS.format(folder=self.container.folder), self.claim.instance, SOMEBODYS_WAY)
        self._refuse_anothers_folder()

    def refuse_unmounted(self) -> None:
        """Raise Refused if none of the others is in the folder of containers: what is made there now might be covered
        by their file system, and be taken for a sign that it is mounted.
        """
        store, lxcpath = self.host.store, self.container.lxcpath
        marked = store.marked()
        if not folders.is_marked(lxcpath, marked):
            identity.must_be_seen(lxcpath, store.made() - {self.claim.container}, marked)

    def _refuse_anothers_folder(self) -> None:
        """Raise Refused if its root, a plain folder as an earlier release made it, is another instance's."""
        if self.claim.container is not None and not disks.has(self.container):
            others = {claim.host_key: claim.instance for claim in self.host.store.claims() if claim.host_key}
            own_root.must_have_no_others_key(self.container, self.claim.host_key, others)

    def _way_on(self) -> str:
        """Return what a person does about a container that was not made for this claim, or is a copy of the one."""
        found = identity.written(self.container.config_file)
        if found is None or found[0] != identity.id_of(self.claim.container):
            return "look into it; to be made anew, it must be moved away"
        number = os.stat(self.container.folder).st_ino
        if number == found[1]:
            return FORMER.format(former=shlex.quote((self.claim.container or "").rpartition("#")[0]))
        return PUT_BACK.format(number=number, old=found[1])

    def has_run(self) -> bool:
        """Return whether a container is there and was ever started: LXC makes its console's log at the first start."""
        log = os.path.join(self.container.folder, "console.log")
        return self.container.defined and (self.container.running or os.path.exists(log))

    def _settle_ids(self) -> None:
        """Give a container that is made anew its own range of ids, or none, by the host's present configuration."""
        if self._has_other_ids:
            with self.host.store.transaction():
                self.put(first_id=free_ids(self.host) if self.host.config.lxc.unprivileged else None)

    @property
    def _has_other_ids(self) -> bool:
        return self.host.config.lxc.unprivileged != (self.claim.first_id is not None)

    @property
    def id_map(self) -> tuple[id_maps.IdMap, ...]:
        """The ids to which the container's files are shifted; without a range of its own, its configuration's."""
        if self.claim.first_id is not None:
            return id_maps.of(self.claim.first_id)
        return tuple(self.container.id_map) if self.is_made else ()

    def correct(self, parts: Collection[str], say: Callable[[Sequence[str]], object]) -> None:
        """Have these parts of a container that is there as its claim says.

        :param say: called with those that are put back, or would be.
        """
        first = (new_container.DISK, new_container.CHECKED)
        self._refuse_anothers_folder()
        missing = [part for part in new_container.missing(self.spec()) if part in (*parts, *first)]
        if missing:
            start = self._started_otherwise(missing)
            self.change.note(self.claim.instance, *(start or ({"missing": missing}, {"missing": []})))
            say(missing)
            if not self.change.check:
                new_container.put_back(self.spec(), missing)
                if missing[0] in first:  # the other parts could not be seen before
                    self.correct(parts, say)
        if not self.change.check:
            with suppress(HeteroError):  # one of an earlier release; on a full disk, the next look does it
                own_root.record(self.container, disks.file_of(self.container))

    @property
    def harm(self) -> str | None:
        if self.is_made and disks.has_errors(self.container) and self.container.running:
            reboot = play("reboot_instance", instance=self.claim.instance)
            return f"its file system has errors and takes no writes: {reboot} has it checked"
        return None

    def _started_otherwise(self, missing: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return, before and after, how it is started, where nothing else of it is missing; else None."""
        only = missing == [new_container.CONFIGURATION]
        return new_container.started_otherwise(self.spec()) if only else None

    def _say_put_back(self, missing: Sequence[str]) -> None:
        if self._started_otherwise(missing):
            return  # as a verb that starts it has it
        self.report("image", f"{'would be ' if self.change.check else ''}put back: {', '.join(missing)}")

    def spec(self, image: Image | None = None) -> new_container.Spec:
        config = self.host.config.lxc
        return new_container.Spec(
            name=self.claim.instance,
            lxcpath=config.lxcpath,
            image=image,
            ssh_public_key=self.claim.ssh_public_key,
            user_data=self.user_data,
            bridge=config.bridge,
            address=self.address,
            prefix_length=config.prefix_length,
            gateway=config.gateway,
            memory_mb=self.claim.memory_mb,
            vcpus=self.claim.vcpus,
            disk_gb=self.claim.local_gb or config.root_gb,
            pids=config.pids,
            id_map=self.id_map,
            autostart=self.autostart,
            leaves=self.claim.state == instance_states.LEAVING,
            command=self.host.machine.command,
            disks=self.host.machine.disks,
        )

    def start(self) -> None:
        start = time.monotonic()
        if self.container.running:
            return
        self.change.note(self.claim.instance, {"state": self.claim.state}, {"state": instance_states.RUNNING})
        if self.change.check:
            self.report("container", "container would be started")
            return
        if self.claim.state != instance_states.REBUILDING:  # that keeps its claim whatever happens
            self.move(instance_states.STARTING)
        if self.deadline.passed:
            what = f"the {self.deadline.seconds:g} s of its timeout were over before it could be started"
            raise TimedOut(what, self.claim.instance, "raise timeout; this host is slow or busy: see uptime and iostat")
        self.container.start(self.deadline.left)
        self.report("container", "container started", time.monotonic() - start)

    def must_start(self) -> None:
        self.must_be_alone()
        pinning.must_hold("lxc", self.address, self.claim.instance)
        store, asked = self.host.store, self._asked
        with store.transaction(dry=True) if asked else nullcontext():
            for wanted, _persistent, _method in asked:
                allocate(store, self.claim.holder, wanted, self.host.gpus, self.host.site.look)

    @property
    def _asked(self) -> list[tuple[GpuRequest, bool, str]]:
        """The requests for GPUs that it is to have, its flavor's and those of people (lxc_gpu_attach), each with what
        an allocation keeps beside it: whether it outlives a restart, and the method. A request by name becomes
        one for the GPU that was given: an index or a slot may be another GPU's now.
        """
        rows = [row for row in self.host.store.allocations(self.claim.holder) if row.state != DETACHING]
        wanted = None if rows else wanted_of(self.host, self.claim.flavor)
        asked: dict[tuple[GpuRequest, bool, str], list[str]] = {(wanted, True, HOST): []} if wanted else {}
        for row in rows:
            gpu = gpu_of(row.address, row.uuid, self.host.gpus)
            names = asked.setdefault((row.wanted, row.persistent, row.method), [])
            names.append(gpu.address if gpu else row.address)
        return [
            (replace(wanted, gpus=tuple(names)) if wanted.gpus else wanted, persistent, method)
            for (wanted, persistent, method), names in asked.items()
        ]

    def give_devices(self) -> None:
        """Open its GPUs, and prove all others closed."""
        asked = self._asked
        for one in asked:
            self._give(*one)
        if asked and self.claim.state != instance_states.RUNNING:
            self._say_if_by_hand([wanted for wanted, _persistent, _method in asked])

    def _say_if_by_hand(self, asked: Sequence[GpuRequest]) -> None:
        """Say it if no request for GPUs may be its flavor's: whether that one was taken back, or is one of those by
        hand, nobody can tell.
        """
        count, kind = gpu_count(self.claim.flavor), gpu_arch(self.claim.flavor)

        def is_kind(arch: str | None) -> bool:
            return arch is not None and satisfies(arch, kind)

        its = [one for one in asked if one.arch is None or (kind and is_kind(one.arch))]
        if count and not any((wanted.count or 0) >= count for wanted in its):
            fit = [gpu for gpu in self.host.gpus if kind is None or is_kind(gpu.arch)]
            whole = count + len({gpu.address for gpu in fit}.intersection(self.more["gpus"]))
            archs = " or ".join(sorted({str(gpu.arch) for gpu in fit})) if kind else ""
            self.report("gpus", ALL_BY_HAND.format(count=whole, kind=f", arch {archs}" if archs else ""))

    def _give(self, wanted: GpuRequest, persistent: bool, method: str) -> None:
        """Open the GPUs of one request."""
        start = time.monotonic()
        free = {gpu.address for gpu in self.host.gpus} - {row.address for row in self.host.store.allocations()}
        change = Change(self.change.check)  # a separate one, which tells whether this step changed something
        result = attachment.attach(
            self.host.site, self.container, wanted, change, self.deadline, persistent=persistent, method=method
        )
        self.change.take(change)
        own = [gpu["address"] for gpu in result["gpus"]]
        kind = {gpu.address for gpu in self.host.gpus if wanted.arch in (None, gpu.arch)}
        named = f"{wanted.arch} GPUs" if wanted.arch else "GPUs"
        text = f"{len(own)} of {len(kind & (free | set(own)))} free {named}: {' '.join(own)} open"
        self.more.update(gpus=sorted({*self.more.get("gpus", ()), *own}), isolation=result["isolation"])
        if result["changed"] or self.claim.state != instance_states.RUNNING:
            self.report("gpus", text + _others(result["others"]), time.monotonic() - start)

    def must_be_makeable(self, image: Image) -> None:
        if self._has_other_ids and self.host.config.lxc.unprivileged:
            free_ids(self.host)
        new_container.must_fit(self.spec(image))

    def must_be_own(self) -> None:
        self._refuse_stranger()
        new_container.must_be_own(self.container)
        self.must_be_alone()

    def must_be_whole(self) -> None:
        self._refuse_anothers_folder()
        new_container.missing(self.spec())

    def remove(self) -> None:
        """Remove the container with its processes, root and device nodes, so that nothing of it can open a GPU."""
        self.must_be_own()
        note_if_elsewhere(self.host, self.claim, identity.key_of(self.container))
        if self.is_made:  # it shows now that its file system is mounted, and may be the last that does
            with suppress(HeteroError), naming(self.container.lxcpath):
                folders.mark(self.container.lxcpath)
                identity.note_marks([self.container.lxcpath], self.host.store, sure=True)
        new_container.remove(self.container, self.time_to_remove, self.host.machine.disks)
        private_nodes.forget(self.container, base=self.host.machine.private)
        self.put(container=None, host_key=None, image_hash=None)

    def is_on_host(self, row: Allocation) -> bool:
        return row.address in {gpu.address for gpu in self.host.gpus}

    def give_back(self) -> None:
        """Do nothing: its GPUs are closed since its container is gone."""


def _others(others: Collection[Mapping[str, Any]]) -> str:
    """Return in words what is proven about the GPUs that the container was not given."""
    closed = sum(other["state"] == open_rights.CLOSED for other in others)
    only = len(others) - closed
    said = f"; the other {closed} proven closed" if closed else ""
    return f"{said}; {only} closed by the lack of a node only" if only else said
