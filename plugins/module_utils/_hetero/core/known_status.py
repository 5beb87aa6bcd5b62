# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel knows of a file already: which device it is, without a question to who serves its file system.

os.stat asks. Where the server is a program of a tenant (FUSE, also below an overlay) that never answers, or an NFS
server that is down, it waits for ever, and no signal ends that.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from typing import NamedTuple, Optional, Tuple

#: statx(2): only what is known, and no mounting of automounted folders (linux/fcntl.h); the file's kind (linux/stat.h).
AT_FDCWD, AT_SYMLINK_NOFOLLOW = -100, 0x100
AT_STATX_DONT_SYNC, AT_NO_AUTOMOUNT = 0x4000, 0x800
STATX_TYPE, STATX_INO = 0x001, 0x100
#: struct statx: mode, inode, then the numbers of the device that it is, and of the one that it is on.
FIELDS = struct.Struct("=28xH2xQ88x4I112x")
#: statfs(2): the first number of struct statfs, of a FUSE (linux/magic.h).
FUSE = 0x65735546

#: What a file system says of a file that it has lost, or that a tenant's program says is another now.
LOST = (errno.EIO, errno.ESTALE, errno.ENOTCONN)

#: What a file is: kind ("c" or "b") and number of a device, or None.
Device = Optional[Tuple[str, int]]
_libc = ctypes.CDLL(None, use_errno=True)
#: None of a C library before glibc 2.28 and musl 1.2.5.
_statx = getattr(_libc, "statx", None)


class Known(NamedTuple):
    """Fields of os.stat_result of the same names."""

    st_mode: int
    st_ino: int
    st_dev: int
    st_rdev: int

    @property
    def device(self) -> Device:
        if stat.S_ISCHR(self.st_mode):
            return ("c", self.st_rdev)
        return ("b", self.st_rdev) if stat.S_ISBLK(self.st_mode) else None


def status(path: str, follow: bool = True) -> Known:
    """Return what the kernel knows of a file.

    :param follow: whether it is the file to which a link leads.
    :raises OSError: as os.stat; PermissionError also where the file is of an account's own FUSE.
    """
    if _statx is None:
        seen = os.stat(path, follow_symlinks=follow)
        return Known(seen.st_mode, seen.st_ino, seen.st_dev, seen.st_rdev)
    flags = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT | (0 if follow else AT_SYMLINK_NOFOLLOW)
    answer = ctypes.create_string_buffer(FIELDS.size)
    if _statx(AT_FDCWD, os.fsencode(path), flags, STATX_TYPE | STATX_INO, answer):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    mode, inode, major, minor, on_major, on_minor = FIELDS.unpack(answer.raw)
    return Known(mode, inode, os.makedev(on_major, on_minor), os.makedev(major, minor))


def device(path: str) -> Device:
    """Return which device a file is, or None.

    A file that an account's own FUSE hides even from root is none: what such an account mounts opens no devices
    (fusermount(1), nodev; in a user namespace the kernel sees to it). Nor is one that its file system has lost; that of
    a device node asks nobody for it.

    :raises OSError: as status.
    """
    try:
        return status(path).device
    except OSError as error:
        if error.errno in LOST or (error.errno == errno.EACCES and _is_fuse(path)):
            return None
        raise


def _is_fuse(path: str) -> bool:
    """Return whether a file lies in a FUSE. One that hides its files from root says so without a question."""
    answer = ctypes.create_string_buffer(256)
    return _libc.statfs(os.fsencode(path), answer) == 0 and struct.unpack_from("=I", answer.raw)[0] == FUSE
