# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container made from an image: its root, its configuration, its keys; what of that is missing later; and its end.

The root is a copy on a disk of its own (disks.py), whose files belong to the container's ids. One that is half made is
made anew.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Collection

from ...core.command import command
from ...core.deadline import Deadline
from ...core.errors import HeteroError, Refused
from ...devices.cgroup import trees
from ...files.mounts import mounts_below
from ...files.removal import remove_tree
from ...files.whole_file import write_whole
from ...roots import machine_identity
from .. import pinning
from . import disks, id_maps, identity, limits, monitors, private_nodes
from .disks import root_of
from .liblxc import Container, IdMap

#: Seconds for the copy of a root (210 MB took 3.3 s).
COPY_TIME = 900.0
#: Seconds for what is left of its cgroups (10,000 take one); what is there then stays until the next removal.
CGROUPS_TIME = 30.0
COMMON = "/usr/share/lxc/config/common.conf"
HEADER = "# Written by hetero.compute. What is changed here by hand is put back.\n"
#: Of Debian's userns.conf, without what clears the device rules: a container without rules may open every device that
#: has a node, and that others are closed to it could not be proven.
UNPRIVILEGED = "lxc.cap.drop =\nlxc.cap.keep =\nlxc.tty.dir =\nlxc.mount.auto = sys:rw\n"
#: busybox's init knows no SIGPWR, by which LXC asks for the end (busybox, init.c: SIGUSR2 powers off).
BUSYBOX = "lxc.signal.halt = SIGUSR2\n"
#: A hook of its start: without its pin it does not start. LXC adds words, which sh leaves alone.
PINNED = """/bin/sh -c 'nft "{question}" > /dev/null 2>&1 || {{ echo "{why}"; exit 1; }}'"""
NOT_PINNED = f"its address is not pinned on the bridge: on the host, systemctl restart {pinning.UNITS['lxc']}"
#: What a container prints goes into a file that becomes console.log.1 when it has this size, and the one before goes.
CONSOLE = "512KB"
ON_DISK = re.compile(r"^lxc\.rootfs\.path\s*=\s*lvm:", re.MULTILINE)
CONFIGURATION, DISK, KEY = "configuration", "disk", "ssh key"
CHECKED = "disk, whose file system had errors (e2fsck)"


@dataclass(frozen=True)
class Spec:
    """What a container is to be.

    :param image: an images.store.Image; not needed for one that is there.
    :param id_map: what its users are on this host, none for a privileged container.
    :param disk_gb: how much its root holds (GiB).
    :param pids: how many processes and threads it has at most; 0 is no limit.
    :param autostart: whether it starts with the host.
    :param command: this host's own, which its hooks run (identity.py).
    :param disks: where this host has the device nodes of disks.
    """

    name: str
    lxcpath: str
    image: Any
    ssh_public_key: str
    bridge: str
    address: str
    prefix_length: int
    gateway: str | None
    memory_mb: int
    vcpus: int
    disk_gb: int
    pids: int = 0
    id_map: tuple[IdMap, ...] = ()
    autostart: bool = True
    command: str = identity.COMMAND
    disks: str = disks.BASE

    @property
    def container(self) -> Container:
        return Container(self.name, self.lxcpath)


def create(spec: Spec, deadline: Deadline) -> str:
    """Make the container, which must not run; returns the public half of its ssh host key.

    Its configuration comes last: without one LXC sees no container.
    """
    container = spec.container
    remove(container, deadline, spec.disks)
    os.makedirs(spec.lxcpath, mode=0o711, exist_ok=True)
    os.mkdir(container.folder, 0o700)
    root = disks.make(container, spec.disk_gb, spec.disks)
    copy = ["cp", "-a", f"{spec.image.root}/.", f"{root}/"]
    remedy = f"see whether image and keys have room in its {spec.disk_gb} GiB (local_gb of its flavor)"
    command(copy, container.thing, remedy, timeout=min(COPY_TIME, max(1.0, deadline.left)))
    machine_identity.settle(root, spec.name)
    machine_identity.put_key(root, spec.ssh_public_key)
    host_key = machine_identity.put_host_key(root, spec.name, container.folder)
    id_maps.shift(root, spec.id_map, f"image {spec.image.name}")
    # Its configuration says that it is whole: nothing of it may be lost by a power cut after that.
    command(["sync", "-f", root], root, "check the disk", timeout=min(COPY_TIME, max(1.0, deadline.left)))
    write_whole(container.config_file, configuration(spec, root), 0o600)
    container.reload()
    identity.give_id(container, spec.command)
    return host_key


