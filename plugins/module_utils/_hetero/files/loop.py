# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loop devices (loop(4)) by the kernel's own calls, so that nothing stays attached when a process is killed.

file_system.py knows what lies in the file.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
from typing import Iterator

from ..core.deadline import Deadline
from ..core.errors import HeteroError

CONTROL = "/dev/loop-control"
#: <linux/loop.h>; LOOP_CONFIGURE came with Linux 5.8.
LOOP_CTL_GET_FREE, LOOP_CONFIGURE = 0x4C82, 0x4C0A
LO_FLAGS_READ_ONLY, LO_FLAGS_AUTOCLEAR = 1, 4
#: struct loop_config: fd, block_size; struct loop_info64, in which lo_offset, lo_sizelimit and lo_flags are set.
CONFIG = struct.Struct("=II 24x QQ 12x I 64x 64x 32x 16x 64x")
#: Seconds for the kernel to release a file that was just unmounted (it takes milliseconds).
LET_GO = 10.0
NONE = "load the kernel's loop module, and let a container use /dev/loop-control and block devices 7:*"
#: Paths of device nodes that this process made.
MADE: list[str] = []


@contextlib.contextmanager
def attached(path: str, read_only: bool = False, offset: int = 0, size: int = 0) -> Iterator[str]:
    """Attach a file to a loop device for the block. A mount that is made in the block keeps the device until it is
    unmounted.

    A file that one device writes is attached to no other: two mounts would destroy its contents. The kernel holds the
    lock for that and drops it with the device.

    :param offset: byte of the file at which the device begins.
    :param size: bytes of the device; 0: to the end of the file.
    :raises HeteroError: the file cannot be opened, is in use, or no loop device can be had.
    """
    try:
        file = os.open(path, (os.O_RDONLY if read_only else os.O_RDWR) | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise HeteroError(f"cannot be opened ({error.strerror})", path, "check the disk") from error
    try:
        if not read_only:
            _alone(file, path)
        device, name = _configured(file, path, read_only, offset, size)
        try:
            yield name
        finally:
            os.close(device)
    finally:
        os.close(file)


def is_of(number: int, path: str) -> bool:
    """Return whether a block device is a loop device of the very file at a path, and not of another that had its name.

    :param number: the device's number (st_dev of what is mounted from it).
    """
    try:
        with open(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/loop/backing_file", "rb") as behind:
            return os.path.samestat(os.stat(behind.read().rstrip(b"\n")), os.stat(path))
    except OSError:  # no loop device, or one whose file was removed: sysfs adds " (deleted)" to its name
        return False


@contextlib.contextmanager
def own_nodes() -> Iterator[None]:
    """Remove the device nodes that the block makes, at its end, so that a mere trial leaves none.

    Nodes whose device another process took are removed too. On a machine's own /dev the kernel makes the nodes, and
    keeps them. A process that opens a node at the moment of its removal asks for another device.
    """
    before = len(MADE)
    try:
        yield
    finally:
        for name in MADE[before:]:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
        del MADE[before:]


def _alone(file: int, path: str) -> None:
    deadline = Deadline(LET_GO)
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if deadline.passed:
                what = f"is still mounted elsewhere after {LET_GO:g} s, in another mount namespace"
                raise HeteroError(what, path, f"find who has it: losetup -j {path}; lsns -t mnt") from error
        deadline.nap(0.01)


def _configured(file: int, path: str, read_only: bool, offset: int, size: int) -> tuple[int, str]:
    """Return (descriptor, path) of a loop device that has the file and loses it with its last user."""
    flags = LO_FLAGS_AUTOCLEAR | (LO_FLAGS_READ_ONLY if read_only else 0)
    deadline = Deadline(LET_GO)
    while True:
        name = ""
        try:
            name = _free_device()
            device = os.open(name, (os.O_RDONLY if read_only else os.O_RDWR) | os.O_CLOEXEC)
        except OSError as error:
            # another process has removed the node (own_nodes)
            if name and error.errno == errno.ENOENT and not deadline.passed:
                continue
            raise HeteroError(f"no loop device can be had ({error.strerror})", path, NONE) from error
        try:
            fcntl.ioctl(device, LOOP_CONFIGURE, CONFIG.pack(file, 0, offset, size, flags))
            return device, name
        except OSError as error:
            os.close(device)
            # Another process took the device meanwhile.
            if error.errno == errno.EBUSY:
                continue
            what = f"cannot become a block device ({error.strerror})"
            raise HeteroError(what, path, "Linux 5.8 or newer is needed; the kernel's reason: dmesg") from error


def _free_device() -> str:
    """Return the node of a free device. The kernel makes devices as needed, but their nodes only on its own /dev."""
    control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        number = fcntl.ioctl(control, LOOP_CTL_GET_FREE)
    finally:
        os.close(control)
    name = f"/dev/loop{number}"
    if not os.path.exists(name):
        with open(f"/sys/block/loop{number}/dev", encoding="ascii") as file:
            device = os.makedev(*map(int, file.read().split(":")))
        with contextlib.suppress(FileExistsError):
            os.mknod(name, 0o600 | stat.S_IFBLK, device)
            MADE.append(name)
    return name
