# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board for as long as a block lasts, or until another process of the same job gives it back."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys

from . import cancelled, endings
from .board import Board, private_folder
from .endings import NoBoard
from .keeper import Keeper


@contextlib.contextmanager
def held(request):
    """Take a board for the block, and give it back after it, whatever ends the block or this process.

    :raises NoBoard: there is none, and why.
    """
    with _alone(request):
        keeper = Keeper(request)
        board, is_none = Board(request, keeper.watch), False
        try:
            board.take()
            yield board
        except NoBoard:
            is_none = not board.instances
            raise
        finally:
            with cancelled.unheard():
                if not is_none:  # of a playbook that was cut off it is not known
                    _give_back(board)
                keeper.release()


def taken(request):
    """Take a board, which another process of this job gives back; one that was cut off meanwhile is given back here.

    One that the job has already stays whatever happens, as it may be in use: only `give-back` ends it.
    """
    board = Board(request)
    keeps = board.is_taken
    try:
        return board.take(keeps)
    except NoBoard:
        raise
    except BaseException:
        if not keeps:
            with cancelled.unheard():
                _give_back(board)
        raise


def _give_back(board):
    """Give it back; where that fails it is said, and is no fault of the job."""
    error = board.give_back()
    if error:
        name = board.request.name
        sys.stderr.write(f"board: {name} was not given back: {error.why}\nIts lease ends it at the latest.\n")


@contextlib.contextmanager
def _alone(request):
    """Have one block of a name at a time on this machine: of two the first one to end would end both's board."""
    private_folder(request.state)
    with open(f"{request.folder}.lock", "a", encoding="ascii") as lock:
        if not _is_locked(lock):
            why = f"{request.name} is the board of another `board run`: give each a name of its own (--name)"
            raise NoBoard(endings.REQUEST, why)
        try:
            private_folder(request.folder)
            yield
        finally:
            os.unlink(lock.name)


def _is_locked(lock):
    """Lock a file; return False where another process has it, or has just removed it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.stat(lock.name), os.fstat(lock.fileno()))
    except OSError:
        return False