def missing(spec: Spec) -> list[str]:
    """What of a container is not as its spec says: CONFIGURATION, DISK, KEY; or CHECKED where its disk is to be
    checked, which takes its end.
    """
    container = spec.container
    _refuse_lost(container)
    if disks.has_errors(container) and not container.running:
        return [CHECKED]
    if disks.has(container) and not disks.is_mounted(container, spec.disks):
        return [DISK]  # the rest is not to be seen
    found = []
    if _written(container)[0] != configuration(spec, root_of(container)):
        found.append(CONFIGURATION)
    if not machine_identity.inspect(root_of(container), spec.ssh_public_key)["key"]:
        found.append(KEY)
    return found


def _refuse_lost(container: Container) -> None:
    """Its root is on a disk that is not there: the folder where that was mounted must not become its root."""
    if not disks.has(container) and ON_DISK.search(_written(container)[0]):
        remedy = "put the file back, or rebuild the instance, which begins with an empty one"
        raise Refused("is missing, and with it the container's root", disks.file_of(container), remedy)


def put_back(spec: Spec, what: Collection[str]) -> None:
    """Put back what `missing` named; a changed configuration counts from the next start."""
    container = spec.container
    if DISK in what or CHECKED in what:
        disks.mount(container, spec.disks)
    if CONFIGURATION in what:
        _text, ours = _written(container)
        write_whole(container.config_file, configuration(spec, root_of(container)) + ours, 0o600)
        container.reload()
    if KEY in what:
        machine_identity.put_key(root_of(container), spec.ssh_public_key, container.root_owner)


def remove(container: Container, deadline: Deadline | None = None, base: str = disks.BASE) -> None:
    """End a container and take its folder away, whatever is left of it; nothing is left afterwards."""
    if container.defined:
        container.stop()
        container.reload()
        # First, so that a killed removal leaves no container that could be started.
        os.unlink(container.config_file)
    elif monitors.owner(container.name, container.lxcpath) == 0:
        monitor = f"ss -xlp | grep {monitors.address_of(container.name, container.lxcpath)}"
        remedy = f"put it back, or end its monitor ({monitor}), then run this again"
        raise Refused("is gone, and its container runs", container.config_file, remedy)
    trees.remove_left(container.name, (deadline or Deadline(CGROUPS_TIME)).within(CGROUPS_TIME))
    private_nodes.forget(container)
    disks.unmount(container, base)
    if not os.path.lexists(container.folder):
        return
    mounted = sorted(mounts_below(container.folder))
    if mounted:
        raise HeteroError("is mounted in it", f"{container.thing}: {mounted[0]}", "unmount it, then run this again")
    remove_tree(container.folder, deadline)


def configuration(spec: Spec, root: str) -> str:
    """LXC's configuration of a container, without the lines of identity.py."""
    container = spec.container
    # "lvm:" is LXC's word for any block device, which it mounts before it enters the container's user namespace.
    source = f"lvm:{disks.node_of(container, spec.disks)}" if disks.has(container) else f"dir:{root}"
    lines = [
        f"lxc.include = {COMMON}",
        f"lxc.uts.name = {spec.name}",
        f"lxc.rootfs.path = {source}",
        "lxc.net.0.type = veth",
        f"lxc.net.0.link = {spec.bridge}",
        "lxc.net.0.name = eth0",
        f"lxc.net.0.veth.pair = {pinning.port('lxc', spec.address)}",
        f"lxc.net.0.hwaddr = {pinning.mac(spec.address)}",
        f"lxc.hook.pre-start = {PINNED.format(question=pinning.question('lxc', spec.address), why=NOT_PINNED)}",
        "lxc.net.0.flags = up",
        f"lxc.net.0.ipv4.address = {spec.address}/{spec.prefix_length}",
        *([f"lxc.net.0.ipv4.gateway = {spec.gateway}"] if spec.gateway else []),
        f"lxc.console.logfile = {os.path.join(container.folder, 'console.log')}",
        f"lxc.console.size = {CONSOLE}",
        "lxc.console.rotate = 1",
        f"lxc.start.auto = {int(spec.autostart)}",
        *limits.keys(spec.memory_mb, spec.vcpus, spec.pids),
        *(f"lxc.idmap = {line.kind} {line.inside} {line.outside} {line.count}" for line in spec.id_map),
    ]
    text = "".join(f"{line}\n" for line in lines)
    return f"{HEADER}{text}{UNPRIVILEGED if spec.id_map else ''}{BUSYBOX if _has_busybox(root) else ''}"


def _has_busybox(root: str) -> bool:
    """Whether its init is busybox's; only the name of a link is read, in a folder that is the container's root's."""
    for init in ("sbin/init", "usr/sbin/init"):
        path = os.path.join(root, init)
        if os.path.islink(path):
            return "busybox" in os.path.basename(os.readlink(path))
    return False


def _written(container: Container) -> tuple[str, str]:
    """(the configuration as it stands there without the lines of identity.py, these lines)."""
    with open(container.config_file, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read()
    return identity.OURS.sub("", text), "".join(found.group(0) for found in identity.OURS.finditer(text))
