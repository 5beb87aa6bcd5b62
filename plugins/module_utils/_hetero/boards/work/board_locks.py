# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The locks of the boards that a verb works on: taken in one order, each held until the work on its board lets go."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Callable, Iterable

from ...core import end_requests
from ...core.errors import HeteroError
from ...core.locks import lock
from ..evidence.changed_addresses import listed_once

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from .board_work import BoardWork


def locked(
    works: Iterable[BoardWork], verb: str, deadline: Deadline, ends: bool = False, stays: bool = False
) -> ExitStack:
    """Return an ExitStack that holds the locks of all boards; a lock may be released earlier (BoardWork.let_go).

    Locks are taken from the lowest id on, so that two calls never wait for each other. A board whose lock another
    process holds until the deadline fails, and so does one that another instance has by now; the others go on. Locks of
    those are released once all are taken, for only until the first release it counts whether somebody still waits for
    this verb. Check mode takes no locks.

    :param ends: whether the verb ends the boards' instances by their tenant's or an operator's word, so that who waits
        for their boots need not go on.
    :param stays: the same for one that stops them, and leaves them claimed.
    """
    stack = ExitStack()
    refused: list[BoardWork] = []
    works = sorted(works, key=lambda work: work.board.id)
    with ExitStack() as asked:
        for work in works if ends or stays else ():
            _ask_to_end(work, asked, stays)
        for work in [work for work in works if not work.change.check]:
            stack.callback(work.let_go)
            _do(work, partial(_lock, work, verb, deadline), refused)
        with listed_once():
            for work in [work for work in works if work not in refused]:
                _do(work, work.read, refused)
    for work in refused:
        work.let_go()
    return stack


def _do(work: BoardWork, step: Callable[[], None], refused: list[BoardWork]) -> None:
    try:
        step()
    except HeteroError as error:
        work.fail(None, error, **error.facts)
        refused.append(work)


def _ask_to_end(work: BoardWork, stack: ExitStack, stays: bool) -> None:
    """Ask who has the board's lock to wait no longer for the boot of its instance, until `stack` ends."""
    if work.wanted and not work.change.check:
        request = end_requests.EndRequest(work.wanted, work.created, stays)
        stack.enter_context(end_requests.asked(work.proxy.config.run_folder, work.board.name, request))


def _lock(work: BoardWork, verb: str, deadline: Deadline) -> None:
    def waiting(text: str) -> None:
        work.say("wait", text)

    proxy = work.proxy
    work.record = proxy.store.record(work.board.id)  # lines that are written while waiting name the board's instance
    work.hold(lock(proxy.config.run_folder, work.board.name, verb, proxy.actor, deadline, waiting))
