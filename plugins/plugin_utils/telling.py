# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines for people during a task, by Ansible's own display."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import threading
import time
from typing import Iterator

from ansible.utils.display import Display

display = Display()

#: Seconds between two lines which say that something still goes on.
QUIET = 5.0
#: Seconds to the first of them, where nothing else is told meanwhile of work that a person waits for.
FIRST = 2.0


@contextlib.contextmanager
def told_while_it_lasts(what: str, first: float = QUIET) -> Iterator[None]:
    """Print "`what` has taken 5 s so far" every QUIET seconds during the block: a hung PDU may take a node a minute.

    :param first: seconds to the first line.
    """
    began, over = time.monotonic(), threading.Event()

    def goes_on() -> None:
        pause = first
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
    """Print a line, unless nobody reads the output.

    A thread of Ansible's main process writes it, which also takes the results of tasks. It would end at a broken pipe
    (`| head`), and the play would wait for ever.
    """
    if not nobody_reads():
        display.display(text)


def nobody_reads() -> bool:
    """Return whether the output of Ansible's process, the parent of a task's, is a pipe that nobody reads any more."""
    path = f"/proc/{os.getppid()}/fd/1"
    try:
        if not stat.S_ISFIFO(os.stat(path).st_mode):
            return False
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # not Linux, or it may not be looked at
        return False
    try:
        poll = select.poll()
        poll.register(pipe, 0)
        return any(event & select.POLLERR for _pipe, event in poll.poll(0))
    finally:
        os.close(pipe)
