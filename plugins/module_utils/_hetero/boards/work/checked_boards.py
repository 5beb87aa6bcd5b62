# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Free boards that are being checked when a request finds too few others: have their checks end, and wait for that.

verbs/checks.py looks whether anybody asks (core/end_requests.py), also while the board boots, and frees the board.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Iterable

from ...core import end_requests, locks
from ...site import board_states

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from ...site.boards_file import Board
    from ..records.board_records import Record
    from ..records.proxy import Proxy

#: Seconds that a request waits for the end of a check: a piece of a test, and a PDU that is slow.
LONGEST = 90.0
#: Seconds between two looks.
TICK = 0.2
#: Why a board whose check was killed is given to nobody. The role's timer runs the command each minute.
KILLED = "its check was killed: hetero reap switches it off and frees it within a minute"
WAITS = "{name} waits for the end of this board's check"


def given_way(proxy: Proxy, request: str, boards: Iterable[Board], count: int, deadline: Deadline) -> bool:
    """Have the checks of some boards end; return whether one of the boards left its check before the deadline.

    :param request: the name of the instance or request that wants them.
    :param count: how many it wants.
    """
    folder = proxy.config.run_folder
    found = all_of(proxy, boards)[:count]
    with ExitStack() as asked:
        for board in found:
            asked.enter_context(end_requests.asked(folder, board.name, end_requests.EndRequest(request, ())))
            proxy.store.event(board.id, "wait", WAITS.format(name=request), instance=request)
        while found and not deadline.passed:
            is_held = any(locks.held_by_another(folder, board.name) for board in found)
            if not all(_is_checked(proxy.store.record(board.id)) for board in found):
                return True
            if not is_held:
                return False  # their checks were killed meanwhile
            deadline.nap(TICK)
    return False


def all_of(proxy: Proxy, boards: Iterable[Board]) -> list[Board]:
    """Return those of some boards that are being checked, and give way."""
    return [one for one in boards if gives_way(proxy, proxy.store.record(one.id))]


def was_killed(proxy: Proxy, record: Record) -> bool:
    """Return whether a board's check was killed: it is nobody's, and given to nobody until it is off and free."""
    return _is_checked(record) and not locks.held_by_another(proxy.config.run_folder, f"board{record.board}")


def gives_way(proxy: Proxy, record: Record) -> bool:
    """Return whether a board is being checked, and is free as soon as a request wants it. One whose check was killed is
    not: nobody would hear.
    """
    return _is_checked(record) and locks.held_by_another(proxy.config.run_folder, f"board{record.board}")


def _is_checked(record: Record) -> bool:
    return record.claim is None and board_states.is_checked(record.state, record.note)
