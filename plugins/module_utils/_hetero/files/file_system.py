# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""File systems in files: a sparse ext4 of limited size for one root, and a read-only one with the files of an image.

A tenant's file handles can name all that lies in these two: an NFS server finds any file of a file system by its
number, whatever folder is exported (open_by_handle_at(2)). So nothing else may ever lie there.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import struct
import tempfile
import uuid as uuids
from typing import Callable, Sequence

from ..core.child import in_child
from ..core.command import command
from ..core.deadline import Deadline
from ..core.errors import HeteroError, naming
from .loop import attached
from .mounts import mount_ext4, own_mounts
from .plain_file import read_at
from .removal import remove_tree
from .scratch import KEEP_FREE, spare
from .walk import walk

#: Block size in bytes, in which sizes are counted. mke2fs itself would take a smaller one for small file systems.
BLOCK = 4096
#: Seconds for mke2fs. It makes 500 GB in 11 ms with groups packed by 256, and in 30 ms by 16 (its default).
MAKE_TIME = 60.0
#: Seconds for e2fsck to replay a journal and correct what it can (1 GiB took 0.1 s).
CHECK_TIME = 600.0
#: Offset of the superblock, of its field s_state, and flag EXT4_ERROR_FS of that field (fs/ext4/ext4.h).
SUPERBLOCK, STATE, ERRORS = 1024, 0x3A, 2
#: Its fields s_magic, with its value, and s_uuid.
MAGIC, EXT4, UUID = 0x38, b"\x53\xef", 0x68
#: Its fields s_free_blocks_count_lo, which s_free_inodes_count follows, and s_free_blocks_count_hi.
FREE, FREE_HIGH = 0xC, 0x158
#: Its field s_kbytes_written.
WRITTEN = 0x178
#: Seconds to write an image's files (155 MB took 0.8 s).
PACK_TIME = 1800.0
#: For all file systems; -m 0: no blocks are reserved for root.
MAKE = ["mke2fs", "-q", "-F", "-t", "ext4", "-b", str(BLOCK), "-m", "0"]
#: Bytes of a file system for each file that it can hold: mke2fs's default for all but small ones (mke2fs.conf(5)).
AN_INODE = 16384
#: With a journal, because a power cut of this machine must lose no root; 16 MiB are enough for one board's writes.
#: Parts that are zero in a new file are not written, and there are two copies of the superblock instead of one in each
#: group that is a power of 3, 5 or 7.
EMPTY = ["-i", str(AN_INODE), "-G", "256", "-J", "size=16", "-O", "^resize_inode,sparse_super2"]
EMPTY += ["-E", "lazy_itable_init=1,lazy_journal_init=1"]
FILLED = ["-O", "^has_journal,^resize_inode"]
#: The inode tables of a new sparse file need no zeroing, and what a tenant removes goes back to the disk.
OPTIONS = "noinit_itable,discard,errors=remount-ro"
#: Linux 5.13 and later would otherwise read all tables of free blocks at each mount: 30 MB of memory for 917 GB.
UNREAD = f"{OPTIONS},no_prefetch_block_bitmaps"
#: Bytes that keys and the like add to a root; and those above what its files need from which a file system surely has
#: room for its tables and its journal, too.
KEYS, SURE = 1 << 20, 256 << 20
#: Bytes of the smallest file system that has room for its tables, its journal and some files.
LEAST = 64 << 20


def make_empty(path: str, uuid: str = "random") -> None:
    """Make an empty file system in a sparse file.

    :param path: the file, which has its size already.
    :param uuid: of the file system (mke2fs(8), -U).
    """
    command([*MAKE, *EMPTY, "-U", uuid, path], path, "check the space there", timeout=MAKE_TIME)


