# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board for as long as a block lasts, or until another process of the same job gives it back.

One process at a time works on a name on this machine. The lock's file says which: its verb, its id, and when it began.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import signal
import time

from . import cancelled, endings
from .board import Board, lock_of, must_be_a_boards
from .endings import NoBoard, as_told, say
from .keeper import Keeper, unlock
from .names import began, goes_on
from .private import must_be_own, private_folder

RUN, TAKE, GIVE_BACK = "run", "take", "give-back"
#: Seconds between two looks at a lock that another process has.
LOOKS = 0.1
#: What a `run` is told whose name is that of a board that later steps of the job need.
IS_KEPT = (
    "{name} is the board that this job has by `board take`, or by its runner's hook, and would end with this: log in "
    "to it ($HETERO_SSH), give it back first (board give-back), or tell the two apart (--part 2)"
)


@contextlib.contextmanager
def held(request):
    """Take a board for the block, and give it back after it, whatever ends the block or this process.

    :raises NoBoard: there is none, and why; or a `take` has it, which it would end under the job's later steps.
    """
    with _alone(request, RUN) as lock:
        if Board(request).is_kept:
            raise NoBoard(endings.REQUEST, IS_KEPT.format(name=request.name))
        with _keeper(request, lock) as keeper:
            board, is_none = Board(request, keeper.watch), False
            try:
                board.take()
                yield board
            except NoBoard:
                is_none = not board.instances
                raise
            finally:
                with cancelled.unheard():
                    if not (is_none or keeper.is_forked):  # of a playbook that was cut off it is not known
                        _give_back(board)
                    keeper.settled()


def taken(request, tell):
    """Take a board, which another process of this job gives back; where this one is ended or killed before it has it
    and has told of it, nobody gets it.

    One that the job has already stays whatever happens, as it may be in use: only `give-back` ends it.

    :param tell: tells the job's other processes of the board; where that fails (OSError), nobody would give it back.
    """
    with _alone(request, TAKE) as lock:
        keeps = Board(request).is_taken
        with _keeper(request, lock, keeps) as keeper:
            board, is_settled = Board(request, keeper.watch), keeps
            try:
                board.take(keeps)
                board.keep()
                tell(board)
                cancelled.heeded()
                is_settled = True
            except NoBoard:
                is_settled = True
                raise
            finally:
                with cancelled.unheard():
                    if not is_settled:
                        _give_back(board)
                    keeper.settled()
    return board


def given_back(request):
    """Give back what was taken, also what a process that is still asking for it would get; return why that failed as a
    NoBoard, None where it did not, and where nothing was taken.
    """
    try:
        if not os.path.isdir(request.state):
            return None
        with _alone(request, GIVE_BACK) as lock:
            if not os.path.isdir(request.folder):
                return None
            with cancelled.unheard(), _keeper(request, lock) as keeper:
                error = Board(request, keeper.watch).give_back()
                keeper.settled()
                return error
    except (NoBoard, OSError) as error:
        return as_told(error)


def said_of(name, error):
    """Return the words of what could not be given back."""
    lease = "" if error.ending == endings.REQUEST else "\nIts lease ends it at the latest."
    return f"{name} was not given back: {error.why}{lease}"


def _give_back(board):
    """Give it back; where that fails it is said, and is no fault of the job."""
    error = board.give_back()
    if error:
        say(f"board: {said_of(board.request.name, error)}\n")


def _keeper(request, lock, keeps=False):
    """Return a keeper of a board; the folder that is made for it is removed where there is none."""
    must_be_a_boards(request.folder)
    is_new = not os.path.isdir(request.folder)
    private_folder(request.folder)
    try:
        return Keeper(request, lock, keeps)
    except OSError:
        if is_new:
            shutil.rmtree(request.folder, ignore_errors=True)
        raise


@contextlib.contextmanager
def _alone(request, verb):
    """Be the one process of this machine that works on a name.

    :raises NoBoard: it is the board of a `board run`: of two the first one to end would end both's.
    """
    private_folder(request.state)
    must_be_own(request.state)
    lock, job = None, os.getpid()
    while lock is None:
        lock = _locked(request, verb)
    with lock:
        try:
            with contextlib.suppress(OSError):  # no space: it is had all the same, and gives back what fills the disk
                os.ftruncate(lock.fileno(), 0)
                os.write(lock.fileno(), f"{verb} {job} {began(job)}\n".encode())
            yield lock
        finally:
            if os.getpid() == job:  # and no process that a test has forked
                unlock(lock_of(request), lock.fileno())


def _locked(request, verb):
    """Return the file of a name's lock, once this process has it; None where that was removed meanwhile."""
    with contextlib.ExitStack() as opened:
        lock = opened.enter_context(_opened(request, verb))
        said = None
        while not _is_had(lock):
            said = _must_end(lock, request.name, verb, said)
            with cancelled.unheard() if verb == GIVE_BACK else cancelled.waits():
                time.sleep(LOOKS)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(lock.name), os.fstat(lock.fileno())):
                opened.pop_all()
                return lock
    return None


def _opened(request, verb):
    """Open the file of a name's lock. Where its folder can only be read any more, what it has is given back all the
    same: nobody takes anything there, and those who have the lock's file, or the key's, are seen.
    """
    path = lock_of(request)
    try:
        return open(path, "a+", encoding="ascii")
    except OSError as error:
        if verb != GIVE_BACK or error.errno not in (errno.EROFS, errno.EACCES):
            raise
        return open(path if os.path.exists(path) else os.path.join(request.folder, "key.pub"), encoding="ascii")


def _is_had(lock):
    """Have a lock, unless another process has it; return whether that could be done."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _must_end(lock, name, verb, before):
    """Say what is waited for; end a process that asks for what is to be given back.

    :param before: what the lock's file said before, of which nothing is to be said again; None at first.
    :return: what it says now: who has just got it may not have written that yet.
    """
    lock.seek(0)
    said = lock.read()
    if said == before:
        return said
    whose, pid, since = [*said.split(), "", "", ""][:3]
    if not goes_on(pid, since):  # killed: its keeper has the lock
        say(f"board: what an earlier process of {name} has left is given back first\n")
    elif RUN in (whose, verb) and whose != GIVE_BACK:
        why = f"{name} is the board of another `board {whose}`: give each a name of its own (--name, or HETERO_NAME)"
        raise NoBoard(endings.REQUEST, why)
    else:
        say(f"board: waits for the end of `board {whose}` of {name}\n")
        if (whose, verb) == (TAKE, GIVE_BACK) and began(pid) == since:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGTERM)
    return said
