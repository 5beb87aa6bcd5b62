# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers made from images: root, configuration, keys; later, what of that is missing; and their end.

The root is a copy on a disk of its own (disks.py), whose files belong to the container's ids. A half-made container is
made anew: a file in its folder says that it is one, from before its first byte until its claim knows the container.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Collection

from ...core.command import command
from ...core.deadline import Deadline
from ...core.errors import Refused, naming
from ...core.plays import play
from ...devices.cgroup import trees
from ...files import strangers
from ...files.file_system import EMPTY, MAKE, must_hold
from ...files.links import must_be_no_link
from ...files.mounts import mounts_below, must_hold_no_mount
from ...files.removal import LEFT, remove_tree
from ...files.whole_file import write_whole
from ...roots import machine_identity
from ...roots.new_machine import make_own
from .. import pinning
from . import disks, id_maps, identity, limits, monitors, own_root, private_nodes
from .disks import root_of
from .liblxc import Container, IdMap

#: Seconds to copy a root (210 MB took 3.3 s).
COPY_TIME = 900.0
#: Seconds to remove what is left of its cgroups (10,000 take one). The rest stays until the next removal.
CGROUPS_TIME = 30.0
#: What LXC starts where no other command is set (lxc.init.cmd), in both places that distributions have it.
INITS = ("sbin/init", "usr/sbin/init")
COMMON = "/usr/share/lxc/config/common.conf"
HEADER = "# Written by hetero.compute. What is changed here by hand is put back.\n"
#: From Debian's userns.conf, without the lines that clear the device rules: a container without rules could open every
#: device that has a node, and it could not be proven that others are closed.
UNPRIVILEGED = "lxc.cap.drop =\nlxc.cap.keep =\nlxc.tty.dir =\nlxc.mount.auto = sys:rw\n"
#: busybox's init does not know SIGPWR, by which LXC asks for the end (busybox, init.c: SIGUSR2 powers off).
BUSYBOX = "lxc.signal.halt = SIGUSR2\n"
#: A hook that refuses the start without a pin. LXC adds arguments, which sh ignores.
PINNED = """/bin/sh -c 'nft "{question}" > /dev/null 2>&1 || {{ echo "{why}"; exit 1; }}'"""
NOT_PINNED = f"its address is not pinned on the bridge: on the host, systemctl restart {pinning.UNITS['lxc']}"
#: A hook that refuses the start of one whose root moves: also a person who starts it by hand would write to what is
#: removed as soon as the copy of it runs.
LEAVES = """/bin/sh -c 'echo "{why}"; exit 1'"""
LEAVING = (
    f"it moves to another host, or did: {play('migrate_instance', instance='{name}')} goes on, and with -e back=true "
    f"has it here again; {play('start_instance', instance='{name}')} starts one that does not move"
)
#: Size at which a container's output is moved to console.log.1, whose former content goes.
CONSOLE = "512KB"
ON_DISK = re.compile(r"^lxc\.rootfs\.path\s*=\s*lvm:", re.MULTILINE)
#: The file that says of a folder that nobody has had what is in it.
UNFINISHED = "unfinished"
#: What a person does where the image is too large.
ROOM = "see whether image and keys have room in its {gb} GiB (local_gb of its flavor)"
MOUNTED = "something is mounted here that was not made for it: it would be unmounted, and what is on it would stay"
MOUNTED_WAY = (
    "unmount it (umount {root}), and remove by hand what is on it, where that was the container's; then run this again"
)
#: What lies in a container's folder: what is made there, also what a writer that was killed has left (whole_file.py),
#: or a removal that was cut off (removal.py); and what LXC writes there: AppArmor profiles (lsm/apparmor.c), and, if
#: lxcpath is not its own, its commands' log.
MADE = (
    rf"\.config\.[0-9]+~|{LEFT}|config|root\.ext4|rootfs|hetero\.d|unfinished|host-key|"
    r"console\.log(\.[0-9]+)?|{name}\.log|apparmor"
)
NOT_MADE = "holds {names}, which was not made for the container and would go with it"
OUT = (
    "nothing is touched: see whose it is, such as a copy of a root, a disk of data or a snapshot; move it out of "
    "there, or remove it where nobody needs it; then run this again"
)
CONFIGURATION, DISK, KEY = "configuration", "disk", "ssh key"
CHECKED = "disk, whose file system had errors (e2fsck)"


