# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file without a name, for what is needed once. It is gone when it is closed, also where its process is killed.

What is written for a while may not fill the disk: roots and the database lie on it too.
"""

from __future__ import annotations

import os
from typing import IO, Iterable

from ..core.errors import BadInput

#: Bytes of a file system that are left free, because the database may lie on it too.
KEEP_FREE = 256 << 20


def scratch(folder: str) -> IO[bytes]:
    """Return an empty file on a folder's file system."""
    # Imported here, because nearly no call of a module needs it, and it loads much.
    import tempfile

    return tempfile.TemporaryFile(dir=folder)


def fill(file: IO[bytes], chunks: Iterable[bytes]) -> None:
    """Write a scratch file and go back to its beginning. Chunks of zeros become holes.

    :raises BadInput: the rest of the disk would not hold as much again, which is made of it while it is there.
    """
    written = 0
    for chunk in chunks:
        if chunk.count(0) == len(chunk):
            file.seek(len(chunk), os.SEEK_CUR)
            continue
        written += len(chunk)
        leave_room(file.fileno(), written, written)
        file.write(chunk)
    file.truncate()
    file.seek(0)


def spare(where: str | int) -> int:
    """Return the bytes that may be written to a file system.

    :param where: path or descriptor of something on it.
    """
    there = os.statvfs(where)
    return max(0, there.f_bavail * there.f_frsize - KEEP_FREE)


def leave_room(where: str | int, written: int, needed: int, thing: str | None = None) -> None:
    """Raise BadInput unless there is room beside what was written.

    :param where: as of `spare`.
    :param written: its bytes.
    :param needed: the bytes that are still to be free.
    :param thing: what is written, for the error.
    """
    if spare(where) < needed:
        what = f"is larger than the {written >> 20} MiB there is room for"
        raise BadInput(what, thing, "make room, or the image smaller", room=written)
