# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a process in a container can open a device, found by opening it in the container's namespaces and cgroup, as
its root.

The answer is open(2)'s: 0, or an error number. ENXIO means that the cgroup allows it and there is no driver; EPERM and
EACCES mean that the cgroup does not. It is tried in the cgroup of the whole container and in that of its init, which
the container chooses; the more open answer counts.
"""

from __future__ import annotations

import errno
import os
import tempfile
from typing import TYPE_CHECKING, Mapping, Sequence, cast

from ...core.child import in_child
from ...core.deadline import Deadline
from ...core.errors import HeteroError, naming
from ...core.kernel_text import status_of
from ...devices.cgroup import mounts
from . import kernel, private_nodes
from .private_nodes import KINDS

if TYPE_CHECKING:
    from ...devices.gpus.processes import Number
    from .liblxc import Container

#: Seconds to open some devices. A real GPU that nobody uses is first set up, which takes about a second.
OPEN_TIME = 20.0
FLAGS = os.O_RDWR


def opens(container: Container, path: str, flags: int = FLAGS, pid: int | None = None) -> int:
    """Return 0 if a path opens in the container, else the error number."""
    return opens_each(container, [path], flags, pid)[path]


def opens_each(
    container: Container, paths: Sequence[str], flags: int = FLAGS, pid: int | None = None
) -> dict[str, int]:
    """Return {path: 0 or error number} of several paths, tried by one process."""
    return dict(zip(paths, _tried(container, paths, flags, pid)))


def reaches(
    container: Container,
    devices: Sequence[Number],
    flags: int = FLAGS,
    pid: int | None = None,
    base: str = private_nodes.BASE,
) -> dict[Number, int]:
    """Return {(kind, major, minor): 0 or error number} of opening devices, whatever nodes the container has.

    A node that everybody may open is made outside, and found by the process before it goes inside, so that only the
    cgroup can keep it closed.
    """
    os.makedirs(base, mode=0o755, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".try-", dir=base) as folder:
        paths = [os.path.join(folder, str(number)) for number in range(len(devices))]
        for path, (kind, major, minor) in zip(paths, devices):
            os.mknod(path, KINDS[kind] | 0o600, os.makedev(cast("int", major), minor))
            os.chmod(path, 0o666)
        return dict(zip(devices, _tried(container, paths, flags, pid, outside=True)))


def _tried(
    container: Container, paths: Sequence[str], flags: int, pid: int | None, outside: bool = False
) -> list[int]:
    """Return the error numbers of opening files.

    :param outside: whether they are this host's, and not the container's.
    """
    pid = pid or container.init_pid
    if pid is None:
        raise HeteroError("does not run", container.thing, "start it, or see why it ended")

    whole, *inner = _cgroups_of(container, pid)
    answers = _tried_in(whole, container, paths, flags, pid, outside)
    for cgroups in inner:
        try:
            also = _tried_in(cgroups, container, paths, flags, pid, outside)
        except HeteroError:
            break  # the container froze or removed it, and it never allows more than the whole container's
        answers = [min(both, key=_closed) for both in zip(answers, also)]
    return answers


def _closed(number: int) -> tuple[bool, bool]:
    """Return how closed a device is by an answer, for comparisons."""
    return (number != 0, number in (errno.EPERM, errno.EACCES))


def _tried_in(
    cgroups: Mapping[str, str], container: Container, paths: Sequence[str], flags: int, pid: int, outside: bool
) -> list[int]:
    limits = _capabilities(pid, "CapBnd"), _capabilities("self", "CapPrm")

    def attempt() -> list[int]:
        proc, files = os.open("/proc", os.O_PATH), list(paths)
        if outside:
            files = [f"self/fd/{os.open(path, os.O_PATH | os.O_NOFOLLOW)}" for path in paths]
        become_root_of(pid, cgroups, *limits)
        # Not blocking and no terminal: a driver's open may wait for the device, and a terminal would become this
        # process's.
        how = flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return [_errno(path, how, proc) for path in files]

    second = None
    with naming(container.thing):
        if mounts.V2 in cgroups:
            second = os.open(cgroups[mounts.V2], os.O_RDONLY | os.O_DIRECTORY)
    way = "start it, or see why it ended"
    try:
        # its root, and what it has at a path, may be of a file system of its own, which answers nothing
        return in_child(attempt, Deadline(OPEN_TIME), container.thing, way, second, closes=True)
    finally:
        if second is not None:
            os.close(second)


def _errno(path: str, flags: int, folder: int) -> int:
    try:
        os.close(os.open(path, flags, dir_fd=folder))
    except OSError as error:
        return cast("int", error.errno)
    return 0


def become_root_of(pid: int, cgroups: Mapping[str, str], bounding: int, permitted: int) -> None:
    """Make this process one of a container's root, with its cgroup, mounts, user ids, and only its init's capabilities.

    It is for a child that is in the container's cgroup of version 2 already: there is no way back.

    :param bounding: capabilities that the container's processes can have.
    :param permitted: capabilities that this process has.
    """
    files = {name: os.open(f"/proc/{pid}/{name}", os.O_RDONLY) for name in ("root", "ns/mnt", "ns/user")}
    other_users = not os.path.sameopenfile(files["ns/user"], os.open("/proc/self/ns/user", os.O_RDONLY))
    if mounts.V1 in cgroups:
        # "tasks" and "0": the kernel then does not wait for all processes of the system, as for cgroup.procs (10 ms).
        os.write(os.open(os.path.join(cgroups[mounts.V1], "tasks"), os.O_WRONLY | os.O_CLOEXEC), b"0")
    kernel.enter(files["ns/mnt"], kernel.CLONE_NEWNS)
    os.fchdir(files["root"])
    os.chroot(".")
    if other_users:
        kernel.enter(files["ns/user"], kernel.CLONE_NEWUSER)
        permitted = bounding  # the capabilities in the container's user namespace
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    kernel.limit_capabilities(bounding & permitted)


def _capabilities(pid: int | str, field: str) -> int:
    return int(status_of(pid, field), 16)


def _cgroups_of(container: Container, pid: int) -> list[dict[str, str]]:
    """Return [{"v1", "v2": folder}] of the cgroups that decide which devices may be opened.

    They are the whole container's and, if they differ, its init's.
    """
    whole = _folders(mounts.container_cgroups(pid, container.name))
    if not whole:
        raise HeteroError("its device cgroup is mounted nowhere", f"process {pid}", "mount the cgroup hierarchies")
    inner = dict(whole, **_folders(mounts.cgroups(pid)))
    return [whole, inner] if inner != whole else [whole]


def _folders(cgroups: Mapping[str, str]) -> dict[str, str]:
    found = mounts.directories({version: cgroups[version] for version in mounts.OF_DEVICES if version in cgroups})
    return {version: path for version, path in found.items() if path is not None}
