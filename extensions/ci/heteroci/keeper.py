# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that gives a board back where the job's own was killed, which can do nothing itself then.

It hears the other by a pipe. That ends when the other does, whatever ended it: where nothing was said before that the
board was given back, this process gives it back. Until then nobody else has the board's lock (held.py), so a job that
is tried again at once waits for that, and does not lose what it gets.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys

from . import cancelled
from .board import Board, Request, lock_of
from .endings import say
from .playbooks import GRACE

#: Variables by which runners find the processes of a job that is over, to end them (GitHub Actions, Jenkins).
FOUND_BY = ("RUNNER_TRACKING_ID", "BUILD_ID", "JENKINS_NODE_COOKIE", "JENKINS_SERVER_COOKIE", "HUDSON_COOKIE")


class Keeper:
    """The other end: a process that is told what this one does. At the end of the block it has ended: it gives the
    board back where it was not told that this is settled.

    :param request: of the board.
    :param lock: the file of the board's lock, which both processes have.
    :param keeps: whether the board stays, because the job had it before, and only a playbook is ended.
    """

    def __init__(self, request, lock, keeps=False):
        environ = {name: value for name, value in os.environ.items() if name not in FOUND_BY}
        said = [json.dumps(vars(request)), "keeps" if keeps else "", str(lock.fileno())]
        # its own words go to a file: a runner would wait for the end of whoever has the job's output open
        path = os.path.join(request.folder, "keeper.log")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log, cancelled.deferred():
            self._process = subprocess.Popen(
                [sys.executable, os.path.dirname(os.path.abspath(__file__)), "keeper", *said],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environ,
                start_new_session=True,
                pass_fds=[lock.fileno()],
                bufsize=0,  # nothing is kept for a process that has ended
            )

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self._process.stdin.close()
        self._process.wait()

    def watch(self, process):
        """Tell which playbook runs: its process's id, or None."""
        self._say(f"playbook {process or 0}")

    def settled(self):
        """Tell that there is nothing to be given back any more."""
        self._say("done")

    def _say(self, line):
        # one that was ended costs no job its board: its lease ends in any case
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n".encode())


def unlock(path, handle):
    """Remove the file of a lock that this process has, unless another one has removed it, and a third one has made its
    own since.
    """
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.stat(path), os.fstat(handle)):
            os.unlink(path)


def main():
    """Keep the board of a request; no signal ends that."""
    with cancelled.unheard():
        return _kept()


def _kept():
    """Hear all lines, then give the board back, unless the last one says that it was; return the exit code."""
    said, keeps, lock, playbook, handle = sys.argv[1], bool(sys.argv[2]), int(sys.argv[3]), None, None
    request, is_settled = Request(**json.loads(said)), False
    for line in sys.stdin:
        word, _blank, number = line.strip().partition(" ")
        if word == "done":
            is_settled = True
            continue
        if handle is not None:
            os.close(handle)
        playbook, handle = int(number), None
        if playbook:
            with contextlib.suppress(OSError):
                handle = os.pidfd_open(playbook)
    if is_settled:
        unlock(lock_of(request), lock)  # the other one may have been killed since
        return 0
    if handle is not None:
        _stop(playbook, handle)
    error = None if keeps else Board(request).give_back()
    say(f"{request.name}: {error or ('stays' if keeps else 'given back')}\n")
    unlock(lock_of(request), lock)
    return 1 if error else 0


def _stop(playbook, handle):
    """End a playbook, which leads the group of its processes, if it still runs."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if select.select([handle], [], [], 0)[0]:
            return  # its id may be another's by now
        with contextlib.suppress(ProcessLookupError):
            os.killpg(playbook, number)
        select.select([handle], [], [], GRACE)
