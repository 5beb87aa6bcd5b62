# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file as a block device: loop(4), by the kernel's own calls, so that nothing stays attached whoever is killed when.

What lies in the file is for file_system.py.
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
#: struct loop_config: fd, block_size; struct loop_info64, of which only lo_flags is set; reserved.
CONFIG = struct.Struct("=II 52x I 64x 64x 32x 16x 64x")
#: Seconds for the kernel to let go of a file that was unmounted just now (it takes milliseconds).
LET_GO = 10.0
NONE = "load the kernel's loop module, and let a container use /dev/loop-control and block devices 7:*"
#: Nodes of devices that were made by this process.
MADE: list[str] = []


@contextlib.contextmanager
def attached(path: str, read_only: bool = False) -> Iterator[str]:
    """The loop device of a file, for the block; a mount that is made in it keeps the device until it is unmounted.

    A file that is written by one device is attached to no other: two mounts of it would destroy what is in it. The lock
    that says so is the kernel's, and is over with the device.
    """
    try:
        file = os.open(path, (os.O_RDONLY if read_only else os.O_RDWR) | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise HeteroError(f"cannot be opened ({error.strerror})", path, "check the disk") from error
    try:
        if not read_only:
            _alone(file, path)
        device, name = _configured(file, path, read_only)
        try:
            yield name
        finally:
            os.close(device)
    finally:
        os.close(file)


@contextlib.contextmanager
def own_nodes() -> Iterator[None]:
    """Nodes of devices that are made in the block go at its end: who only tries whether there are some leaves none.

    One whose device another process took first was made here as well. A machine's own /dev is the kernel's, and keeps
    them. Who opens a node in the moment in which it goes asks for a device once more.
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


def _configured(file: int, path: str, read_only: bool) -> tuple[int, str]:
    """(descriptor, path) of a loop device that has the file, and loses it with its last user."""
    flags = LO_FLAGS_AUTOCLEAR | (LO_FLAGS_READ_ONLY if read_only else 0)
    deadline = Deadline(LET_GO)
    while True:
        name = ""
        try:
            name = _free_device()
            device = os.open(name, (os.O_RDONLY if read_only else os.O_RDWR) | os.O_CLOEXEC)
        except OSError as error:
            # one who only tried has taken the node away (own_nodes)
            if name and error.errno == errno.ENOENT and not deadline.passed:
                continue
            raise HeteroError(f"no loop device can be had ({error.strerror})", path, NONE) from error
        try:
            fcntl.ioctl(device, LOOP_CONFIGURE, CONFIG.pack(file, 0, flags))
            return device, name
        except OSError as error:
            os.close(device)
            # Somebody else took it since it was free.
            if error.errno == errno.EBUSY:
                continue
            what = f"cannot become a block device ({error.strerror})"
            raise HeteroError(what, path, "Linux 5.8 or newer is needed; the kernel's reason: dmesg") from error


def _free_device() -> str:
    """The node of a device that is free. The kernel makes any number, their nodes on its own /dev only."""
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
