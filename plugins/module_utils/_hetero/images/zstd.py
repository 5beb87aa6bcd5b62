# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decompress zstd by its own program, because Python knows it only since 3.14."""

from __future__ import annotations

import os
import subprocess
from typing import IO, Iterator, cast

from ..core.deadline import Deadline
from ..core.errors import BadInput, HeteroError
from ..core.readiness import readable
from ..core.this_node import THIS_NODE
from ..files.scratch import fill, scratch
from ..files.walk import CHUNK, check_time

#: First bytes of a frame (RFC 8878).
MAGIC = b"\x28\xb5\x2f\xfd"


def decompressed(file: IO[bytes], folder: str, limit: int, deadline: Deadline) -> IO[bytes]:
    """Return the content of a zstd file as a file without a name, which is gone when it is closed.

    :param folder: where there is room for it.
    :param limit: bytes that it may have.
    :raises BadInput: it is damaged, or larger.
    :raises TimedOut: the deadline passed.
    """
    plain = scratch(folder)
    try:
        os.lseek(file.fileno(), 0, os.SEEK_SET)  # the file's own buffer does not count for zstd
        with subprocess.Popen(
            ["zstd", "--decompress", "--stdout", "--quiet"],
            stdin=file.fileno(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                fill(plain, _printed(process, limit, deadline))
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            raise BadInput(f"is cut short or damaged (zstd ended with {process.returncode})", None, "fetch it again")
        return plain
    except FileNotFoundError as error:
        plain.close()
        what = f"is compressed by zstd, and program zstd is not installed on {THIS_NODE}"
        raise HeteroError(what, None, "install package zstd, or run the set-up playbook") from error
    except BaseException:
        plain.close()
        raise


def _printed(process: subprocess.Popen[bytes], limit: int, deadline: Deadline) -> Iterator[bytes]:
    """Yield what zstd prints, up to the limit and until the deadline."""
    size, printed = 0, cast("IO[bytes]", process.stdout).fileno()
    while True:
        check_time(deadline)
        if not readable([printed], deadline.left):
            continue
        chunk = os.read(printed, CHUNK)
        if not chunk:
            return
        size += len(chunk)
        if size > limit:
            what = f"is larger than the {limit >> 20} MiB there is room for"
            raise BadInput(what, None, "make room, or the image smaller", room=limit)
        yield chunk
