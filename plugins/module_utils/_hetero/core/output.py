# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what a program prints, up to a bound: programs pass on the output of boards and PDUs, which may be endless.

A program that prints more is not waited for; its caller kills it, with all that it started.
"""

from __future__ import annotations

import os
import selectors
import subprocess
from typing import Callable

from .deadline import Deadline
from .errors import HeteroError, TimedOut

#: Most bytes that one program may print, output and errors together. The longest useful output is the list of an
#: image's files: a million names of 60 bytes.
MOST = 64 << 20
#: Most bytes of a program that passes on what a board or a PDU says: a kernel's log is 1 MiB at most by default
#: (CONFIG_LOG_BUF_SHIFT, and what each processor adds), a PDU's list of outlets some KB.
MOST_OF_OTHERS = 4 << 20
#: Bytes read and written at once: what a pipe holds (pipe(7)).
CHUNK = 1 << 16
#: Seconds between two calls of `look` while a program runs.
LOOK = 0.3


class TooMuch(HeteroError):
    """A program printed more than the bound; the beginning is in the fact `said`."""


def collect(
    process: subprocess.Popen[bytes],
    deadline: Deadline,
    stdin: str = "",
    most: int = MOST,
    look: Callable[[int], None] | None = None,
) -> tuple[str, str]:
    """Return (standard output, standard error) of a process that runs to its end, as Popen.communicate has them.

    :param process: with pipes of bytes.
    :param most: bytes that are kept.
    :param look: called with the process id every LOOK seconds while the process runs.
    :raises TimedOut: the deadline passed; what was printed is in the fact `said`. The process still runs.
    :raises TooMuch: the process printed more than `most` bytes. It still runs.
    """
    said = (bytearray(), bytearray())
    try:
        _pass_on(process, deadline, memoryview(stdin.encode("utf-8", "surrogateescape")), most, look, said)
        process.wait(deadline.left)
    except subprocess.TimeoutExpired as error:
        words = text(said[1]) + text(said[0])
        raise TimedOut(f"did not end within {deadline.seconds:g} s", said=words) from error
    return text(said[0]), text(said[1])


def _pass_on(
    process: subprocess.Popen[bytes],
    deadline: Deadline,
    left: memoryview,
    most: int,
    look: Callable[[int], None] | None,
    said: tuple[bytearray, bytearray],
) -> None:
    """Write a process's input and read its output until it has closed all of its pipes."""
    looked = Deadline(LOOK)
    with selectors.PollSelector() as pipes:
        for pipe, kept in zip((process.stdout, process.stderr), said):
            if pipe is not None:
                pipes.register(pipe, selectors.EVENT_READ, (pipe, kept))
        if process.stdin is not None and not process.stdin.closed:
            os.set_blocking(process.stdin.fileno(), False)
            pipes.register(process.stdin, selectors.EVENT_WRITE, (process.stdin, None))
        while pipes.get_map():
            if deadline.passed:
                raise subprocess.TimeoutExpired(process.args, deadline.seconds)
            for key, _events in pipes.select(min(deadline.left, LOOK)):
                pipe, kept = key.data
                if kept is None:
                    left = _written(key.fd, left)
                    done = not left
                else:
                    data = os.read(key.fd, CHUNK)
                    kept.extend(data)
                    done = not data
                if done:
                    pipes.unregister(pipe)
                    pipe.close()
            if sum(map(len, said)) > most:
                first = "".join(text(kept[:1000]) for kept in said)
                raise TooMuch(f"printed more than {most >> 10} KiB", said=first)
            if look is not None and looked.passed:
                look(process.pid)
                looked = Deadline(LOOK)


def _written(pipe: int, left: memoryview) -> memoryview:
    """Write to a pipe; return what is left to write, which is nothing where the reader has closed the pipe."""
    try:
        return left[os.write(pipe, left[:CHUNK]) :]
    except BrokenPipeError:
        return left[:0]


def text(data: bytes | bytearray) -> str:
    """Return a program's bytes as text, with all ends of lines as newlines."""
    return bytes(data).decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
