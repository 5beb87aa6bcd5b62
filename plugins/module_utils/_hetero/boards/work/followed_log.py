# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A console's log that is read as it grows, in lines a terminal can print; also where another takes its place."""

from __future__ import annotations

import os
from typing import BinaryIO

from ...drivers.boot import blame

#: Bytes of the log that are shown of what was there before, at most, and bytes that one look reads.
BEFORE, MOST = 16384, 65536
#: Bytes of a line without an end after which it is shown as one: as long as a line is shown.
LONGEST = blame.CONSOLE_WIDTH


class FollowedLog:
    """What a log says from a byte on. A log that does not exist yet is awaited.

    :param start: the byte; of more than BEFORE bytes that are there, the last ones are read.
    :param asked_by: the address whose questions for the board's ssh host key are left out.
    """

    def __init__(self, path: str, start: int, asked_by: str | None) -> None:
        self._path, self._asked_by = path, asked_by
        self._left, self._within = b"", False
        self._file = self._opened()
        if self._file:
            end = self._file.seek(0, os.SEEK_END)
            first = start if start <= end else 0
            begin = max(first, end - BEFORE)
            self._file.seek(begin)
            if begin > first:
                self._file.readline()  # the end of a line

    def lines(self) -> list[str]:
        """Return the lines that were added since the last look; one without an end once nothing is added to it."""
        added = self._file.read(MOST) if self._file else b""
        if not added and self._is_another():
            self.close()
            self._file, self._within = self._opened(), False
            added = self._file.read(MOST) if self._file else b""
        text = self._left + added
        whole, self._left = (text, b"") if not added else self._split(text)
        lines = blame.lines_of(whole.decode("utf-8", "replace"), self._within)
        self._within = not whole.endswith(b"\n") if whole else self._within
        return blame.readable(lines, self._asked_by)

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()
            self._file = None

    @staticmethod
    def _split(text: bytes) -> tuple[bytes, bytes]:
        """Return (whole lines, the beginning of the last one, with a carriage return where it is behind one)."""
        end = max(text.rfind(b"\n") + 1, text.rfind(b"\r"))
        return (text[:end], text[end:]) if len(text) - end < LONGEST else (text, b"")

    def _opened(self) -> BinaryIO | None:
        try:
            return open(self._path, "rb")
        except OSError:
            return None

    def _is_another(self) -> bool:
        """Return whether the log's place has another file now, or it became shorter."""
        try:
            there = os.stat(self._path)
        except OSError:
            return False
        if not self._file:
            return True
        mine = os.fstat(self._file.fileno())
        return (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino) or there.st_size < self._file.tell()
