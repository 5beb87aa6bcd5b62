# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module whose work goes on in the background: the call returns at once, and the result goes to a job file.

The worker locks the job file as long as it lives, so a reader knows without a process id whether more will come.
Ansible's own async would serve as well, but costs two file transfers and two more module calls, which delay a boot.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any, Mapping, NoReturn

from . import retention
from .errors import FULL, HeteroError

#: Bytes of a job file that are written before the work begins: one page. They are room for the message that a full file
#: system has no space for the result.
ROOM = 4096


def detach(run_folder: str) -> tuple[str, int] | None:
    """Fork; return (path of the job file, the worker's process id) in the caller's process, and None in the worker.

    What the worker prints goes to the job file. The worker must not import anything any more: Ansible removes the
    module's files when the first process ends.

    :raises HeteroError: the job file cannot be written; nothing was forked.
    """
    folder = os.path.join(run_folder, "jobs")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _clean(folder)
        job, path = tempfile.mkstemp(prefix="job-", suffix=".json", dir=folder)
        _make_room(job, path)
    except OSError as error:
        full = error.errno in FULL
        remedy = (
            f"free space on the file system of {run_folder}" if full else f"make {run_folder} writable for this user"
        )
        raise HeteroError(f"cannot be written ({error.strerror})", folder, remedy) from error
    fcntl.flock(job, fcntl.LOCK_EX)
    sys.stdout.flush()
    worker = os.fork()
    if worker:
        # The lock belongs to the open file, which the worker has too: it lasts until the worker ends.
        os.close(job)
        return path, worker
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(job, 1)
    os.dup2(job, 2)
    return None


def finish(result: Mapping[str, Any]) -> NoReturn:
    """Print the result and end the worker, without the clean-up (atexit) that belongs to the first process."""
    sys.stdout.flush()
    begin = os.lseek(1, 0, os.SEEK_CUR)  # behind what programs said
    try:
        _print(json.dumps(result))
    except OSError as error:
        os.ftruncate(1, ROOM)
        os.lseek(1, begin, os.SEEK_SET)
        what = f"what was done is done, and cannot be told: no room for it with the jobs ({error.strerror})"
        msg = f"{what}: free space on the file system of the node's run folder, then run this again"
        _print(json.dumps(dict(failed=True, msg=msg)).ljust(ROOM - begin - 1))
    os._exit(0)


def _print(text: str) -> None:
    left = memoryview(f"{text}\n".encode("utf-8", "surrogateescape"))
    while left:
        left = left[os.write(1, left) :]


def _make_room(job: int, path: str) -> None:
    """Write ROOM bytes into the job file, so that a full file system is noticed before any work is done."""
    try:
        os.write(job, b" " * ROOM)
        os.lseek(job, 0, os.SEEK_SET)
    except OSError:
        os.close(job)
        os.unlink(path)
        raise


def _clean(folder: str) -> None:
    """Remove the files of jobs that nobody fetches any more (the play was killed), and the oldest where all take much.

    The file of a worker that lives stays, whatever its age by the clock. Readers of a removed file have it open and
    read on.
    """
    found: list[tuple[float, int, str]] = []
    for name in os.listdir(folder):
        with suppress(FileNotFoundError):
            seen = os.stat(os.path.join(folder, name))
            found.append((seen.st_mtime, seen.st_blocks * 512, name))
    found.sort()
    too_many = retention.outgrown([size for _time, size, _name in found], retention.JOBS_BYTES)
    for number, (written, _size, name) in enumerate(found):
        age = time.time() - written
        if age > retention.JOBS_AGE or (number < too_many and age > retention.JOBS_FOLLOWED):
            with suppress(FileNotFoundError):
                _remove(os.path.join(folder, name))


def _remove(path: str) -> None:
    with open(path, encoding="utf-8") as job, suppress(BlockingIOError):
        fcntl.flock(job, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
