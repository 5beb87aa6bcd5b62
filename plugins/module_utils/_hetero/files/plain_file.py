# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plain file holds, at a path where anybody's pipe, device or link may lie: no reader waits for one of these."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO


def opened(path: str, device: bool = False) -> BinaryIO:
    """Return the plain file to which a path leads, also by a link, open to be read.

    :param device: whether it may be a block device.
    :raises OSError: it cannot be read, or is neither.
    """
    _must_be_plain(os.stat(path).st_mode, path, device)
    # Another may have put something else in its place since.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _must_be_plain(os.fstat(number).st_mode, path, device)
    except OSError:
        os.close(number)
        raise
    return open(number, "rb")


def read_at(path: str, most: int, begin: int = 0, device: bool = False) -> bytes:
    """Return up to `most` bytes of the plain file to which a path leads, also by a link, from this byte on.

    :param device: whether it may be a block device.
    :raises OSError: it cannot be read, or is neither.
    """
    with opened(path, device) as file:
        file.seek(begin)
        return file.read(most)


def _must_be_plain(mode: int, path: str, device: bool) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not (stat.S_ISREG(mode) or (device and stat.S_ISBLK(mode))):
        raise OSError(errno.EINVAL, "it is no plain file", path)


def read_plain(path: str, limit: int = -1) -> bytes | None:
    """Return the first `limit` bytes of a plain file, by default all; None where there is none, or a link.

    :raises OSError: it cannot be read.
    """
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        # Another may have put something else in its place since.
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
            return None
        raise
    with open(opened, "rb") as file:
        return file.read(limit) if stat.S_ISREG(os.fstat(opened).st_mode) else None
