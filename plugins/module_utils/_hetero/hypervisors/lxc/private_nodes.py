# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device nodes on the host for one container alone, which are bound into it.

A bind of the host's own node would share its owner and mode: chmod inside would be chmod on the host.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING, Protocol, Sequence, cast

from ...core.errors import HeteroError, naming
from ...core.kernel_text import MountLine, mount_table
from ...files.mounts import mounts_below, unmount
from ...files.removal import remove_tree
from . import kernel

if TYPE_CHECKING:
    from .liblxc import Container

#: Folder on the host's /dev, which is never mounted nodev and is empty after a restart, when majors may differ. All may
#: pass it, but only a container's root its own folder, as which a start binds the nodes.
BASE = "/dev/hetero-lxc"
#: Beginnings of the kinds of file systems that are not asked: some program, or another machine, has to answer.
OTHERS_FILES = ("fuse", "nfs")
KINDS = {"c": stat.S_IFCHR, "b": stat.S_IFBLK}


class Node(Protocol):
    """A device node that a container is to have. Its numbers, owner and mode are set when it is made."""

    @property
    def path(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def major(self) -> int | None: ...
    @property
    def minor(self) -> int: ...
    @property
    def mode(self) -> int | None: ...
    @property
    def uid(self) -> int | None: ...
    @property
    def gid(self) -> int | None: ...


def device_of(node: Node) -> int:
    """Return its device number as the kernel packs it."""
    return os.makedev(cast("int", node.major), node.minor)


def folder(container: Container, base: str = BASE) -> str:
    """Return the folder of a container's nodes, which lie there under their paths in the container."""
    place = hashlib.sha256(os.fsencode(container.lxcpath)).hexdigest()[:8]
    return os.path.join(base, f"{container.name}-{place}")


def path_of(container: Container, path: str, base: str = BASE) -> str:
    """Return where the node lies that has this path in the container."""
    return folder(container, base) + os.path.normpath(f"/{path}")


def ensure(container: Container, node: Node, base: str = BASE) -> str:
    """Make the node, with the owner that the container's ids give; return its path."""
    path = path_of(container, node.path, base)
    owner = container.host_id("u", cast("int", node.uid)), container.host_id("g", cast("int", node.gid))
    with naming(path):
        if numbers(_status(path)) != (node.kind, node.major, node.minor):
            _close(container, base)
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            _remove(path)
            os.mknod(path, KINDS[node.kind] | 0o600, device_of(node))
        if os.statvfs(path).f_flag & os.ST_NODEV:
            raise HeteroError("lies on a file system that is mounted nodev", path, "name another folder")
        os.chown(path, *owner)
        os.chmod(path, cast("int", node.mode))
    return path


def _close(container: Container, base: str) -> None:
    """Close a container's folder to others, because the container may change a node's mode."""
    os.makedirs(base, mode=0o755, exist_ok=True)
    top = folder(container, base)
    if not os.path.isdir(top):
        os.mkdir(top, 0o700)
    os.chown(top, 0, container.host_id("g", 0))
    os.chmod(top, 0o710)


def numbers_below(container: Container, base: str = BASE) -> dict[str, tuple[str, int, int] | None]:
    """Return {path in the container: (kind, major, minor)} of all its nodes."""
    top = folder(container, base)
    files = (os.path.join(where, name) for where, _folders, names in os.walk(top) for name in names)
    return {path[len(top) :]: numbers(_status(path)) for path in sorted(files)}


def bound_at(pid: int | None, path: str) -> tuple[str, int, int] | None:
    """Return (kind, major, minor) of the host's device node that is bound at a path in a process's root, or None.

    The kernel's tables of mounts tell: the file system in which the path lies is not asked.
    """
    try:
        there = [line for line in mount_table(pid=pid or "self") if line.point == os.path.normpath(path)]
        ours = [own for own in mount_table() if not own.kind.startswith(OTHERS_FILES)]
    except OSError:
        return None  # it has ended
    return next(filter(None, (_bound(line, ours) for line in reversed(there))), None)


def _bound(line: MountLine, ours: Sequence[MountLine]) -> tuple[str, int, int] | None:
    for own in ours:
        if own.system == line.system and f"{line.root}/".startswith(f"{own.root.rstrip('/')}/"):
            status = _status_without_links(own.point.rstrip("/") + line.root[len(own.root.rstrip("/")) :])
            if status and f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}" == line.system:
                return numbers(status)
    return None


def _status_without_links(path: str) -> os.stat_result | None:
    """Return the status of a file of a container's on this host, or None where a link is on its path: the container's
    root may have put one there since the kernel told the path, and it would lead to anywhere here.
    """
    try:
        there = kernel.open_without_links(path)
    except OSError:
        return None
    try:
        return os.fstat(there)
    finally:
        os.close(there)


def forget(container: Container, base: str = BASE) -> None:
    """Remove its nodes. What is bound already stays.

    In earlier releases the container's root could mount something on them; that is unmounted too.
    """
    top = folder(container, base)
    for point in reversed(list(mounts_below(top))):
        while point in mounts_below(top) and unmount(point) == 0:
            pass
    remove_tree(top)


def numbers(status: os.stat_result | None) -> tuple[str, int, int] | None:
    """Return (kind, major, minor) of a file's status; None if it is no device, or there is none."""
    if status is None:
        return None
    for kind, bits in KINDS.items():
        if stat.S_IFMT(status.st_mode) == bits:
            return kind, os.major(status.st_rdev), os.minor(status.st_rdev)
    return None


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
