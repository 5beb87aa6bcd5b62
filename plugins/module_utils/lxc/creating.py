# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container made from an image: its root, its configuration, its keys; what of that is missing later; and its end.

The root is a copy whose files belong to the container's ids. One that is half made is made anew.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import Any

from ..command import command
from ..errors import HeteroError
from ..images import personal
from ..images.mounts import mounts_below
from ..whole_file import write_whole
from . import id_maps, identity, limits, private_nodes
from .liblxc import Container

#: Seconds for the copy of a root (210 MB took 3.3 s).
COPY_TIME = 900.0
COMMON = "/usr/share/lxc/config/common.conf"
HEADER = "# Written by hetero.compute. What is changed here by hand is put back.\n"
#: Of Debian's userns.conf, without what clears the device rules: a container without rules may open every device that
#: has a node, and that others are closed to it could not be proven.
UNPRIVILEGED = "lxc.cap.drop =\nlxc.cap.keep =\nlxc.tty.dir =\nlxc.mount.auto = sys:rw\n"
#: busybox's init knows no SIGPWR, by which LXC asks for the end (busybox, init.c: SIGUSR2 powers off).
BUSYBOX = "lxc.signal.halt = SIGUSR2\n"
CONFIGURATION, KEY = "configuration", "ssh key"


@dataclass(frozen=True)
class Spec:
    """What a container is to be.

    :param image: an images.store.Image; not needed for one that is there.
    :param autostart: whether it starts with the host.
    :param command: this host's own, which its hooks run (identity.py).
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
    unprivileged: bool = True
    autostart: bool = True
    command: str = identity.COMMAND

    @property
    def container(self):
        return Container(self.name, self.lxcpath)

    @property
    def id_map(self):
        return id_maps.of_root() if self.unprivileged else []


def create(spec, deadline):
    """Make the container, which must not run; returns the public half of its ssh host key.

    Its configuration comes last: without one LXC sees no container.
    """
    container = spec.container
    id_map = spec.id_map
    remove(container)
    os.makedirs(container.folder, mode=0o711)
    root = root_of(container)
    os.mkdir(root, 0o755)
    copy = ["cp", "-a", "--reflink=auto", f"{spec.image.root}/.", f"{root}/"]
    command(copy, container.thing, "check the space there", timeout=min(COPY_TIME, max(1.0, deadline.left)))
    personal.settle(root, spec.name)
    personal.put_key(root, spec.ssh_public_key)
    host_key = personal.put_host_key(root, spec.name, container.folder)
    id_maps.shift(root, id_map, f"image {spec.image.name}")
    write_whole(container.config_file, configuration(spec, root))
    container.reload()
    identity.give_id(container, spec.command)
    return host_key


def missing(spec):
    """What of a container is not as its spec says: CONFIGURATION, KEY."""
    container = spec.container
    found = []
    if _written(container)[0] != configuration(spec, root_of(container)):
        found.append(CONFIGURATION)
    if not personal.inspect(root_of(container), spec.ssh_public_key)["key"]:
        found.append(KEY)
    return found


def put_back(spec, what):
    """Put back what `missing` named; a changed configuration counts from the next start."""
    container = spec.container
    if CONFIGURATION in what:
        _text, ours = _written(container)
        write_whole(container.config_file, configuration(spec, root_of(container)) + ours)
        container.reload()
    if KEY in what:
        personal.put_key(root_of(container), spec.ssh_public_key, container.root_owner)


def remove(container):
    """End a container and take its folder away, whatever is left of it; nothing is left afterwards."""
    if container.defined:
        container.stop()
        container.reload()
        # First, so that a killed removal leaves no container that could be started.
        os.unlink(container.config_file)
    private_nodes.forget(container)
    if not os.path.lexists(container.folder):
        return
    mounted = sorted(mounts_below(container.folder))
    if mounted:
        raise HeteroError("is mounted in it", f"{container.thing}: {mounted[0]}", "unmount it, then run this again")
    try:
        shutil.rmtree(container.folder)
    except OSError as error:
        what = f"cannot be removed ({error.strerror or error})"
        raise HeteroError(what, container.folder, "see who uses it, and the disk") from error


def root_of(container):
    """Where the root of a container that was made here is."""
    return os.path.join(container.folder, "rootfs")


def configuration(spec, root):
    """LXC's configuration of a container, without the lines of identity.py."""
    folder = spec.container.folder
    lines = [
        f"lxc.include = {COMMON}",
        f"lxc.uts.name = {spec.name}",
        f"lxc.rootfs.path = dir:{root}",
        "lxc.net.0.type = veth",
        f"lxc.net.0.link = {spec.bridge}",
        "lxc.net.0.name = eth0",
        "lxc.net.0.flags = up",
        f"lxc.net.0.ipv4.address = {spec.address}/{spec.prefix_length}",
        *([f"lxc.net.0.ipv4.gateway = {spec.gateway}"] if spec.gateway else []),
        f"lxc.console.logfile = {os.path.join(folder, 'console.log')}",
        f"lxc.start.auto = {int(spec.autostart)}",
        *limits.keys(spec.memory_mb, spec.vcpus),
        *(f"lxc.idmap = {line.kind} {line.inside} {line.outside} {line.count}" for line in spec.id_map),
    ]
    text = "".join(f"{line}\n" for line in lines)
    return f"{HEADER}{text}{UNPRIVILEGED if spec.unprivileged else ''}{BUSYBOX if _has_busybox(root) else ''}"


def _has_busybox(root):
    """Whether its init is busybox's; only the name of a link is read, in a folder that is the container's root's."""
    for init in ("sbin/init", "usr/sbin/init"):
        path = os.path.join(root, init)
        if os.path.islink(path):
            return "busybox" in os.path.basename(os.readlink(path))
    return False


def _written(container):
    """(the configuration as it stands there without the lines of identity.py, these lines)."""
    with open(container.config_file, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read()
    return identity.OURS.sub("", text), "".join(found.group(0) for found in identity.OURS.finditer(text))
