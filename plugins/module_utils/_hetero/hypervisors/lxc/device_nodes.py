# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device nodes in a running container, made, looked at and removed from the host's side, whatever its root did there.

In a privileged container a node is made. Where that is impossible (the container has its own user ids, or its /dev is
mounted nodev) a private node of the host is bound. open_trial.py and the device cgroup tell whether it can be opened.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Sequence, cast

from ...core.child import in_child
from ...core.command import command
from ...core.deadline import Deadline
from ...core.errors import HeteroError, TimedOut
from . import kernel, private_nodes
from .private_nodes import KINDS, numbers
from .roots import ContainerRoot

if TYPE_CHECKING:
    from .liblxc import Container
    from .private_nodes import Node
    from .roots import Place

#: Seconds to bind some nodes (one takes a millisecond), for commands inside, and to make, look at or remove some nodes.
BIND_TIME = 10.0
INSIDE_TIME = 30.0
LOOK_TIME = 5.0
MAKE_TIME = LOOK_TIME + BIND_TIME
#: Of a container's file system that a program of its own serves (FUSE, also below an overlay), and does not answer, or
#: by errors.
SILENT = "its file system does not answer, where it has its devices"
SILENT_WAY = "see its processes, and what is mounted in it: /proc/{pid}/mountinfo"
#: Inits of containers of which a look found that, or that took too long. Who asks such a file system cannot be ended.
_silent: set[int] = set()


def make(container: Container, *nodes: Node, base: str = private_nodes.BASE, pid: int | None = None) -> list[str]:
    """Make these nodes in the container. What is right stays as it is.

    :param pid: its init, if the caller knows it (its monitor does not answer in a hook of its start).
    :returns: the paths that were made.
    """
    pid = pid or container.init_pid
    if pid in _silent:
        raise TimedOut(SILENT, container.thing, SILENT_WAY.format(pid=pid))
    deadline, way = Deadline(MAKE_TIME), "see its processes, and dmesg"
    container.root_owner  # noqa: B018 - its ids are known from here on: a hook has its configuration in an open file
    return list(in_child(lambda: _made(container, nodes, base, pid), deadline, container.thing, way, closes=True))


def _made(container: Container, nodes: Sequence[Node], base: str, pid: int | None) -> list[str]:
    made: list[str] = []
    mounts: list[tuple[int, int, str]] = []
    try:
        with ContainerRoot(container, pid) as root:
            for node in nodes:
                with _place(root, node, make=True) as place:
                    if not _clear(place, (node.kind, node.major, node.minor)):
                        continue
                    if container.unprivileged or os.fstatvfs(place[0]).f_flag & os.ST_NODEV:
                        source = private_nodes.ensure(container, node, base)
                        mounts.append((_cloned(source, container), _target(root, place), node.path))
                    else:
                        _mknod(place, node)
                    made.append(node.path)
            if mounts:
                _bind(root, mounts)
            for node in nodes:
                _check(container, node, _numbers_at(root, node.path))
    finally:
        for pair in mounts:
            os.close(pair[0])
            os.close(pair[1])
    return made


def remove(container: Container, *paths: str, pid: int | None = None) -> list[str]:
    """Remove device nodes and bound files at these paths. A tenant's own file stays.

    :returns: the paths that were removed.
    """
    pid = pid or container.init_pid
    deadline, way = Deadline(LOOK_TIME), "see its processes, and dmesg"
    return list(in_child(lambda: _removed(container, paths, pid), deadline, container.thing, way, closes=True))


def _removed(container: Container, paths: Sequence[str], pid: int | None) -> list[str]:
    removed = []
    with ContainerRoot(container, pid) as root:
        for path in paths:
            with root.folder(path) as place, _said_of(root, path):
                status = _status(place)
                if place is None or status is None or not _ours(place, status):
                    continue
                # Also if something is bound on it: since Linux 3.18 a mount goes with the name that it is on, if that
                # is removed in another mount namespace.
                os.unlink(place[1], dir_fd=place[0])
                removed.append(path)
        for path in paths:
            found = _numbers_at(root, path)
            if found is not None:
                raise HeteroError(f"{path} is there again, {_said(found)}", root.thing, "see its processes")
    return removed


def look(container: Container, path: str, pid: int | None = None) -> tuple[str, int, int] | None:
    """Return (kind, major, minor) of the device node that the container has at a path, or None.

    Where the container's own program serves the file system, and does not answer or by an error, or the look takes too
    long, it is the one that is bound there.
    """
    pid = pid or container.init_pid
    return look_each(container, [path], pid)[path] or (private_nodes.bound_at(pid, path) if pid in _silent else None)


def look_each(
    container: Container, paths: Iterable[str], pid: int | None = None
) -> dict[str, tuple[str, int, int] | None]:
    """Return {path: (kind, major, minor) or None} of several paths.

    Where the container's own program serves the file system, and does not answer or by an error, there is nothing.
    """
    wanted = list(paths)
    pid = pid or container.init_pid

    def seen() -> list[tuple[str, int, int] | bool | None]:
        with ContainerRoot(container, pid) as root:
            return [_numbers_if_shown(root, path) for path in wanted]

    found: list[Any] = [None] * len(wanted)
    if pid not in _silent:
        try:
            found = in_child(seen, Deadline(LOOK_TIME), container.thing, "see dmesg", closes=True)
        except TimedOut:
            found = [False] * len(wanted)
        if False in found:
            _silent.add(cast("int", pid))
    known = [cast("tuple[str, int, int]", tuple(one)) if one else None for one in found]
    return dict(zip(wanted, known))


