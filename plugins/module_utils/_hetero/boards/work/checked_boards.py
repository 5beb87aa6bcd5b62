# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Free boards that are being checked when a request finds no other: have their checks end, and wait for that.

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
    from ..records.proxy import Proxy

#: Seconds that a request waits for the end of a check: a piece of a test, and a PDU that is slow.
LONGEST = 90.0
#: Seconds between two looks.
TICK = 0.2
WAITS = "{name} waits for the end of this board's check"


def given_way(proxy: Proxy, request: str, boards: Iterable[Board], count: int, deadline: Deadline) -> bool:
    """Have the checks of some boards end; return whether one of the boards left its check before the deadline.

    A board whose check was killed is none of them: nobody would hear.

    :param request: the name of the instance or request that wants them.
    :param count: how many it wants.
    """
    folder = proxy.config.run_folder
    found = [one for one in boards if _is_checked(proxy, one) and locks.held_by_another(folder, one.name)][:count]
    with ExitStack() as asked:
        for board in found:
            asked.enter_context(end_requests.asked(folder, board.name, end_requests.EndRequest(request, ())))
            proxy.store.event(board.id, "wait", WAITS.format(name=request), instance=request)
        while found and not deadline.passed:
            if not all(_is_checked(proxy, board) for board in found):
                return True
            deadline.nap(TICK)
    return False


def _is_checked(proxy: Proxy, board: Board) -> bool:
    record = proxy.store.record(board.id)
    return record.claim is None and board_states.is_checked(record.state, record.note)
