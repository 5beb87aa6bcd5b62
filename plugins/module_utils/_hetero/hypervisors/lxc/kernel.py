# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""System calls for which Python 3.8 has no function: paths inside a root, mounts by descriptor, namespaces,
capabilities.

All raise OSError as os does.
"""

from __future__ import annotations

import ctypes
import os
import struct

#: System call numbers, the same on every architecture (asm-generic/unistd.h).
OPEN_TREE, MOVE_MOUNT, OPENAT2, MOUNT_SETATTR = 428, 429, 437, 442
AT_FDCWD = -100
#: <linux/mount.h>
OPEN_TREE_CLONE = 1
MOUNT_ATTR_NOSUID, MOUNT_ATTR_NOEXEC = 0x02, 0x08
MS_REC, MS_PRIVATE = 1 << 14, 1 << 18
#: <linux/fcntl.h>
AT_EMPTY_PATH = 0x1000
MOVE_MOUNT_F_EMPTY_PATH, MOVE_MOUNT_T_EMPTY_PATH = 0x04, 0x40
#: <linux/openat2.h>: absolute names and ".." end at the root; links such as /proc/PID/root are not followed.
RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_IN_ROOT = 0x02, 0x04, 0x10
#: <linux/sched.h>
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
#: <linux/capability.h>
CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)
for _name in ("syscall", "setns", "capset", "setfsuid", "setfsgid", "unshare", "mount"):
    getattr(_libc, _name).restype = ctypes.c_long if _name == "syscall" else ctypes.c_int


def _call(name: str, *arguments: object, path: str | None = None) -> int:
    result = getattr(_libc, name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return result


def open_in_root(root: int, path: str, flags: int) -> int:
    """Return a descriptor of `path` below descriptor `root`, found as by a process with that root (openat2, Linux 5.6).
    """
    return _open(root, path, flags, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)


def open_without_links(path: str) -> int:
    """Return a descriptor that names `path`, in which no part may be a link (ELOOP)."""
    return _open(AT_FDCWD, path, os.O_PATH, RESOLVE_NO_SYMLINKS)


def _open(folder: int, path: str, flags: int, resolve: int) -> int:
    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, resolve)
    number = ctypes.c_long(OPENAT2)
    return _call("syscall", number, folder, os.fsencode(path), how, ctypes.c_size_t(len(how)), path=path)


def clone_mount(path: str) -> int:
    """Return a descriptor of a bind mount of `path` that has no place yet (open_tree, mount_setattr; Linux 5.12).

    It is private. Otherwise what a container's root mounts on it would appear on this machine's own mount.
    """
    flags = OPEN_TREE_CLONE | os.O_CLOEXEC
    mount = _call("syscall", ctypes.c_long(OPEN_TREE), AT_FDCWD, os.fsencode(path), flags, path=path)
    wanted = struct.pack("=4Q", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0, MS_PRIVATE, 0)
    try:
        size = ctypes.c_size_t(len(wanted))
        _call("syscall", ctypes.c_long(MOUNT_SETATTR), mount, b"", AT_EMPTY_PATH, wanted, size, path=path)
    except OSError:
        os.close(mount)
        raise
    return mount


def move_mount(mount: int, point: int) -> None:
    """Put a mount of clone_mount on a file; both are descriptors (Linux 5.2)."""
    flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH
    _call("syscall", ctypes.c_long(MOVE_MOUNT), mount, b"", point, b"", flags)


def enter(namespace: int, kind: int) -> None:
    """Join a namespace (an open /proc/PID/ns/…)."""
    _call("setns", namespace, kind)


def see_alone(kind: str, point: str) -> None:
    """Mount a file system that has no source, in a mount namespace of this process's own. There is no way back."""
    _call("unshare", CLONE_NEWNS)
    _call("mount", None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None, path="/")
    _call("mount", kind.encode(), os.fsencode(point), kind.encode(), ctypes.c_ulong(0), None, path=point)


def act_as(uid: int, gid: int) -> None:
    """Be this user for file systems. For any but root that takes the rights over others' files away (setfsuid(2))."""
    _libc.setfsgid(gid)
    _libc.setfsuid(uid)
    # The calls return the former id and no error: -1 changes nothing and shows the present id.
    if (_libc.setfsuid(-1), _libc.setfsgid(-1)) != (uid, gid):
        raise OSError(1, f"cannot act as {uid}:{gid}")


def limit_capabilities(mask: int) -> None:
    """Keep only those effective capabilities that are in a mask (as CapBnd in /proc/PID/status)."""
    header = struct.pack("=II", CAPABILITY_VERSION_3, 0)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    _call("capset", header, struct.pack("=6I", low, low, 0, high, high, 0))


def mount_of(descriptor: int) -> int:
    """Return the id of the mount with an open file, as the first field of /proc/PID/mountinfo."""
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("mnt_id:"))
