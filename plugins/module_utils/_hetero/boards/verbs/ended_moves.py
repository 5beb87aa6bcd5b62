# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Free boards that are kept for an instance whose move (migration.py) was killed, and which needs them no more: it has
ended, or runs on the board that it moved to. `hetero reap` does so.

Where it does neither, its next move goes on with the board that is kept, and has the way back; reconcile frees that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Callable

from ...core.changes import Change
from ...core.deadline import Deadline
from ...core.locks import held_by_another
from ...site import board_states
from ..records.store import NOBODY
from ..work.board_locks import locked
from ..work.board_work import BoardWork
from .lifecycle import Options
from .release import free_board, release

if TYPE_CHECKING:
    from ..records.board_records import Record
    from ..records.proxy import Proxy

#: Seconds that it waits for a board's lock: who has it by now works on the board.
PATIENCE = 1.0
KEPT, FREE = "it was kept for {name}, which needs it no more", "off, cleaned, free"


def take_up(proxy: Proxy, verb: str, say: Callable[[str], object]) -> bool:
    """Free the boards that are kept for nobody any more; return whether all of them could be freed.

    :param verb: the command that does so, for the locks.
    :param say: called with a text for each.
    """
    done = True
    for number, record in proxy.store.records(sorted(proxy.boards)).items():
        board = proxy.board(number)
        if not _is_left(proxy, record) or held_by_another(proxy.config.run_folder, board.name):
            continue
        work = BoardWork(proxy, board, Change(), NOBODY)
        with locked([work], verb, Deadline(PATIENCE)):
            if not work.over and _is_left(proxy, work.record):
                options = replace(Options(), instance=NOBODY, by_guess=True)
                release(proxy, [work], options, free=lambda work: free_board(proxy, work))
        done = done and not work.failed
        kept = KEPT.format(name=board_states.kept_for(record.state, record.note))
        say(f"{board.name}: {kept}: {f'not freed: {work.error}; it is tried again' if work.failed else FREE}")
    return done


def _is_left(proxy: Proxy, record: Record) -> bool:
    """Return whether a board is kept for an instance that has ended, or was left by one that runs elsewhere."""
    name = None if record.claim else board_states.kept_for(record.state, record.note)
    if name is None:
        return False
    claim = proxy.store.claim_of(name)
    if claim is None:
        return True
    runs = proxy.store.record(claim.board).state == board_states.RUNNING
    return runs and record.note == board_states.LEFT.format(name=name)