def mount_file(path: str, point: str, read_only: bool = False) -> None:
    """Mount the file system in a file on a folder. Its programs, devices and set-uid bits have no effect on this
    machine.

    :raises HeteroError: it cannot be mounted, or has errors that e2fsck does not correct by itself.
    """
    with attached(path, read_only) as device:
        if not read_only and has_errors(path):
            # 1 and 2: corrected (e2fsck(8)). What it cannot correct by itself is left to a person.
            remedy = f"look at it: e2fsck {path}, while nothing uses it"
            command(["e2fsck", "-p", device], path, remedy, timeout=CHECK_TIME, ok=(0, 1, 2))
        number = mount_ext4(device, point, "" if read_only else UNREAD, read_only)
        if number == errno.EINVAL and not read_only:  # an older kernel
            number = mount_ext4(device, point, OPTIONS)
    if number:
        what = f"its file system cannot be mounted ({os.strerror(number)})"
        raise HeteroError(what, path, "the kernel's reason: dmesg")


def has_errors(path: str) -> bool:
    """Return whether the kernel found errors in the file system in a file.

    The kernel then writes to it no more until it is checked. It notes the errors at once, so that those of a mounted
    file system are seen too. False if there is no such file.

    :raises HeteroError: it cannot be read, or is no file.
    """
    try:
        state = read_at(path, 2, SUPERBLOCK + STATE, device=True)
    except FileNotFoundError:
        return False
    except OSError as error:
        remedy = "look at what lies there: it is to be the file with the file system of a board's root"
        raise HeteroError(f"cannot be read ({error.strerror})", path, remedy) from error
    return len(state) == 2 and bool(struct.unpack("<H", state)[0] & ERRORS)


def uuid_of(path: str) -> str | None:
    """Return the UUID of the file system in a file; None where there is no file, or none with such a file system.

    :raises HeteroError: it cannot be read.
    """
    block = _superblock(path)
    return str(uuids.UUID(bytes=block[UUID : UUID + 16])) if block else None


def written_to(path: str) -> int | None:
    """Return how many KiB were ever written to the file system in a file, which only grows; None as for uuid_of.

    :raises HeteroError: it cannot be read.
    """
    block = _superblock(path)
    return int(struct.unpack_from("<Q", block, WRITTEN)[0]) if block else None


def _superblock(path: str) -> bytes | None:
    try:
        block = read_at(path, SUPERBLOCK, SUPERBLOCK, device=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        remedy = "look at what lies there: it is to be the file with a root's file system"
        raise HeteroError(f"cannot be read ({error.strerror})", path, remedy) from error
    return block if len(block) == SUPERBLOCK and block[MAGIC : MAGIC + len(EXT4)] == EXT4 else None


def is_empty(path: str) -> bool:
    """Return whether no file is there, or one in which nothing was written yet."""
    try:
        return os.stat(path).st_blocks == 0
    except (FileNotFoundError, NotADirectoryError):
        return True


def pack(folder: str, path: str, seconds: float = PACK_TIME) -> None:
    """Make a file system with the contents of a folder: owners, modes, times, links and attributes."""
    new = f"{path}.new"
    remove_tree(new)  # left by a process that was killed
    size, files = _extent(folder)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400), "wb") as file:
        file.truncate(size)
    command([*MAKE, *FILLED, "-N", str(files), "-d", folder, new], folder, "check the space there", timeout=seconds)
    in_child(lambda: _complete(new, folder), Deadline(MAKE_TIME), folder, "check the disk")
    written = os.open(new, os.O_RDONLY)
    try:
        os.fsync(written)
    finally:
        os.close(written)
    os.replace(new, path)


