# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel says of GPUs and running containers: which container can open which GPU now, and by what right.

Nothing is changed here. claims/host/allocation.py draws conclusions for requests, and gpu_reconciliation.py acts.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Collection, Iterable, Mapping, Sequence, Tuple, cast

from ...core.errors import HeteroError, Refused, naming
from ...core.kernel_text import lines_of, status_of
from ...devices.cgroup.devices import of_container
from ...devices.cgroup.rules import MAJORS, MINORS
from ...devices.gpus.discovery import HELD_FOR_GUESTS
from ...devices.gpus.nodes import NO_GPU, NVIDIA
from ...devices.pci import domains
from ...devices.pci.made_guests import is_made, only_by_folder
from ...devices.pci.paths import THIS_HOST, Paths
from ..lxc import device_nodes, folders, identity, liblxc, monitors

if TYPE_CHECKING:
    from ...devices.cgroup.devices import DeviceCgroup
    from ...devices.cgroup.view import View
    from ...devices.gpus.discovery import Gpu
    from ...devices.gpus.nodes import DeviceNode
    from ...devices.gpus.processes import Number, Process

#: The device cgroup allows reading or writing the GPU, and the container has a node, may make one, or has the rule.
OPEN = "open"
#: The device cgroup would allow it; only a missing node, which the container cannot make, keeps it out.
NODE_ONLY = "node-only"
CLOSED = "closed"
#: It has it by its own file, with which it starts, and not by the table.
BY_FILE = "by its own file"
#: It may be its own, and nobody but a person can tell.
DOUBT = "in doubt"
#: Number of looks at a container that is started anew each time.
LOOKS = 5
#: Bit of CAP_MKNOD in the sets of /proc/PID/status (linux/capability.h).
CAP_MKNOD = 27
#: Of one that runs, and can open a GPU.
GONE = "it runs, by its init, process {pid}, and {config} is not there"
GONE_WAY = "put it back, or end it by its init (kill -s PWR {pid}; by force, kill -9 {pid})"
#: Beginning of a holder that is a libvirt domain.
DOMAIN = "domain:"
#: A device that no driver has and no rule names: the last number.
UNKNOWN = ("c", MAJORS - 1, MINORS - 1)


@dataclass(frozen=True)
class Reach:
    """How far one running container gets with one GPU, and in words why.

    :param alone: whether it was given to it for itself, by its own file.
    """

    holder: str
    container: str
    address: str
    state: str
    why: str
    alone: bool = False


@dataclass(frozen=True)
class Holder:
    """Who can use a GPU now: a container, a libvirt domain, or a driver that reserves it for virtual machines."""

    kind: str
    name: str


@dataclass(frozen=True)
class Live:
    """What all running containers of a host can open, and what containers are to have at their next start.

    :param marked: the folders of containers that have had their mark, with its id (folders.py).
    :param pci: where libvirt's files and those of guests lie.
    :param lxcpaths: the folders of containers to which one may have been moved.
    """

    reaches: tuple[Reach, ...]
    marked: folders.Marks = field(default_factory=dict)
    pci: Paths = THIS_HOST
    lxcpaths: Collection[str] = ()

    def open(self, address: str) -> list[Reach]:
        """Return the Reaches of the containers that can open this GPU, or could once they are started."""
        return [reach for reach in self.reaches if reach.address == address and reach.state in (OPEN, BY_FILE)]

    def doubt(self, address: str, holder: str) -> str | None:
        """Return, in words, whose else than a holder's this GPU may be, or None.

        :param holder: its key, or only its folder where it has none yet.
        """
        found = (reach for reach in self.reaches if reach.address == address and reach.state == DOUBT)
        own = (far.why for far in found if holder not in (far.holder, far.holder.rpartition("#")[0]))
        starting = (domains.STARTS.format(name=name) for name in self._starting.get(address, ()))
        return next(own, None) or next(starting, None)

    @cached_property
    def _starting(self) -> dict[str, list[str]]:
        """Return {address of a device: names of the domains, and guests only by their folders, that start with it}."""
        found, _running = domains.holders(self.pci)
        for address, names in only_by_folder(self.pci).items():
            found.setdefault(address, []).extend(names)
        return found

    def of(self, holder: str) -> dict[str, Reach]:
        """Return {address: Reach} of one container."""
        return {reach.address: reach for reach in self.reaches if reach.holder == holder}

    def is_there(self, holder: str) -> bool:
        """Return whether a container with this id, a libvirt domain or a guest exists; False for an instance without
        one.
        """
        gone = f"{holder.rpartition('#')[0]}#"  # as one is named that runs, and whose folder is no more in its place
        if any(reach.holder in (holder, gone) for reach in self.reaches):
            return True
        if holder.startswith(DOMAIN):
            name = holder[len(DOMAIN) :]
            return domains.is_there(name, self.pci) or is_made(name, self.pci)
        if not holder.startswith("/"):
            return not holder.startswith("instance:")
        folder, name = os.path.split(holder.rpartition("#")[0])
        if not self._seen(holder) and monitors.owner(name, folder) == 0:
            return True  # one runs there, and the look has nothing of it
        if not folders.is_seen(folder, self.marked) or folders.not_mounted(os.path.join(folder, name)):
            return True  # its file system may not be mounted yet
        try:
            # also in a copy of its folder in the same place, such as on a bigger disk
            if identity.key_by_id(liblxc.Container(name, folder)) == holder:
                return True
        except Refused:
            return True  # whose configuration cannot be read may be the one
        return self.moved_to(holder) is not None

    def runs(self, holder: str) -> bool:
        """Return whether a container runs in the place of the one with this key, by whatever id."""
        folder, name = os.path.split(holder.rpartition("#")[0])
        return holder.startswith("/") and (self._seen(holder) or monitors.owner(name, folder) == 0)

    def _seen(self, holder: str) -> bool:
        """Return whether the look has anything of a container that runs in the place of the one with this key."""
        place = f"{holder.rpartition('#')[0]}#"
        now = (reach.holder for reach in self.reaches if reach.state not in (BY_FILE, DOUBT))
        return any(f"{one}#".startswith(place) for one in now)

    def moved_to(self, holder: str) -> str | None:
        """Return the folder to which the container with a key was moved, from a place where none is now; else None."""
        former = holder.rpartition("#")[0]
        if os.path.lexists(former):
            return None
        for lxcpath in sorted({os.path.dirname(former), *self.lxcpaths}):
            for name in liblxc.containers(lxcpath):
                with suppress(Refused):  # of a configuration that cannot be read nobody can tell
                    now = identity.key_of(identity.Folder(os.path.join(lxcpath, name)))
                    if now and identity.was_moved(holder, now, self.marked):
                        return now.rpartition("#")[0]
        return None


