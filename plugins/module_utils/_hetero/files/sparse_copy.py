# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sparse file, such as a root, that is copied to another machine in pieces, which somebody else carries.

Only what holds data is sent. The copy is as sparse as its source, and only root reads it from its first byte. A copy
that was cut off anywhere goes on: what it has is read, and compared by its sums with the source, which may have changed
since.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import zlib
from contextlib import suppress
from typing import Any, Iterator, Mapping

from ..core.errors import BadInput, HeteroError, naming
from .scratch import spare
from .whole_file import sync_folder

#: Bytes of a piece, which several processes on the controller hold as base64 in JSON. It counts for all releases that
#: may copy to one another.
PIECE = 16 << 20
#: Bytes of a copy's blocks that are not written where they are zero: the block size of ext4.
BLOCK = 4096
#: zlib's fastest: a root has much that is compressed already, and the controller's network is as fast as that.
LEVEL = 1
OTHER = "piece {number} of the copy arrived with other data than were sent"
AGAIN = "run this again, which sends it once more"
ROOM = "has room for {there} MiB of the copy, and {needed} are needed"
FREE = "free space on its file system, then run this again"
CHANGED = "is not the same as its source, although each piece of it was (its sum is {own}, and not {source})"
RESUME = "run this again, which compares the pieces, and sends those that differ"


def size_of(path: str) -> int:
    """Return the length of a file in bytes."""
    with naming(path):
        return os.stat(path).st_size


def bytes_of(path: str) -> int:
    """Return the bytes of a file that hold data, which are sent; a copy takes these blocks at most.

    What is only kept for it on the disk (fallocate) is a hole of the copy.
    """
    with naming(path), open(path, "rb") as file:
        return sum(end - begin for begin, end in _extents(file.fileno(), os.fstat(file.fileno()).st_size))


def length_of(number: int, size: int) -> int:
    """Return the bytes of a piece of a file of that size; raise BadInput where it has no such piece."""
    if number < 0 or number * PIECE >= size:
        raise BadInput(f"is {number}, and the file has {-(-size // PIECE)} pieces", "number", "give one of these")
    return min(PIECE, size - number * PIECE)


def numbers(path: str) -> list[int]:
    """Return the numbers of a file's pieces in which there may be data, in their order (lseek(2), SEEK_DATA)."""
    found: list[int] = []
    with naming(path), open(path, "rb") as file:
        for begin, end in _extents(file.fileno(), os.fstat(file.fileno()).st_size):
            first, last = begin // PIECE, (end - 1) // PIECE
            found += range(max(first, found[-1] + 1) if found else first, last + 1)
    return found


