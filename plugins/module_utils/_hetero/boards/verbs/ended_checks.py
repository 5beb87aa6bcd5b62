# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Free boards whose check (checks.py) has ended, or was killed: off, without what they booted, disks as they are.

What a killed check left is taken up by the next check of the board, by reconcile, and by left_boards.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.errors import HeteroError, Refused, naming
from ...core.plays import play
from ...drivers.boot.registry import BootDrivers
from ...site import board_states
from ..boot.ram_boot import clear
from ..evidence.free_boards import WIPE, in_the_way, left_by
from ..records.board_records import STATE_PHASE, SWITCH
from ..records.disk_records import unwiped, used
from .lifecycle import Options, switch_off

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ..records.board_records import Event, Record
    from ..records.proxy import Proxy
    from ..work.board_work import BoardWork
    from ..work.looks import Look

#: What is found of such a board, and what is done about it.
KILLED, FREE = "its check was killed", "off, free"


def is_left(record: Record) -> bool:
    """Return whether a board that nobody has is being checked, or was when its check was killed."""
    return record.claim is None and board_states.is_checked(record.state, record.note)


def whose(proxy: Proxy, board: Board, record: Record) -> str | None:
    """Return why a board that is_left may be somebody's, or None: the database may be older than its claim.

    Its outlet and its boot files tell nothing: the check may have left them so.
    """
    why = left_by(proxy, board, record)
    disks = [] if why else used(proxy, board)
    return f"{disks[0]} {WIPE.format(board=board.name)}" if disks else why


def free(work: BoardWork, options: Options, is_off: bool = False) -> None:
    """Switch a board off where its check switched it on, remove what it booted, and make it free, as it was before.

    Nothing was written to its disks: they are as they were found. A board that its check did not switch, and that is
    on, is somebody's: that nobody gets it, its outlet says.

    :param work: of a board that is_left, locked and read. It fails where something goes wrong; a next call goes on.
    :param is_off: whether this process has switched it off, read back; else its outlet is read.
    """
    proxy, board = work.proxy, work.board
    try:
        with naming(board.name):
            why = whose(proxy, board, work.record)
            if why:
                raise Refused(why, board.name, None)
            ours = was_switched(proxy, board)
            if ours and not is_off:
                switch_off(proxy, [work], replace(options, ends=True))
            if work.failed:
                return
            if _began(proxy, board):
                work.driver = BootDrivers(proxy).of(board)
                clear(work)
            left = [text for text in in_the_way(proxy, board) if text not in unwiped(proxy, board)] if ours else []
            if left:
                raise Refused(f"is not free after its check: {'; '.join(left)}", board.name, play("reconcile"))
            proxy.store.release(board.id, None)
            work.record = proxy.store.record(board.id)
    except HeteroError as error:
        work.fail(None, error, **error.facts)


def settled(proxy: Proxy, look: Look) -> bool:
    """Free a board that reconcile looked at, where its check was killed; return whether nothing more is done with it.

    A board that is on, and that its check never switched, is judged like any other board.
    """
    work = look.work
    if not is_left(work.record) or (look.power == "on" and not was_switched(proxy, work.board)):
        return False
    why = whose(proxy, work.board, work.record)
    if why:
        look.note(why)
    elif work.change.check:
        look.note(KILLED, "would be switched off, and freed")
    else:
        free(work, Options())
        if work.failed:
            look.note(f"{KILLED}, and it could not be freed: {work.error}")
        else:
            look.mend(KILLED, FREE)
    return True


def was_switched(proxy: Proxy, board: Board) -> bool:
    """Return whether the board's outlet was to be switched since its check began, by that process or a killed one."""
    began = _began(proxy, board)
    return began is not None and proxy.store.has_since(board.id, SWITCH, began)


def _began(proxy: Proxy, board: Board) -> Event | None:
    """Return the event of the beginning of the board's newest check; None where the database has it no more."""
    return proxy.store.newest_told(STATE_PHASE, f"%{board_states.CHECKING}", board.id)
