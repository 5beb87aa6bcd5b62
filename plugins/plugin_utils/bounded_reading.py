# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bound on what connection plugins read of a node. They start a program (ssh, chroot), and keep all that it prints
until it ends: a node that prints without end would fill the controller's memory.

Those plugins are Ansible's own, and have no such option. So the programs that they start are bounded here, whatever
the plugin. What an answer means is not known here.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import selectors
import subprocess
from typing import Any, Callable, Iterator

#: Most bytes that are read at once of a pipe: what Linux has for one (pipe(7)).
PIECE = 65536


class Endless(BaseException):
    """A program printed more than is read, and was killed. It is no Exception, because connections that try again catch
    those.
    """


@contextlib.contextmanager
def at_most(most: int) -> Iterator[None]:
    """Raise Endless in the block as soon as a program that is started in it has printed more than `most` bytes, on
    standard output and standard error together, through pipes that the block reads as bytes.
    """

    class Bounded(_Bounded):
        bound = most

    usual = subprocess.Popen
    subprocess.Popen = Bounded  # type: ignore[misc]
    try:
        yield
    finally:
        subprocess.Popen = usual  # type: ignore[misc]


class _Bounded(subprocess.Popen):
    """A program, of which no more is read than `bound` bytes."""

    bound: int

    def __init__(self, *words: Any, **how: Any) -> None:
        super().__init__(*words, **how)
        self._read = 0
        for name in ("stdout", "stderr"):
            file = getattr(self, name)
            if isinstance(file, io.BufferedReader):  # others are files of text
                setattr(self, name, io.BufferedReader(_Counted(file.detach(), self._count)))

    def _count(self, size: int) -> None:
        self._read += size
        if self._read > self.bound:
            self.kill()
            raise Endless

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Return what the program prints until it ends. Python's own function reads around its files."""
        files = (self.stdin, self.stdout, self.stderr)
        if timeout is not None or any(isinstance(file, io.TextIOBase) for file in files):
            return super().communicate(input, timeout)
        said: dict[Any, list[bytes]] = {file: [] for file in (self.stdout, self.stderr) if file is not None}
        self._exchange(input or b"", said)
        for file in said:
            file.close()
        self.wait()
        both = [None if file is None else b"".join(said[file]) for file in (self.stdout, self.stderr)]
        return both[0], both[1]

    def _exchange(self, data: bytes, said: dict[Any, list[bytes]]) -> None:
        """Write `data` to the program, and read each of its outputs to its end."""
        left = memoryview(data)
        with selectors.DefaultSelector() as selector:
            for file in said:
                selector.register(file, selectors.EVENT_READ)
            if self.stdin is not None:
                selector.register(self.stdin, selectors.EVENT_WRITE)
            while selector.get_map():
                for key, _event in selector.select():
                    if key.fileobj is self.stdin:
                        left = self._write(left)
                        if not left:
                            selector.unregister(self.stdin)
                            self.stdin.close()
                        continue
                    piece = os.read(key.fd, PIECE)
                    self._count(len(piece))
                    said[key.fileobj].append(piece)
                    if not piece:
                        selector.unregister(key.fileobj)

    def _write(self, data: memoryview) -> memoryview:
        """Write as much as a pipe takes at once; return what is left, which is nothing if the program reads no more."""
        try:
            return data[os.write(self.stdin.fileno(), data[: select.PIPE_BUF]) :]  # type: ignore[union-attr]
        except BrokenPipeError:
            return data[:0]


class _Counted(io.RawIOBase):
    """A file of which each piece that is read is counted."""

    def __init__(self, file: io.RawIOBase, count: Callable[[int], None]) -> None:
        self._file, self._count = file, count

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()

    def readinto(self, buffer: Any) -> int | None:
        size: int | None = self._file.readinto(buffer)
        self._count(size or 0)
        return size

    def close(self) -> None:
        self._file.close()
        super().close()