def _extents(file: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of each part of an open file that is no hole."""
    begin = 0
    while begin < size:
        try:
            begin = os.lseek(file, begin, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:  # there is none behind it
                raise
            return
        end = os.lseek(file, begin, os.SEEK_HOLE)
        yield begin, end
        begin = end


def read(path: str, number: int) -> dict[str, Any]:
    """Return a piece of a file for `write`: its number and offset, its length and sum as it lies there, and its data
    compressed, as base64.
    """
    data = _piece(path, number)
    sent = base64.b64encode(zlib.compress(data, LEVEL)).decode("ascii")
    return dict(number=number, offset=number * PIECE, length=len(data), sha256=_sum(data), data=sent)


def _piece(path: str, number: int) -> bytes:
    with naming(path), open(path, "rb") as file:
        length = length_of(number, os.fstat(file.fileno()).st_size)
        data = os.pread(file.fileno(), length, number * PIECE)
    if len(data) != length:
        raise HeteroError(f"piece {number} of it has {len(data)} bytes of {length}", path, "check the disk")
    return data


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _is_zero(data: bytes) -> bool:
    return data.count(0) == len(data)


def wanted(path: str, has: Mapping[int, str]) -> list[int]:
    """Return the numbers of the pieces that a copy of a file lacks, or has with other data.

    :param has: {number: sum} of the pieces that the copy has.
    """
    lacks = set(numbers(path)).difference(has)
    size = size_of(path)
    other = {number for number in has if number * PIECE < size and _sum(_piece(path, number)) != has[number]}
    return sorted(lacks | other)


def digest(path: str) -> str:
    """Return a sum of a whole file: sha256 of its length and of the number and the sha256 of each piece with data.

    Files of the same length and data have the same one, wherever they have holes, which need not be read.
    """
    whole = hashlib.sha256(str(size_of(path)).encode())
    for number in numbers(path):
        data = _piece(path, number)
        if not _is_zero(data):
            whole.update(f" {number} {_sum(data)}".encode())
    return whole.hexdigest()


def begin(path: str, size: int) -> dict[int, str]:
    """Make the empty copy of a file of that size, or go on with one; return {number: sum} of the pieces that it has.

    What it has is read: half a piece, which a process that was killed left, has another sum than its source.
    """
    with naming(path):
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(path, flags, 0o600)
        try:
            if os.fstat(file).st_size != size:  # new, or that of a source which was another one
                os.ftruncate(file, 0)
                os.ftruncate(file, size)
                os.fsync(file)
        finally:
            os.close(file)
        sync_folder(os.path.dirname(path))
    return {number: _sum(_piece(path, number)) for number in numbers(path)}


def write(path: str, piece: Mapping[str, Any]) -> None:
    """Write a piece of a copy, as `read` returned it, to the disk, and read it back.

    :raises HeteroError: it is not what was sent, or the disk is full; of the copy nothing else was changed.
    """
    number = int(piece["number"])
    data = _data(path, piece, length_of(number, size_of(path)))
    start = number * PIECE
    with naming(path), open(path, "r+b") as file:
        # what lies there does not go by itself where the source has zeros
        had = any(first < start + len(data) for first, _end in _first_extent(file.fileno(), start))
        for first, end in [(0, len(data))] if had else _parts(data):
            _write_all(file.fileno(), memoryview(data)[first:end], start + first)
        os.fsync(file.fileno())
    if _sum(_piece(path, number)) != piece["sha256"]:
        raise HeteroError(f"piece {number} reads back otherwise than it was written", path, "check the disk")


def _write_all(file: int, data: memoryview, offset: int) -> None:
    while data:  # a file system that fills up writes some of it first
        done = os.pwrite(file, data, offset)
        data, offset = data[done:], offset + done


def _data(path: str, piece: Mapping[str, Any], length: int) -> bytes:
    """Return the data of a piece; raise HeteroError where it is not what was sent, or there is no room for it."""
    data, folder = b"", os.path.dirname(path)
    with suppress(ValueError, zlib.error):
        packed = base64.b64decode(str(piece["data"]), validate=True)
        data = zlib.decompressobj().decompress(packed, length + 1)
    is_it = (piece["offset"], piece["length"]) == (int(piece["number"]) * PIECE, length)
    if not is_it or len(data) != length or _sum(data) != piece["sha256"]:
        raise HeteroError(OTHER.format(number=piece["number"]), path, AGAIN)
    if not _is_zero(data):
        must_have_room(folder, length)
    return data


def must_be(path: str, source: str) -> None:
    """Raise HeteroError where a copy is not its source, whose `digest` this is."""
    own = digest(path)
    if own != source:
        raise HeteroError(CHANGED.format(own=own[:12], source=source[:12]), path, RESUME)


def _first_extent(file: int, start: int) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of the first part of an open file from a byte on that is no hole, if there is one."""
    with suppress(OSError):
        found = os.lseek(file, start, os.SEEK_DATA)
        yield found, os.lseek(file, found, os.SEEK_HOLE)


def _parts(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of each run of blocks that are not all zero."""
    begin, zeros = None, bytes(BLOCK)
    for at in range(0, len(data), BLOCK):
        block = data[at : at + BLOCK]
        if block == zeros[: len(block)]:
            if begin is not None:
                yield begin, at
            begin = None
        elif begin is None:
            begin = at
    if begin is not None:
        yield begin, len(data)


def must_have_room(folder: str, needed: int) -> None:
    """Raise HeteroError where a folder's file system has no room for a copy of so many bytes."""
    with naming(folder):
        if spare(folder) < needed:
            raise _no_room(folder, needed)


def _no_room(folder: str, needed: int) -> HeteroError:
    return HeteroError(ROOM.format(there=spare(folder) >> 20, needed=-(-needed >> 20)), folder, FREE)
