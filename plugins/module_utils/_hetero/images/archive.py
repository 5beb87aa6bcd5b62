# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unpack a tar of unknown origin: hostile names, links, device nodes, sizes and damage all end in one clear error.

This file knows the traps of the tar format. files/tree.py prevents writing outside the folder, and store.py knows what
the files mean.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import struct
import tarfile
import zlib
from contextlib import contextmanager, nullcontext
from typing import IO, Any, Iterator, Protocol, cast

from ..core.deadline import Deadline
from ..core.errors import BadInput, HeteroError
from ..files.tree import REPACK, Tree, parts_of
from ..files.walk import CHUNK, REFUSED_KINDS, check_time
from .disk_signs import DISK, LARGEST, START, is_disk
from .xz import open_xz
from .zstd import MAGIC, decompressed

#: Bytes of a tar's block. A tar ends with blocks of zeros (POSIX.1-2001, pax, "ustar Interchange Format").
BLOCK = 512
#: First bytes of a compressed archive, and the function that opens it.
COMPRESSIONS = ((b"\x1f\x8b", gzip.open), (b"\xfd7zXZ\x00", open_xz), (b"BZh", bz2.open))
#: Errors of tarfile and the decompressors for damaged input. TarError alone does not cover it, least on old Pythons.
DAMAGE = (
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    OSError,
    EOFError,
    ValueError,
    OverflowError,
    RecursionError,
    IndexError,
    KeyError,
)
KINDS = {tarfile.FIFOTYPE: stat.S_IFIFO, tarfile.CHRTYPE: stat.S_IFCHR, tarfile.BLKTYPE: stat.S_IFBLK}
#: Bytes of headers and padding that an archive may have besides its content.
HEADERS = 64 << 20


def unpack(path: str | int, folder: str, limit: int, deadline: Deadline) -> None:
    """Unpack an archive (plain, gz, xz, bz2, zst) into an empty folder. After an error the caller removes all of it.

    The image of a disk is put there as it is, under the name DISK.

    :param path: path or descriptor.
    :param limit: bytes that the content may have.
    :raises BadInput: the archive is damaged or not allowed; the error names it and the member at fault.
    :raises TimedOut: the deadline passed; the error's thing is none.
    """
    try:
        # Headers and padding take less than the content, of which a file counts as at least 4 KiB.
        with opened(path, folder, 2 * limit + HEADERS, deadline) as blocks, Tree(folder, limit) as tree:
            with _reading(None):
                start = blocks.read(START)
                blocks.seek(0)
            if is_disk(start):
                tree.place_file([DISK], _disk(blocks, limit), 0, 0o400, 0, 0, 0)
                return
            for tar, member in members(blocks):
                place(tar, member, tree)
            tree.finish()
    except BadInput as error:
        what = f"member {shown(error.thing)} {error.what}" if error.thing else error.what
        raise BadInput(what, str(path), error.remedy, **error.facts) from error
    except OSError as error:
        what = f"cannot be unpacked to {folder} ({error.strerror or error})"
        raise HeteroError(what, str(path), "check space and permissions there (owners need root)") from error