def look(lxcpaths: Collection[str], gpus: Sequence[Gpu], known: Collection[str] = ()) -> Live:
    """Return what the running containers below these folders can do with these GPUs.

    Of containers elsewhere only the GPUs that they have are included.

    :param known: folders of containers that are asked by themselves: where many sockets come and go, the kernel's list
        of those that run lacks one now and then (core/kernel_tables.py).
    """
    reaches = []
    others = [lxcpath for lxcpath in folders.in_use() if lxcpath not in lxcpaths]
    for lxcpath in [*lxcpaths, *others]:
        names = set(liblxc.running(lxcpath))
        own = {name for folder, name in map(os.path.split, known) if folder == lxcpath} - names
        for name in sorted(names.union(name for name in own if monitors.owner(name, lxcpath) == 0)):
            # Incus and LXD bring a liblxc of their own, and keep a container's configuration elsewhere
            container = liblxc.Container(name, lxcpath, library=False)
            reaches += _reach_now(container, gpus, lxcpath in lxcpaths)
    return Live(tuple(reaches))


def _reach_now(container: liblxc.Container, gpus: Sequence[Gpu], ours: bool) -> list[Reach]:
    """Return what a running container can do; nothing if it has ended.

    A container that starts anew meanwhile, as its root may do again and again, is looked at again.

    :param ours: whether its folder is one of those that are asked for.
    """
    if not container.defined:
        return _reach_of_stray(container, gpus, GONE, ours)
    pid, looks = container.init_pid, 0
    while pid:
        looks += 1
        try:
            if identity.runs_another(container, pid):
                return _reach_of_stray(container, gpus, identity.RUNS_ANOTHER, ours)
            return reach_of(container, pid, gpus if ours else has(container, pid, gpus))
        except (HeteroError, FileNotFoundError, ProcessLookupError):
            seen, pid = pid, container.init_pid
            if pid == seen or looks == LOOKS:
                raise
    return []


def _reach_of_stray(container: liblxc.Container, gpus: Sequence[Gpu], why: str, ours: bool) -> list[Reach]:
    """Return a Reach for each GPU of a container that runs, and whose folder or configuration is no more in its place.

    A container that may open everything has only the GPUs of which it has a node.

    :param why: the words about it, with {pid} and {config}.
    :param ours: whether its folder is one of those that are asked for.
    """
    pid = monitors.init_of(container.name, container.lxcpath)
    if pid is None:
        return []
    try:
        asked = of_container(pid, container.name).look()
        unknown = allows_unknown(asked)
        far = [(gpu, _how_far(container, pid, asked, unknown, gpu)[0] == OPEN) for gpu in gpus]
        counts = ours or not unknown
        is_open = {gpu.address: may and (counts or _has_node(container, pid, gpu)) for gpu, may in far}
    except (HeteroError, FileNotFoundError, ProcessLookupError):
        if monitors.init_of(container.name, container.lxcpath) == pid:
            raise
        return []
    holder, why = f"{container.folder}#", why.format(pid=pid, config=container.config_file)
    return [Reach(holder, container.name, gpu, OPEN if may else CLOSED, why) for gpu, may in is_open.items()]


