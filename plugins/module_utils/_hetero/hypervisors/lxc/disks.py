# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container's root as a file system of its own, whose size limits what the container can store.

The host mounts it nosuid, nodev and noexec in a folder that only root enters. LXC mounts the same device once more in
the mount namespace of the container's monitor, where nobody else is and set-uid programs and devices work. Containers
of an earlier release have a plain folder instead.
"""

from __future__ import annotations

import os
import stat

from ...core.errors import BadInput, HeteroError, Refused, naming, told
from ...files import file_system
from ...files.file_system import make_empty, mount_file
from ...files.loop import attached, is_of
from ...files.mounts import unmount as unmount_point
from . import identity, own_root, private_nodes
from .liblxc import Container, containers

FILE = "root.ext4"
#: Folder on the host's /dev, which is empty after a restart, because the number of a loop device may then be another
#: container's. Not private_nodes.BASE, which everybody may pass.
BASE = "/dev/hetero-disks"
OTHER = "what is mounted here is not the file {file} beside it, and {name} runs: nothing of it is changed or ended"
OTHER_WAY = (
    "see what it is (findmnt {root}): unmount what somebody mounted by mistake; where it runs from the file that was "
    "there before, copy what that has by now, and end it (lxc-stop -P {lxcpath} -n {name}), for its next start takes "
    "the file that is there now; then run this again"
)


def file_of(container: Container) -> str:
    return os.path.join(container.folder, FILE)


def root_of(container: Container) -> str:
    """Return where the host sees the root of a container that was made here."""
    return os.path.join(container.folder, "rootfs")


def node_of(container: Container, base: str = BASE) -> str:
    """Return the path of the block device that LXC mounts."""
    return private_nodes.folder(container, base)


def has(container: Container) -> bool:
    return os.path.exists(file_of(container))


def has_errors(container: Container) -> bool:
    """Return whether its file system has errors and takes no writes until it is checked."""
    return file_system.has_errors(file_of(container))


def make(container: Container, size_gb: int, base: str = BASE) -> str:
    """Make an empty disk in the container's folder and mount it for the host; return the mount point."""
    path, root = file_of(container), root_of(container)
    with naming(path):
        # Only root reads it, from its first byte.
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(file, size_gb << 30)
        except OSError as error:
            what = f"no file of {size_gb} GiB can be made there ({error.strerror})"
            raise BadInput(what, path, "take a flavor with less local_gb") from error
        finally:
            os.close(file)
        try:
            make_empty(path)
        except HeteroError:
            os.unlink(path)  # of what was made just now nobody could say later whose root it is
            raise
        os.mkdir(root, 0o700)
        _mount(container, base)  # it was made here just now
        os.rmdir(os.path.join(root, "lost+found"))
    return root


def mount_copy(container: Container, base: str = BASE) -> str:
    """Mount, for the host, a disk that was copied into the folder of a container; return the mount point."""
    root = root_of(container)
    with naming(root):
        if not os.path.isdir(root):
            os.mkdir(root, 0o700)
    mount(container, base)
    return root


def mount(container: Container, base: str = BASE) -> None:
    """Mount a disk for the host and make its node for LXC; a mounted one stays.

    Unless the container runs, a mounted disk with errors is unmounted and checked, and another disk in its place is
    unmounted.

    :raises Refused: the file in the container's folder was made for another container.
    """
    own_root.must_be_own(container, file_of(container))
    _mount(container, base)


def _mount(container: Container, base: str) -> None:
    root, node = root_of(container), node_of(container, base)
    with naming(node):
        wrong = os.path.ismount(root) and (has_errors(container) or not _is_own(container))
        if wrong and not container.running:
            unmount(container, base)
        if not os.path.ismount(root):
            mount_file(file_of(container), root)
        number = os.stat(root).st_dev
        if _number(node) != number:
            _forget(node)
            os.makedirs(base, mode=0o700, exist_ok=True)
            os.mknod(node, 0o600 | stat.S_IFBLK, number)


def is_mounted(container: Container, base: str = BASE) -> bool:
    """Return whether the file in a container's folder, and nothing else, is mounted as its root, and has its node."""
    root = root_of(container)
    is_there = os.path.ismount(root) and _number(node_of(container, base)) == os.stat(root).st_dev
    return is_there and _is_own(container)


def must_run_from_it(container: Container) -> None:
    """Raise Refused if a container runs, and the file in its folder is not the one that is mounted as its root."""
    root = root_of(container)
    if os.path.ismount(root) and not _is_own(container) and container.running:
        what = OTHER.format(file=FILE, name=container.name)
        raise Refused(what, root, OTHER_WAY.format(root=root, lxcpath=container.lxcpath, name=container.name))


def _is_own(container: Container) -> bool:
    """Return whether what is mounted as its root is the file in its folder, not one that was there before."""
    return is_of(os.stat(root_of(container)).st_dev, file_of(container))


def unmount(container: Container, base: str = BASE) -> None:
    """Unmount a disk and remove its node; the container must not run.

    :raises HeteroError: it is still mounted somewhere. Then its name and ids must not be given to another container.
    """
    root = root_of(container)
    with naming(root):
        while os.path.ismount(root):
            number = unmount_point(root)
            if number:
                what = f"cannot be unmounted ({os.strerror(number)})"
                raise HeteroError(what, root, "see who uses it (fuser -vm), then run this again")
        if has(container):
            with attached(file_of(container)):
                pass  # no other mount namespace has it
        _forget(node_of(container, base))


def restore(lxcpath: str, base: str = BASE) -> dict[str, str]:
    """Mount the disks of all containers, before LXC starts the first; return {name: why it will not start}.

    The folder of a container that was made here and has no disk is closed to all but its own root.
    """
    failed = {}
    for name in containers(lxcpath):
        try:
            container = Container(name, lxcpath)
            if has(container):
                mount(container, base)
                continue
            with naming(container.config_file):
                if identity.key_of(container) is not None:
                    os.chown(container.folder, 0, container.host_id("g", 0))
                    os.chmod(container.folder, 0o710)
        except Exception as error:  # noqa: BLE001 - the others must start whatever is wrong with one
            failed[name] = told(error, f"container {name} of {lxcpath}")
    return failed


def _number(node: str) -> int | None:
    try:
        return os.lstat(node).st_rdev
    except FileNotFoundError:
        return None


def _forget(node: str) -> None:
    if os.path.lexists(node):
        os.unlink(node)