def must_hold(root: str, path: str, size: int, make: Sequence[str], remedy: str, copies: int = 1) -> None:
    """Raise HeteroError where no file system of so many bytes, with a root's files, can be made in place of a file.

    Where the sizes do not tell, it is tried in a file without a name, which leaves nothing behind, if the disk has room
    for that beside the present file.

    :param path: the file that is to be removed for it.
    :param make: the command line that makes the file system, without folder and file.
    :param copies: how often the root lies on the disk while it is made.
    """
    needs, files = _extent(root, _held)
    takes = needs * copies
    folder = os.path.dirname(path)
    with naming(path):
        free = os.statvfs(folder)
        left = free.f_bfree * free.f_frsize + (os.stat(path).st_blocks * 512 if os.path.exists(path) else 0)
        if left < takes:
            what = f"has no room for the new root ({left >> 20} MiB with what its old one takes, {takes >> 20} needed)"
            raise HeteroError(what, folder, "free space on its file system, then run this again")
        with tempfile.TemporaryFile(dir=folder) as file:
            os.ftruncate(file.fileno(), size)  # not each file system has files of that size
            os.ftruncate(file.fileno(), size - KEYS)
            sure = needs * 5 // 4 + SURE <= size and files * AN_INODE * 5 // 4 <= size
            if sure or _has_room(needs, files, size - KEYS, lambda new: command([*make, new], path, remedy, MAKE_TIME)):
                return
            takes = min(needs, size)
            if spare(folder) < takes:
                room = f"{takes >> 20} MiB, and {KEEP_FREE >> 20} stay free"
                what = f"has no room to try whether the new root fits into its disk ({room})"
                raise HeteroError(what, folder, "free space on its file system, then run this again")
            command([*make, "-d", root, _path_of(file.fileno())], path, remedy, timeout=PACK_TIME)


def _has_room(needs: int, files: int, size: int, make: Callable[[str], object]) -> bool:
    """Return whether a new file system of a size has room for so many bytes and files at most.

    It is made in memory: 5 MB of that for 100 GB.

    :param make: makes it in the file of a path.
    """
    with open(os.memfd_create("trial"), "rb") as file:
        os.ftruncate(file.fileno(), size)
        make(_path_of(file.fileno()))
        block = os.pread(file.fileno(), SUPERBLOCK, SUPERBLOCK)
    low, inodes = struct.unpack_from("<II", block, FREE)
    (high,) = struct.unpack_from("<I", block, FREE_HIGH)
    return needs <= (low + (high << 32)) * BLOCK and files <= inodes


def _path_of(file: int) -> str:
    """Return a path by which other programs open a file that is open here."""
    return f"/proc/{os.getpid()}/fd/{file}"


def _complete(file: str, folder: str) -> None:
    """Finish a file system of mke2fs, which adds a folder lost+found and gives the top folder to its caller.

    It is mounted over the folder itself, where only this process sees it, and unmounted when this process ends.
    """
    own_mounts()
    status = os.stat(folder)
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    mount_file(file, folder)
    os.rmdir(os.path.join(folder, "lost+found"))
    os.chown(folder, status.st_uid, status.st_gid)
    shutil.copystat(f"/proc/self/fd/{top}", folder)


def _extent(folder: str, bytes_of: Callable[[os.stat_result, str, int], int] | None = None) -> tuple[int, int]:
    """Return (bytes, inodes) that a file system for a folder's contents needs at most. Unused bytes take no space.

    :param bytes_of: tells what a file takes, by its stat, name and folder's descriptor; None for its length.
    """
    size, seen = 0, set()
    for parts, status, where in walk(folder):
        if (status.st_dev, status.st_ino) in seen:  # another name of a file
            continue
        seen.add((status.st_dev, status.st_ino))
        size += 2 * BLOCK  # one more block for attributes, and one for the blocks that point to others
        if stat.S_ISREG(status.st_mode) and bytes_of:
            size += bytes_of(status, parts[-1], where)
        elif stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
            size += status.st_size
    inodes = len(seen) + 64
    return (size * 17 // 16 + inodes * 256 + (16 << 20)) // BLOCK * BLOCK, inodes


def _held(status: os.stat_result, name: str, folder: int) -> int:
    """Return the bytes of a file outside its holes. A file system that packs data tells no holes by st_blocks."""
    if status.st_blocks * 512 >= status.st_size:
        return status.st_size
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        held = end = 0
        while end < status.st_size:
            start = os.lseek(file, end, os.SEEK_DATA)
            end = os.lseek(file, start, os.SEEK_HOLE)
            held += end - start
    except OSError as error:
        if error.errno != errno.ENXIO:  # no more data
            raise
    finally:
        os.close(file)
    return held
