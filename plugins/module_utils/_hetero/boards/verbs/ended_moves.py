# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Free boards that are kept for an instance whose move (migration.py) was killed, and which needs them no more: it has
ended, or runs on the board that it moved to.

Where it does neither, its next move goes on with the board that is kept, and has the way back; reconcile frees that.
One that somebody is on by its own record is left to reconcile, too: the database may be older than that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...roots.recorded_boards import is_recorded
from ...site import board_states
from ..records.store import NOBODY
from .lifecycle import Options
from .release import free_board, release

if TYPE_CHECKING:
    from ..records.board_records import Record
    from ..records.proxy import Proxy
    from ..work.board_work import BoardWork

KEPT, FREE = "it was kept for {name}, which needs it no more", "off, cleaned, free"


def told(record: Record) -> str:
    """Return what is found of a board that is_left."""
    return KEPT.format(name=board_states.kept_for(record.state, record.note))


def free(work: BoardWork) -> None:
    """Switch off, clean and free a board that is_left, locked and read."""
    options = replace(Options(), instance=NOBODY, by_guess=True)
    release(work.proxy, [work], options, free=lambda work: free_board(work.proxy, work))


def is_left(proxy: Proxy, record: Record) -> bool:
    """Return whether a board is kept for an instance that has ended, or was left by one that runs elsewhere."""
    name = None if record.claim else board_states.kept_for(record.state, record.note)
    if name is None or is_recorded(proxy, record.board):
        return False
    claim = proxy.store.claim_of(name)
    if claim is None:
        return True
    runs = proxy.store.record(claim.board).state == board_states.RUNNING
    return runs and record.note == board_states.LEFT.format(name=name)