def make_inside(container: Container, *nodes: Node) -> None:
    """Make nodes by mknod through lxc-attach, under the container's own capabilities, seccomp and /dev."""
    for node in nodes:
        path, inside = node.path, ["lxc-attach", "-P", container.lxcpath, "-n", container.name, "--clear-env", "--"]
        remedy = "let it be made from the host (method host)"
        for argv in (
            ["mkdir", "-p", os.path.dirname(path)],
            ["rm", "-f", path],
            ["mknod", "-m", f"{node.mode:o}", path, node.kind, str(node.major), str(node.minor)],
        ):
            command([*inside, *argv], container.thing, remedy, timeout=INSIDE_TIME)
    found = look_each(container, [node.path for node in nodes])
    for node in nodes:
        _check(container, node, found[node.path])


def _check(container: Container, node: Node, found: tuple[str, int, int] | None) -> None:
    if found != (node.kind, node.major, node.minor):
        what = f"{node.path} is {_said(found)} after it was made {_said((node.kind, node.major, node.minor))}"
        raise HeteroError(what, container.thing, "something in it works against that: see its processes")


def _numbers_at(root: ContainerRoot, path: str) -> tuple[str, int, int] | None:
    with root.folder(path) as place:
        return numbers(_status(place))


def _numbers_if_shown(root: ContainerRoot, path: str) -> tuple[str, int, int] | bool | None:
    """Return what _numbers_at does, or False where a file system says another error: one of its own says any."""
    try:
        return _numbers_at(root, path)
    except OSError:
        return False


# ---- one place in the container: (descriptor of the folder, name)


@contextmanager
def _place(root: ContainerRoot, node: Node, make: bool) -> Iterator[Place]:
    with root.folder(node.path, make) as place, _said_of(root, node.path):
        if place is None:
            raise HeteroError(f"{os.path.dirname(node.path)} is no folder in it", root.thing, "see its /dev")
        yield place


@contextmanager
def _said_of(root: ContainerRoot, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        what = f"{path} cannot be made or removed in it ({error.strerror or error})"
        raise HeteroError(what, root.thing, f"see what is mounted there: /proc/{root.pid}/mountinfo") from error


def _status(place: Place | None) -> os.stat_result | None:
    """Return the status of what is uppermost there, without following links, or None."""
    if place is None:
        return None
    try:
        return os.stat(place[1], dir_fd=place[0], follow_symlinks=False)
    except FileNotFoundError:
        return None


def _ours(place: Place, status: os.stat_result) -> bool:
    """Return whether this is a device node, something bound on a file, or an empty file for that."""
    if stat.S_ISREG(status.st_mode) and status.st_size == 0:
        return True
    return numbers(status) is not None or (not stat.S_ISDIR(status.st_mode) and _bound(place))


def _bound(place: Place) -> bool:
    """Return whether something is mounted exactly there: then it lies on another mount than its folder."""
    with _entry(place) as there:
        return kernel.mount_of(there) != kernel.mount_of(place[0])


def _clear(place: Place, wanted: tuple[str, int | None, int]) -> bool:
    """Make room for a node; return False if the right one is there."""
    status = _status(place)
    if numbers(status) == wanted and not _nodev(place):
        return False
    if status is not None:
        os.unlink(place[1], dir_fd=place[0])
    return True


def _nodev(place: Place) -> bool:
    """Return whether the mount with a node opens no devices."""
    with _entry(place) as there:
        return bool(os.fstatvfs(there).f_flag & os.ST_NODEV)


@contextmanager
def _entry(place: Place) -> Iterator[int]:
    """Yield a descriptor of what lies in a place, be it a link or a device: nothing of it is opened."""
    there = os.open(place[1], os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place[0])
    try:
        yield there
    finally:
        os.close(there)


def _mknod(place: Place, node: Node) -> None:
    os.mknod(place[1], KINDS[node.kind] | 0o600, private_nodes.device_of(node), dir_fd=place[0])
    with _entry(place) as there:
        # The container's root may have put something else there by now: only what was looked at is changed.
        if numbers(os.fstat(there)) == (node.kind, node.major, node.minor):
            os.chown(f"/proc/self/fd/{there}", cast("int", node.uid), cast("int", node.gid))
            os.chmod(f"/proc/self/fd/{there}", cast("int", node.mode))


def _target(root: ContainerRoot, place: Place) -> int:
    """Make an empty file to bind on; return its descriptor."""
    with root.as_owner():
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(place[1], flags, 0o600, dir_fd=place[0])


def _cloned(source: str, container: Container) -> int:
    try:
        return kernel.clone_mount(source)
    except OSError as error:
        what = f"{source} cannot be bound into it ({error.strerror})"
        remedy = "Linux 5.12 or later does it" if error.errno == errno.ENOSYS else "see dmesg"
        raise HeteroError(what, container.thing, remedy) from error


def _bind(root: ContainerRoot, mounts: Sequence[tuple[int, int, str]]) -> None:
    """Bind mounts in a child that joins the container's mount namespace: a mount can only be put into one's own."""
    namespace = os.open(f"/proc/{root.pid}/ns/mnt", os.O_RDONLY)

    def bind() -> None:
        kernel.enter(namespace, kernel.CLONE_NEWNS)
        for mount, target, _path in mounts:
            kernel.move_mount(mount, target)

    try:
        in_child(bind, Deadline(BIND_TIME), root.thing, "see dmesg, and what is mounted in it")
    finally:
        os.close(namespace)


def _said(found: tuple[str, int | None, int] | None) -> str:
    return "{} {}:{}".format(*found) if found else "no device node"
