# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decompress xz with a limit of memory, which lzma.open does not take: a file of 100 KB may ask for 4 GiB of it."""

from __future__ import annotations

import io
import lzma
import os
from typing import IO

from ..files.walk import CHUNK

#: Bytes for a decompressor; what xz -9 writes needs 65 MiB.
MOST_MEMORY = 256 << 20


def open_xz(file: IO[bytes], _mode: str = "rb") -> io.BufferedReader:
    """Return the content of an xz file as a file. Errors are those of module lzma.

    :param file: is read from its beginning, and not closed.
    """
    return io.BufferedReader(_Xz(file), CHUNK)


class _Xz(io.RawIOBase):
    """One or more streams of xz, which begin again for each step back."""

    def __init__(self, file: IO[bytes]) -> None:
        self._source = file
        self._begin()

    def _begin(self) -> None:
        self._source.seek(0)
        self._at = 0
        self._stream = _new()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        to = offset + (self._at if whence == os.SEEK_CUR else 0)
        if to < self._at:
            self._begin()
        while self._at < to and self.read(min(CHUNK, to - self._at)):
            pass
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._some(len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _some(self, size: int) -> bytes:
        """Return some bytes, none at the end."""
        data = b""
        while not data:
            if bool(self._stream.eof):  # pylint takes the attribute for a constant
                begin = self._stream.unused_data.lstrip(b"\0")  # padding between streams
                while not begin:
                    more = self._source.read(CHUNK)
                    if not more:
                        return b""
                    begin = more.lstrip(b"\0")
                self._stream = _new()
                data = self._stream.decompress(begin, size)
                continue
            hungry = bool(self._stream.needs_input)
            more = self._source.read(CHUNK) if hungry else b""
            if hungry and not more:
                raise EOFError("the compressed file ends before its end mark")
            data = self._stream.decompress(more, size)
        return data


def _new() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
