# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module that goes on by itself: the call returns at once, the result goes to a job file.

The job file is locked by the worker as long as it lives, so whoever reads it knows without a process id whether more
will come. Ansible's own async does the like, but costs two file transfers and two more module calls, which a boot would
have to wait for.
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

from .errors import FULL, HeteroError

#: Job files that nobody fetched (the play was killed) are removed after a day; never one whose worker lives, however
#: old the clock makes it.
KEEP = 86400
#: Bytes of a job file that are written before the work begins: one page, for the words that its result found no room.
ROOM = 4096


def detach(run_folder: str) -> tuple[str, int] | None:
    """Fork. In the caller's process, returns the path of the job file and the worker's process id; in the worker, None.

    What the worker prints lands in the job file. It must not import anything any more: Ansible removes the module's
    files when the first process ends.
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
    """End the worker with its result; nothing that belongs to the first process is cleaned up."""
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
    """A file system that is full is noticed before anything is done, not when it is to be told."""
    try:
        os.write(job, b" " * ROOM)
        os.lseek(job, 0, os.SEEK_SET)
    except OSError:
        os.close(job)
        os.unlink(path)
        raise


def _clean(folder: str) -> None:
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        try:
            if time.time() - os.path.getmtime(path) > KEEP:
                _remove(path)
        except FileNotFoundError:
            continue


def _remove(path: str) -> None:
    with open(path, encoding="utf-8") as job, suppress(BlockingIOError):
        fcntl.flock(job, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