def members(blocks: Blocks) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Yield (tar, member) of all members. A member's content can be read until the next one is asked for.

    :raises BadInput: the archive is damaged; the error's thing is none.
    """
    previous, offset = None, -1
    with _reading(previous):
        tar = tarfile.TarFile(fileobj=cast(IO[bytes], blocks), errors="surrogateescape")
    while True:
        with _reading(previous):
            member = tar.next()
        if member is None:
            break
        # A step back to an earlier header: negative sizes make Python's tarfile loop for ever (CVE-2025-8194).
        if member.offset <= offset or member.size < 0:
            raise _damaged(previous, "sizes that make no sense")
        previous, offset = member.name, member.offset
        tar.members = []  # type: ignore[attr-defined]  # else all headers stay in memory
        yield tar, member
    # tarfile takes a damaged header for the end. A real end has zeros, and then the compression's checksum.
    if len(blocks.last) != BLOCK or blocks.last.count(0) != BLOCK:
        raise _damaged(previous, "no end mark follows")
    with _reading(previous):
        while blocks.read(CHUNK):
            pass


def place(tar: tarfile.TarFile, member: tarfile.TarInfo, tree: Tree, below: tuple[str, ...] = ()) -> None:
    """Write a member into a tree.

    :param below: the folder of the tree (as parts) that is the archive's own folder.
    :raises BadInput: it is of a kind that an image may not hold, or leads out of the tree.
    """
    parts = [*below, *parts_of(member.name)]
    owner: dict[str, Any] = dict(uid=member.uid, gid=member.gid, mtime=max(0, member.mtime))
    mode = stat.S_IMODE(member.mode)
    if member.isdir():
        tree.place_folder(parts, mode, **owner)
    elif not parts:
        raise BadInput("is the archive's own folder, but no folder", member.name or "''", REPACK)
    elif member.isreg():
        tree.place_file(parts, _content(tar, member), member.size, mode, **owner)
    elif member.issym():
        tree.place_symlink(parts, member.linkname, **owner)
    elif member.islnk():
        tree.place_hard_link(parts, [*below, *_target(member)])
    elif member.type in KINDS:
        raise BadInput(f"is a {REFUSED_KINDS[KINDS[member.type]]}", member.name, REPACK)
    else:
        raise BadInput(f"is of a kind that no file is ({member.type!r})", member.name, REPACK)


def _target(member: tarfile.TarInfo) -> list[str]:
    """Return the target of a hard link as parts."""
    try:
        target = parts_of(member.linkname)
    except BadInput as error:
        raise BadInput(f"is a hard link out of the archive ({shown(member.linkname)})", member.name, REPACK) from error
    if not target:
        raise BadInput("is a hard link to a folder", member.name, REPACK)
    return target


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    with _reading(member.name):
        source = cast(IO[bytes], tar.extractfile(member))  # of a file there is one
    left = member.size
    while left:
        check_time(cast(Blocks, tar.fileobj).deadline)  # holes are made without a look into the archive
        with _reading(member.name):
            chunk = source.read(min(CHUNK, left))
        if not chunk:
            raise _damaged(member.name, "it ends there")
        left -= len(chunk)
        yield chunk


class _Readable(Protocol):
    """An open file, compressed or not."""

    def read(self, size: int, /) -> bytes: ...
    def seek(self, offset: int, /) -> int: ...
    def tell(self) -> int: ...


class Blocks:
    """The uncompressed archive for tarfile. It keeps the bytes read last, and limits reads, their sum and time."""

    def __init__(self, file: _Readable, limit: int, deadline: Deadline) -> None:
        self._file = file
        self.limit = limit
        self.deadline = deadline
        self.last = b""

    def read(self, size: int) -> bytes:
        # tarfile reads an extended header into memory, whatever size it claims.
        if not 0 <= size <= CHUNK:
            raise tarfile.ReadError(f"a header of {size} bytes")
        self._check(self._file.tell())
        self.last = self._file.read(size)
        return self.last

    def seek(self, offset: int) -> int:
        # in steps, because a decompressor reads all that lies between
        at = self._file.tell() if offset >= self._file.tell() else self._file.seek(0)
        for step in range(at + CHUNK, offset, CHUNK):
            self._check(step)
            self._file.seek(step)
        return self._file.seek(offset)

    def tell(self) -> int:
        return self._file.tell()

    def _check(self, at: int) -> None:
        check_time(self.deadline)
        if at > self.limit:
            what = "is larger than there is room for"
            raise BadInput(what, None, "make room, or the image smaller", room=self.limit)


class _File(io.FileIO):
    """An open file that is read until a deadline, whatever a decompressor looks for in it."""

    def __init__(self, file: int, deadline: Deadline) -> None:
        super().__init__(file, "rb")
        self._deadline = deadline

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        check_time(self._deadline)
        return super().readinto(buffer)


def _disk(blocks: Blocks, limit: int) -> Iterator[bytes]:
    """Yield the bytes of a disk's image, of which at most `limit` may be other than zeros."""
    blocks.limit, written = LARGEST, 0
    for chunk in chunks(blocks):
        written += 0 if chunk.count(0) == len(chunk) else len(chunk)
        if written > limit:
            what = f"is larger than the {limit >> 20} MiB there is room for"
            raise BadInput(what, None, "make room, or the image smaller", room=limit)
        yield chunk


def chunks(blocks: Blocks) -> Iterator[bytes]:
    """Yield the bytes that are left; raise BadInput where they are damaged."""
    while True:
        with _reading(None):
            chunk = blocks.read(CHUNK)
        if not chunk:
            return
        yield chunk


@contextmanager
def opened(path: str | int, folder: str, limit: int, deadline: Deadline) -> Iterator[Blocks]:
    """Open an archive, compressed or not.

    :param folder: where there is room for what must lie on a disk to be read (zst).
    :param limit: bytes that may be read.
    :param deadline: until when they may be read.
    """
    try:
        descriptor = os.dup(path) if isinstance(path, int) else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", None, "check the path") from error
    with io.BufferedReader(_File(descriptor, deadline)) as file:
        with _reading(None):
            file.seek(0)
            magic = file.read(6)
            file.seek(0)
        if magic.startswith(MAGIC):
            with decompressed(file, folder, limit, deadline) as plain:
                yield Blocks(plain, limit, deadline)
            return
        opener = next((opener for start, opener in COMPRESSIONS if magic.startswith(start)), None)
        with opener(file, "rb") if opener else nullcontext(file) as blocks:
            yield Blocks(blocks, limit, deadline)


@contextmanager
def _reading(member: str | None) -> Iterator[None]:
    """Raise errors of reading the archive as damage; errors of writing its content pass."""
    try:
        yield
    except DAMAGE as error:
        raise _damaged(member, error) from error


def _damaged(member: str | None, why: object) -> BadInput:
    where = f"at or after member {shown(member)}" if member else "at its start"
    return BadInput(f"is cut short, damaged or no tar, {where} ({why})", None, "fetch or pack it again")


def shown(name: str) -> str:
    """Return a name for people: unprintable characters are escaped, and it is cut at 200 letters."""
    text = name.encode("utf-8", "backslashreplace").decode()
    return (text if text.isprintable() else repr(text)[1:-1])[:200]