@dataclass(frozen=True)
class Spec:
    """What a container is to be.

    :param image: images.store.Image; not needed for a container that exists.
    :param id_map: its users' ids on this host; none for a privileged container.
    :param disk_gb: GiB of its root.
    :param pids: number of its processes and threads at most; 0 is no limit.
    :param autostart: whether it starts with the host.
    :param leaves: whether it moves to another host, and nobody is to start it here.
    :param command: the host's command that its hooks run (identity.py).
    :param disks: folder with this host's device nodes of disks.
    :param user_data: what cloud-init gets.
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
    user_data: str | None = None
    leaves: bool = False

    @property
    def container(self) -> Container:
        return Container(self.name, self.lxcpath)


def create(spec: Spec, deadline: Deadline) -> str:
    """Make the container, which must not run; return its public ssh host key.

    Its configuration comes last: without one LXC sees no container. The host does not start it before it is finished:
    the caller then writes down whose it is, and calls put_back with CONFIGURATION.
    """
    container = spec.container
    remove(container, deadline, spec.disks)
    os.makedirs(spec.lxcpath, mode=0o711, exist_ok=True)
    os.mkdir(container.folder, 0o700)
    with open(_unfinished(container), "xb"):
        pass
    root = disks.make(container, spec.disk_gb, spec.disks)
    copy = ["cp", "-a", f"{spec.image.root}/.", f"{root}/"]
    remedy = ROOM.format(gb=spec.disk_gb)
    command(copy, container.thing, remedy, timeout=min(COPY_TIME, max(1.0, deadline.left)))
    host_key = make_own(root, spec.name, spec.ssh_public_key, spec.user_data, container.folder)
    id_maps.shift(root, spec.id_map, f"image {spec.image.name}")
    _finish(spec, root, deadline)
    return host_key


def _finish(spec: Spec, root: str, deadline: Deadline) -> None:
    """Write the configuration of a container whose root is ready."""
    container = spec.container
    # The configuration says that the container is whole, so nothing may be lost by a power cut after it is written.
    command(["sync", "-f", root], root, "check the disk", timeout=min(COPY_TIME, max(1.0, deadline.left)))
    write_whole(container.config_file, configuration(replace(spec, autostart=False), root), 0o600)
    container.reload()
    identity.give_id(container, spec.command)
    own_root.record(container, disks.file_of(container))


def begin_copy(spec: Spec) -> str:
    """Make the folder of a container whose disk is copied from another host; return the path of the disk's file.

    Until it is taken it is nobody's, as a half-made one is.
    """
    container = spec.container
    os.makedirs(spec.lxcpath, mode=0o711, exist_ok=True)
    with naming(container.folder):
        with suppress(FileExistsError):
            os.mkdir(container.folder, 0o700)
        with open(_unfinished(container), "ab"):
            pass
    return disks.file_of(container)


def take_copy(spec: Spec, former: int | None, deadline: Deadline) -> None:
    """Make a container of a disk that was copied from another host, where its files had other ids.

    A run that was killed is ended by the next one. The host does not start the container before the caller calls
    put_back with CONFIGURATION, as of `create`.

    :param former: the first of its files' ids there; None where they are not shifted.
    """
    root = disks.mount_copy(spec.container, spec.disks)
    if former is not None:
        id_maps.move(root, former, spec.id_map)
    _finish(spec, root, deadline)


def must_fit(spec: Spec) -> None:
    """Raise HeteroError where no disk with the image in it can be made in place of the container's present one, or
    where nothing in the image would start.
    """
    root = spec.image.root
    if root and not any(os.path.lexists(os.path.join(root, init)) for init in INITS):
        raise Refused("has no /sbin/init, which a container starts", f"image {spec.image.name}", "choose another")
    file, size = disks.file_of(spec.container), spec.disk_gb << 30
    must_hold(spec.image.root, file, size, [*MAKE, *EMPTY], ROOM.format(gb=spec.disk_gb))


def missing(spec: Spec) -> list[str]:
    """Return what of a container differs from its spec: CONFIGURATION, DISK, KEY; or CHECKED if its disk must be
    checked.

    Checking the disk needs the container's end.
    """
    container = spec.container
    _refuse_lost(container)
    own_root.must_be_own(container, disks.file_of(container))
    if disks.has_errors(container) and not container.running:
        return [CHECKED]
    if disks.has(container) and not disks.is_mounted(container, spec.disks):
        disks.must_run_from_it(container)
        return [DISK]  # the rest cannot be seen
    found = []
    if _written(container)[0] != configuration(spec, root_of(container)):
        found.append(CONFIGURATION)
    if not machine_identity.inspect(root_of(container), spec.ssh_public_key)["key"]:
        found.append(KEY)
    return found


def _refuse_lost(container: Container) -> None:
    """Raise Refused if its root is on a disk that is missing: the disk's mount point must not become its root."""
    if not disks.has(container) and ON_DISK.search(_written(container)[0]):
        remedy = "put the file back, or rebuild the instance, which begins with an empty one"
        raise Refused("is missing, and with it the container's root", disks.file_of(container), remedy)


