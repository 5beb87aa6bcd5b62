# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that gives a board back where the job's own was killed, which can do nothing itself then.

It hears the other by a pipe, and sees when that has ended, whatever ended it: where nothing was said before that the
board was given back, this process gives it back. Until then nobody else has the board's lock (held.py), so a job that
is tried again at once waits for that, and does not lose what it gets. The pipe's end alone would not tell: what a test
has forked below pytest has the pipe as well, and may go on.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time

from . import cancelled
from .board import LOG, Board, Request, lock_of
from .endings import say
from .names import UNKNOWN, began, goes_on
from .playbooks import GRACE, out_of_reach

#: Seconds between two looks at whether the job, or a playbook, has ended.
JOB_LOOKS, LOOKS = 1.0, 0.1


class Keeper:
    """The other end: a process that is told what this one does. At the end of the block it has ended: it gives the
    board back where it was not told that this is settled.

    :param request: of the board.
    :param lock: the file of the board's lock, which both processes have.
    :param keeps: whether the board stays, because the job had it before, and only a playbook is ended.
    """

    def __init__(self, request, lock, keeps=False):
        self._job, self._process, self._is_settled = os.getpid(), None, False
        self._board = Board(request)
        job = [str(self._job), began(self._job)]
        said = [json.dumps(vars(request)), "keeps" if keeps else "", str(lock.fileno()), *job]
        try:
            with open(_log(request.folder), "ab") as log, cancelled.deferred():
                self._process = subprocess.Popen(
                    [sys.executable, os.path.dirname(os.path.abspath(__file__)), "keeper", *said],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env=out_of_reach(os.environ),
                    start_new_session=True,
                    pass_fds=[lock.fileno()],
                    bufsize=0,  # nothing is kept for a process that has ended
                )
        except BaseException:  # below pytest, Ctrl-C that counts at the end of that block
            if self._process is not None:
                self.__exit__()
            raise

    @property
    def is_forked(self):
        """Return whether this is another process, which a test has forked: what the job has is not for it to end."""
        return os.getpid() != self._job

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        if self.is_forked:
            return
        self._say("over")
        self._process.stdin.close()
        with cancelled.unheard():  # the lock is this process's until then: below pytest Ctrl-C may be pressed again
            try:
                self._process.wait(GRACE if self._is_settled else None)
            except subprocess.TimeoutExpired:  # one that was stopped, say, and has nothing to do any more
                self._process.kill()
                self._process.wait()

    def watch(self, process):
        """Tell which playbook runs: its process's id, or None; and the board's key, which may soon be gone."""
        with contextlib.suppress(OSError):
            self._say(f"key {self._board.remember()}")
        self._say(f"playbook {process} {began(process)}" if process else "playbook")

    def settled(self):
        """Tell that there is nothing to be given back any more."""
        self._is_settled = True
        self._say("done")

    def _say(self, line):
        if self.is_forked:
            return
        # one that was ended costs no job its board: its lease ends in any case
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n".encode())


def _log(folder):
    """Open the file for a keeper's own words: a runner would wait for the end of whoever has the job's output open."""
    try:
        return os.open(os.path.join(folder, LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:  # such as a folder that can only be read any more
        return os.open(os.devnull, os.O_WRONLY)


def unlock(path, handle):
    """Remove the file of a lock that this process has, unless another one has removed it, and a third one has made its
    own since.
    """
    with contextlib.suppress(OSError):  # it has gone, or its folder can only be read any more
        if os.path.samestat(os.stat(path), os.fstat(handle)):
            os.unlink(path)
    fcntl.flock(handle, fcntl.LOCK_UN)  # also for what a test has forked, which has it as well


def main():
    """Keep the board of a request; no signal ends that."""
    with cancelled.unheard():
        return _kept()


def _kept():
    """Hear all lines, then give the board back, unless the last one says that it was; return the exit code."""
    said, keeps, lock, job, since = sys.argv[1], bool(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    request, playbook = Request(**json.loads(said)), []
    board = Board(request)
    for line in _lines(job, since):
        word, *playing = line.split()
        if word == "done":
            unlock(lock_of(request), lock)  # the other one may have been killed since
            return 0
        if word == "over":
            break
        if word == "key":
            with contextlib.suppress(OSError):  # it can be read later
                board.remember(" ".join(playing))
            continue
        playbook = [int(playing[0]), playing[1] if playing[1:] else ""] if playing else []
        if UNKNOWN in playbook:
            playbook[1] = began(playbook[0])
    if playbook:
        _stop(*playbook)
    error = None if keeps else board.give_back()
    say(f"{request.name}: {error or ('stays' if keeps else 'given back')}\n")
    unlock(lock_of(request), lock)
    return 1 if error else 0


def _lines(job, since):
    """Yield the lines that a process says, until it has ended.

    :param since: when it began (names.began); where that cannot be told, the pipe's end alone counts.
    """
    said, has_ended = "", False
    while True:
        if select.select([sys.stdin], [], [], 0 if has_ended else JOB_LOOKS)[0]:
            more = os.read(sys.stdin.fileno(), select.PIPE_BUF).decode()
            if not more:
                return
            *lines, said = (said + more).split("\n")
            yield from lines
        elif has_ended:
            return
        else:
            has_ended = not goes_on(job, since)


def _stop(playbook, since):
    """End a playbook, which leads the group of its processes, if it still runs.

    :param since: when it began; "" where it had ended before that could be told. Its id may be another's by now.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = None
        while goes_on(playbook, since) and (until is None or time.monotonic() < until):
            if since in (UNKNOWN, began(playbook)):
                try:
                    os.killpg(playbook, 0 if until else number)
                except ProcessLookupError:
                    return
                until = until or time.monotonic() + GRACE
            time.sleep(LOOKS)
