# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Free boards that a killed check (ended_checks.py) or move (ended_moves.py) has left and nobody needs any more.
`hetero reap` does so.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Callable, NamedTuple

from ...core.changes import Change
from ...core.deadline import Deadline
from ...core.locks import held_by_another
from ..records.store import NOBODY
from ..work.board_locks import locked
from ..work.board_work import BoardWork
from . import ended_checks, ended_moves
from .lifecycle import Options

if TYPE_CHECKING:
    from ..records.board_records import Record
    from ..records.proxy import Proxy

#: Seconds that it waits for a board's lock: who has it by now works on the board.
PATIENCE = 1.0
AGAIN = "not freed: {error}; it is tried again"


class Left(NamedTuple):
    """What leaves boards.

    :param is_left: whether it has left a board with this record.
    :param free: frees such a board, which is locked and read; its work fails where something goes wrong.
    :param told: what is found of it, in words.
    :param freed: what is done then.
    """

    is_left: Callable[[Proxy, Record], bool]
    free: Callable[[BoardWork], object]
    told: Callable[[Record], str]
    freed: str


ALL = (
    Left(
        lambda _proxy, record: ended_checks.is_left(record),
        partial(ended_checks.free, options=Options()),
        lambda _record: ended_checks.KILLED,
        ended_checks.FREE,
    ),
    Left(ended_moves.is_left, ended_moves.free, ended_moves.told, ended_moves.FREE),
)


def take_up(proxy: Proxy, verb: str, say: Callable[[str], object]) -> bool:
    """Free the boards that are left; return whether all of them could be freed.

    :param verb: the command that does so, for the locks.
    :param say: called with a text for each.
    """
    works = []
    for number, record in proxy.store.records(sorted(proxy.boards)).items():
        board = proxy.board(number)
        left = next((one for one in ALL if one.is_left(proxy, record)), None)
        if left is None or held_by_another(proxy.config.run_folder, board.name):
            continue
        works.append(work := BoardWork(proxy, board, Change(), NOBODY))
        with locked([work], verb, Deadline(PATIENCE)):
            if not work.over and left.is_left(proxy, work.record):
                left.free(work)
        say(f"{board.name}: {left.told(record)}: {AGAIN.format(error=work.error) if work.failed else left.freed}")
    return not any(work.failed for work in works)
