# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cpio archive of a few small files, in the format from which the kernel unpacks an initrd ("newc").

roots/ram.py knows what is put in, and why.
"""

from __future__ import annotations

import stat
from typing import Iterable

FOLDER, FILE = stat.S_IFDIR, stat.S_IFREG


def archive(entries: Iterable[tuple[str, int, bytes]]) -> bytes:
    """Return the bytes of an archive whose files belong to root.

    :param entries: (path, mode with FOLDER or FILE, content) in order, a folder before what is in it.
    """
    data = b"".join(
        _entry(number, path, mode, content) for number, (path, mode, content) in enumerate(entries, start=1)
    )
    return _padded(data + _entry(0, "TRAILER!!!", 0, b""), 512)


def _entry(number: int, path: str, mode: int, content: bytes) -> bytes:
    # Documentation/driver-api/early-userspace/buffer-format.rst: inode, mode, uid, gid, links, time, size, two devices,
    # length of the name with its NUL, no check sum; header and content each end at a multiple of 4.
    name = path.encode() + b"\0"
    fields = (number, mode, 0, 0, 2 if stat.S_ISDIR(mode) else 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields)
    return _padded(head + name, 4) + _padded(content, 4)


def _padded(data: bytes, size: int) -> bytes:
    return data + b"\0" * (-len(data) % size)