def has(container: liblxc.Container, pid: int, gpus: Sequence[Gpu]) -> list[Gpu]:
    """Return the GPUs that a running container can open.

    A rule that opens all GPUs says nothing about one; then the container must also have the GPU's node.
    """
    wild = of_container(pid, container.name).look().may("c", NVIDIA, NO_GPU, "r")
    open_to_it = open_to(container, pid, gpus)
    found = [gpu for gpu in gpus if gpu.nodes and gpu.address in open_to_it]
    return [gpu for gpu in found if not wild or _has_node(container, pid, gpu)]


def open_to(container: liblxc.Container, pid: int, gpus: Iterable[Gpu]) -> set[str]:
    """Return the addresses of those of these GPUs that a running container can open."""
    return {far.address for far in reach_of(container, pid, gpus) if far.state == OPEN}


def _has_node(container: liblxc.Container, pid: int, gpu: Gpu) -> bool:
    return any(device_nodes.look(container, node.path, pid) == node.number for node in own_nodes(gpu))


def live_holders(
    gpus: Sequence[Gpu], lxcpaths: Collection[str], users: Mapping[Number, Sequence[Process]]
) -> dict[str, list[Holder]]:
    """Return {address: holders} of those that can use, or use, each GPU now. Nobody has the other GPUs.

    :param users: processes.holders of the nodes of these GPUs.
    """
    live = look(lxcpaths, gpus)
    found = {}
    for gpu in gpus:
        held = [process for node in own_nodes(gpu) for process in users.get(node.number, ())]
        containers = {far.container for far in live.open(gpu.address)}
        # a container that has it open still has it, whatever its device cgroup says now
        containers.update(process.container for process in held if process.container)
        found[gpu.address] = [Holder("container", name) for name in sorted(containers)]
        domains = {process.domain for process in held if process.domain}
        found[gpu.address] += [Holder("libvirt", name) for name in sorted(domains)]
        if gpu.driver in HELD_FOR_GUESTS:
            found[gpu.address].append(Holder("vfio", gpu.driver))
    return found


def key_or_path(container: liblxc.Container) -> str:
    """Return the container's key; for one without an id its folder, which no allocation names."""
    return identity.key_of(container) or container.folder


def reach_of(container: liblxc.Container, pid: int, gpus: Iterable[Gpu]) -> list[Reach]:
    """Return a Reach for each GPU."""
    holder = key_or_path(container)
    asked = of_container(pid, container.name).look()
    unknown = allows_unknown(asked)
    return [Reach(holder, container.name, gpu.address, *_how_far(container, pid, asked, unknown, gpu)) for gpu in gpus]


def _how_far(container: liblxc.Container, pid: int, cgroup: View, unknown: bool, gpu: Gpu) -> tuple[str, str]:
    """Return (state, why) of the node with which the container gets farthest.

    :param unknown: whether it may open devices that no rule names, so that no rule was given for this GPU either.
    """
    state, why = CLOSED, "its device cgroup denies it"
    for node in own_nodes(gpu):
        if not may_open(cgroup, node):
            continue
        rule = rule_of(node)
        if device_nodes.look(container, node.path, pid) == node.number:
            return OPEN, f"its device cgroup allows {rule}, and {node.path} is in it"
        if not unknown:
            return OPEN, f"its device cgroup allows {rule}"
        if cgroup.may(*known(node), "m") and can_mknod(pid):
            return OPEN, f"its device cgroup allows every device, {rule} too, and it may make nodes"
        state, why = NODE_ONLY, f"its device cgroup allows {rule}, but it has no node and may make none"
    return state, why


def own_nodes(gpu: Gpu) -> list[DeviceNode]:
    """Return all nodes that lead to this GPU only. A node whose driver is not loaded has no number."""
    return [node for node in [*gpu.nodes, *gpu.drm_nodes] if node.major is not None]


def may_open(cgroup: DeviceCgroup | View, node: DeviceNode) -> bool:
    """Return whether reading or writing is allowed: either is enough for ioctl(2), which is all that a GPU needs."""
    number = known(node)
    return cgroup.may(*number, "r") or cgroup.may(*number, "w")


def known(node: DeviceNode) -> tuple[str, int, int]:
    """Return the number of a node whose driver is loaded."""
    return cast(Tuple[str, int, int], node.number)


def allows_unknown(cgroup: DeviceCgroup | View) -> bool:
    """Return whether a device may be opened that no rule names."""
    return cgroup.may(*UNKNOWN, "r")


def rule_of(node: DeviceNode) -> str:
    """Return a node as cgroup rules name it."""
    return f"{node.kind} {node.major}:{node.minor}"


def can_mknod(pid: int) -> bool:
    """Return whether the container's processes may make nodes: in the host's own user namespace, with CAP_MKNOD."""
    folder = f"/proc/{pid}"
    with naming(folder):
        # not by ns/user: the kernel keeps who asks for it waiting while the init goes from one program to the next
        if lines_of(f"{folder}/uid_map") != lines_of("/proc/self/uid_map"):
            return False
        bounding = status_of(pid, "CapBnd")
    return bool(int(bounding, 16) >> CAP_MKNOD & 1)