def started_otherwise(spec: Spec) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return which of autostart and leaves a container's configuration has and which its spec, where they differ in
    nothing else; else None.
    """
    written, root = _written(spec.container)[0], root_of(spec.container)
    for autostart, leaves in ((True, False), (False, False), (False, True)):
        if written == configuration(replace(spec, autostart=autostart, leaves=leaves), root):
            has = dict(autostart=autostart, leaves=leaves)
            other = {name: value for name, value in has.items() if value != getattr(spec, name)}
            return other, {name: getattr(spec, name) for name in other}
    return None


def put_back(spec: Spec, what: Collection[str]) -> None:
    """Restore what `missing` named. A changed configuration counts from the next start."""
    container = spec.container
    if DISK in what or CHECKED in what:
        disks.mount(container, spec.disks)
    if CONFIGURATION in what:
        _text, ours = _written(container)
        with naming(container.config_file):
            with suppress(FileNotFoundError):
                os.unlink(_unfinished(container))
            write_whole(container.config_file, configuration(spec, root_of(container)) + ours, 0o600)
        container.reload()
    if KEY in what:
        with naming(root_of(container)):
            machine_identity.put_key(root_of(container), spec.ssh_public_key, container.root_owner)


def remove(container: Container, deadline: Deadline | None = None, base: str = disks.BASE) -> None:
    """End a container and remove its folder, in whatever state it is."""
    must_be_own(container)
    if container.defined:
        container.stop()
        container.reload()
        # First, so that the rest of a killed removal is no container that could be started.
        os.unlink(container.config_file)
    trees.remove_left(container.name, (deadline or Deadline(CGROUPS_TIME)).within(CGROUPS_TIME))
    private_nodes.forget(container)
    disks.unmount(container, base)
    if not os.path.lexists(container.folder):
        return
    must_hold_no_mount(container.folder, container.thing)
    if os.path.lexists(_unfinished(container)):  # it goes last, so that the rest of a killed removal is nobody's
        for name in set(os.listdir(container.folder)) - {UNFINISHED}:
            remove_tree(os.path.join(container.folder, name), deadline)
    remove_tree(container.folder, deadline)


def is_nobodys(container: Container) -> bool:
    """Return whether nothing lies in a container's folder but what a run that was killed left of a half-made one."""
    try:
        return os.path.lexists(_unfinished(container)) or not os.listdir(container.folder)
    except FileNotFoundError:
        return not os.path.lexists(container.folder)
    except NotADirectoryError:
        return False


def _unfinished(container: Container) -> str:
    return os.path.join(container.folder, UNFINISHED)


def must_be_own(container: Container) -> None:
    """Raise Refused if the root in a container's folder is another's, or lies behind a link; if anything else is
    mounted or lies there; or if a container runs whose configuration is gone, without which LXC cannot end it.
    """
    root = root_of(container)
    must_be_no_link(container.folder, disks.file_of(container), root)
    if root in mounts_below(root) and not _may_be_its_disk(container):
        raise Refused(MOUNTED, root, MOUNTED_WAY.format(root=root))
    must_hold_no_mount(container.folder, container.thing, root)
    own_root.must_be_own(container, disks.file_of(container))
    if not container.defined and monitors.owner(container.name, container.lxcpath) == 0:
        monitor = f"ss -xlp | grep {monitors.address_of(container.name, container.lxcpath)}"
        remedy = f"put it back, or end its monitor ({monitor}), then run this again"
        raise Refused("is gone, and its container runs", container.config_file, remedy)
    must_hold_only_own(container)


def must_hold_only_own(container: Container) -> None:
    """Raise Refused if something lies in a container's folder that was not made for it."""
    made = re.compile(MADE.format(name=re.escape(container.name)))
    strangers.must_hold_only(container.folder, made, NOT_MADE, OUT)


def _may_be_its_disk(container: Container) -> bool:
    """Return whether what is mounted as a container's root may be its own disk, whose file may be gone since.

    A container of an earlier release has a folder as its root and no disk. What is mounted there is somebody else's.
    """
    has_none = container.defined and not disks.has(container) and not ON_DISK.search(_written(container)[0])
    return os.path.ismount(root_of(container)) and not has_none


def configuration(spec: Spec, root: str) -> str:
    """Return LXC's configuration of a container, without the lines of identity.py."""
    container = spec.container
    # "lvm:" is LXC's word for any block device; it mounts one before it enters the container's user namespace.
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
        *([f"lxc.hook.pre-start = {LEAVES.format(why=LEAVING.format(name=spec.name))}"] if spec.leaves else []),
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
    """Return whether its init is busybox's. Only the name of a link is read, because the folder is the container's."""
    for init in INITS:
        path = os.path.join(root, init)
        if os.path.islink(path):
            return "busybox" in os.path.basename(os.readlink(path))
    return False


def _written(container: Container) -> tuple[str, str]:
    """Return (the container's configuration without the lines of identity.py, these lines)."""
    with open(container.config_file, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read()
    return identity.OURS.sub("", text), "".join(found.group(0) for found in identity.OURS.finditer(text))
