# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines for people during a task, by Ansible's own display."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
import time
from typing import Iterator

from ansible.utils.display import Display

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import job_watch

display = Display()

#: Seconds between two lines which say that something still goes on.
QUIET = 5.0
#: Seconds to the first of them of work that says nothing until it ends.
FIRST = 2.0
#: Whether nobody reads it any more; and by the id of Ansible's process the pipe that it had at the first look.
_nowhere, _held = threading.Event(), dict[int, int]()


@contextlib.contextmanager
def told_while_it_lasts(what: str) -> Iterator[None]:
    """Print "`what` has taken 2 s so far" after FIRST seconds of the block, and every QUIET seconds from then on: a
    hung PDU may take a node a minute.
    """
    began, over = time.monotonic(), threading.Event()

    def goes_on() -> None:
        pause = FIRST
        while not over.wait(pause):
            tell(f"{what} has taken {time.monotonic() - began:.0f} s so far")
            pause = QUIET

    teller = threading.Thread(target=goes_on, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def tell(text: str) -> None:
    """Print a line.

    Into a pipe it is written here. Else a thread of Ansible's main process writes it, which also takes the results of
    tasks: it would end where the reader of a pipe has gone (`| head`), and the play would wait for ever.
    """
    # of Ansible's process, the parent of a task's
    output = f"/proc/{os.getppid()}/fd/1"
    if not _is_pipe(output):
        display.display(text)
        return
    written = True
    try:
        _write(output, f"{text}\n".encode(errors="surrogateescape"))
    except PermissionError:  # another user made the pipe, as with `sudo -u slurm ansible-playbook … | tee FILE`
        written = False
    except OSError:  # nobody reads it any more
        pass
    display.display(text, log_only=written)


def is_read() -> bool:
    """Return whether somebody may read what is told: not where its reader has gone (`| head`).

    The pipe is held open from the first call on: Ansible's process may have another output since (prints_nowhere).
    """
    play = os.getppid()
    output = f"/proc/{play}/fd/1"
    if _nowhere.is_set():
        return False
    if play not in _held:
        if not _is_pipe(output):
            return True
        try:
            _held[play] = os.open(output, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:  # of one with a name
            return error.errno != errno.ENXIO
    return job_watch.is_read(_held[play])


def prints_nowhere() -> None:
    """Note that nobody reads what Ansible's process prints, which has another output from now on: the processes of its
    next tasks know that (is_read).
    """
    _nowhere.set()


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:  # not Linux, or it may not be looked at
        return False


def _write(path: str, data: bytes) -> None:
    pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)  # else one with a name is waited for until somebody reads it
    try:
        os.set_blocking(pipe, True)
        while data:
            data = data[os.write(pipe, data) :]
    finally:
        os.close(pipe)
