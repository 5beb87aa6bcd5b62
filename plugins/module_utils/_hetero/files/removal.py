# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove folders that somebody else filled: of any depth and size, by two descriptors, through no link.

shutil.rmtree calls itself once for each level, so a tenant's 1,500 nested folders end it. Here the subfolders of a
folder move up to the top before the folder goes, so that nothing is ever deeper than two levels. A removal that was
killed or ran out of time is continued by the next one.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from itertools import islice
from typing import Callable

from ..core.deadline import Deadline
from ..core.errors import HeteroError, TimedOut

#: Seconds for a caller without a deadline: 100,000 files take 2 to 10 s on a disk.
REMOVAL_TIME = 600.0
#: Entries of a folder that are read at once.
BATCH = 1000
#: linux/fs.h: FS_IOC_GETFLAGS and FS_IOC_SETFLAGS, and the flags that forbid removal even to root.
GET_FLAGS, SET_FLAGS = 0x80086601, 0x40086602
IMMUTABLE, APPEND_ONLY = 0x10, 0x20
#: Name of a folder that moves up until it is removed, and a pattern of all of them: a removal that was cut off leaves
#: some.
UP, LEFT = ".removed-{number}", r"\.removed-[0-9]+"
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(path: str, deadline: Deadline | None = None) -> None:
    """Remove a file, or a folder with all that is in it. A link is removed, not followed. A missing path is no error.

    :param deadline: when to stop. The next call removes the rest.
    :raises TimedOut: the deadline passed.
    :raises HeteroError: something in it cannot be removed, such as a mount point; the error names it.
    """
    deadline = deadline or Deadline(REMOVAL_TIME)
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            _unlink(path, None)
            return
        top = _open_folder(path, None)
        try:
            _Emptying(path, top, deadline).run()
        finally:
            os.close(top)
        _forced(os.rmdir, path, None)
    except FileNotFoundError:
        return
    except OSError as error:
        what = f"cannot be removed ({error.strerror or error})"
        raise HeteroError(what, path, "see what is mounted in it or uses it, and the disk") from error


class _Emptying:
    """Empties the folder that is open at `top`."""

    def __init__(self, path: str, top: int, deadline: Deadline) -> None:
        self.path = path
        self.top = top
        self.deadline = deadline
        self.mount_id = _mount_id(top)
        self.number = 0
        self.removed = 0

    def run(self) -> None:
        while True:
            names = _names(self.top)
            if not names:
                return
            # On a full file system some folders can move up only after others are gone.
            if sum(self._gone(name, self.top) or self._remove_folder(name) for name in names) == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _remove_folder(self, name: str) -> bool:
        """Remove a folder of the top after its folders moved up to the top; return False if nothing could be done."""
        here = _open_folder(name, self.top)
        try:
            if _mount_id(here) != self.mount_id:
                raise OSError(errno.EBUSY, f"{name} in it is a mount point")
            names, done = _names(here), False
            while names:
                if sum(self._gone(entry, here) or self._move_up(entry, here) for entry in names) == 0:
                    return done
                names, done = _names(here), True
        finally:
            os.close(here)
        _forced(os.rmdir, name, self.top)
        return True

    def _gone(self, name: str, where: int) -> bool:
        """Remove anything except a folder; return False for a folder."""
        if self.deadline.passed:
            what = f"not all of it is removed after {self.deadline.seconds:g} s ({self.removed} files are)"
            raise TimedOut(what, self.path, "run this again, which goes on with it")
        try:
            if stat.S_ISDIR(os.lstat(name, dir_fd=where).st_mode):
                return False
            _unlink(name, where)
        except FileNotFoundError:
            pass  # another process removed it
        self.removed += 1
        return True

    def _move_up(self, name: str, where: int) -> bool:
        """Remove an empty folder, or move it to the top; return False if the top has no room for its name."""
        while True:
            self.number += 1
            try:
                os.rmdir(name, dir_fd=where)
                return True
            except FileNotFoundError:
                return True
            except OSError as error:
                if error.errno == errno.EBUSY:
                    raise  # a mount point
            try:
                os.rename(name, UP.format(number=self.number), src_dir_fd=where, dst_dir_fd=self.top)
                return True
            except FileNotFoundError:
                return True
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    return False
                # A tenant may have used this name; one of the next numbers is free.
                if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                    continue
                if error.errno != errno.EPERM or not _free(name, where):
                    raise


def _names(folder: int) -> list[str]:
    """Return some of the names in a folder, none if it is empty."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in islice(entries, BATCH)]


def _mount_id(file: int) -> str:
    """Return the id of the mount through which a file was opened (proc(5), fdinfo)."""
    with open(f"/proc/self/fdinfo/{file}", encoding="ascii") as lines:
        return next(line.split()[1] for line in lines if line.startswith("mnt_id:"))


def _open_folder(name: str, where: int | None) -> int:
    folder = os.open(name, FOLDER, dir_fd=where)
    _clear_flags(folder)
    return folder


def _unlink(name: str, where: int | None) -> None:
    _forced(os.unlink, name, where)


def _forced(remove: Callable[..., None], name: str, where: int | None) -> None:
    """Remove an entry. Flags that forbid it (chattr +i, +a) are cleared first."""
    try:
        remove(name, dir_fd=where)
    except PermissionError:
        if not _free(name, where):
            raise
        remove(name, dir_fd=where)


def _free(name: str, where: int | None) -> bool:
    """Clear the flags of a plain file or folder that forbid its removal; return whether there were any."""
    kind = os.stat(name, dir_fd=where, follow_symlinks=False).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        return False
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=where)
    try:
        return _clear_flags(file)
    finally:
        os.close(file)


def _clear_flags(file: int) -> bool:
    """Clear the flags of an open file that forbid its removal; return whether there were any."""
    try:
        flags = struct.unpack("i", fcntl.ioctl(file, GET_FLAGS, struct.pack("i", 0)))[0]
        if not flags & (IMMUTABLE | APPEND_ONLY):
            return False
        fcntl.ioctl(file, SET_FLAGS, struct.pack("i", flags & ~(IMMUTABLE | APPEND_ONLY)))
    except OSError as error:
        if error.errno in (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            return False  # a file system without such flags
        raise
    return True
