# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a proxy's image: a read-only file system of their own, which is mounted on first use.

Images of older releases have their files in a folder. It stays as it is below roots that were made over it: an overlay
belongs to its lower layer (index=on), and over another copy of the same files its file handles are stale.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from typing import TYPE_CHECKING, Any, Callable, cast

from ..core.child import in_child
from ..core.errors import HeteroError
from ..files.file_system import SUPERBLOCK, mount_file, pack
from ..files.mounts import own_mounts
from ..files.root_work import inside

if TYPE_CHECKING:
    from ..core.deadline import Deadline
    from .proxy_node import StoredImage

#: Names in the image's folder: the file system, its mount point, and the folder of older releases.
FILE, POINT, FOLDER = "root.ext4", "mounted", "root"
#: fs/ext4/ext4.h: bytes of the superblock, and its fields s_blocks_count_lo and _hi, s_log_block_size, s_magic.
SUPERBLOCK_SIZE, BLOCKS, BLOCKS_HIGH, LOG_BLOCK, MAGIC_AT, MAGIC = 1024, 0x4, 0x150, 0x18, 0x38, 0xEF53


def root_of(image: StoredImage) -> str:
    """Return the folder with an image's files. They are mounted if needed, and packed first if they lie in a folder."""
    point = os.path.join(image.folder, POINT)
    if image.root != point or os.path.ismount(point):
        return cast(str, image.root)  # it is no RAM image
    folder = os.open(image.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # The holder of the lock runs only commands with time limits.
        fcntl.flock(folder, fcntl.LOCK_EX)
        file = os.path.join(image.folder, FILE)
        if not is_whole(file):
            if not os.path.isdir(os.path.join(image.folder, FOLDER)):
                raise HeteroError("has lost its files", f"image {image.name}", "import it again")
            pack(os.path.join(image.folder, FOLDER), file)
        if not os.path.ismount(point):
            os.makedirs(point, mode=0o700, exist_ok=True)
            mount_file(file, point, read_only=True)
    finally:
        os.close(folder)
    return point


def look_into(image: StoredImage, work: Callable[[], Any], deadline: Deadline) -> Any:
    """Return `work()`, which only reads, done inside an image's files as root_work.inside does. No mount is left of it.

    :raises HeteroError: as `inside`, or the image has lost its files.
    """
    point = os.path.join(image.folder, POINT)
    if image.root != point or os.path.ismount(point):
        return inside(cast(str, image.root), work, deadline)
    file, folder = os.path.join(image.folder, FILE), os.path.join(image.folder, FOLDER)
    if not is_whole(file):
        if not os.path.isdir(folder):
            raise HeteroError("has lost its files", f"image {image.name}", "import it again")
        return inside(folder, work, deadline)

    def mounted() -> Any:
        # Over the image's folder, which is there in any case; the mount is this process's alone, and ends with it.
        own_mounts()
        mount_file(file, image.folder, read_only=True)
        return inside(image.folder, work, deadline)

    return in_child(mounted, deadline, f"image {image.name}", "run this again")


def is_whole(path: str) -> bool:
    """Return whether the file is as long as the file system in its superblock. Its contents are not looked at."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        status = os.fstat(file)
        block = os.pread(file, SUPERBLOCK_SIZE, SUPERBLOCK) if stat.S_ISREG(status.st_mode) else b""
    except OSError:
        return False
    finally:
        os.close(file)
    if len(block) != SUPERBLOCK_SIZE or struct.unpack_from("<H", block, MAGIC_AT) != (MAGIC,):
        return False
    (low,), (high,), (log,) = (struct.unpack_from("<I", block, at) for at in (BLOCKS, BLOCKS_HIGH, LOG_BLOCK))
    return log <= 6 and status.st_size >= (low + (high << 32)) << (10 + log)
