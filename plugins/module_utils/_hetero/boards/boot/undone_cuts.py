# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switch an outlet on again that was switched off and did not feed the board of its wiring, and say so.

Either the board lives on, or another instance's board fell silent (power/bystanders.py). The records keep what was seen
(power/last_outlet.py), so that nothing is switched off by that wiring again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, NamedTuple

from ...site import board_states
from ..power import presence
from ..power.bystanders import fell_silent

if TYPE_CHECKING:
    from ..power.last_outlet import Feeds
    from ..records.board_records import Record
    from ..work.board_work import BoardWork

UNCUT = "{undone}: {note}; the outlet is on again, and what it feeds was without power for {seconds:.1f} s"
NOT_BOOTED, NOT_OFF = "not booted anew", "not switched off"
#: States of a board that go back to running where it shows its own key, if it was found in RAN.
RAN = (board_states.RUNNING, board_states.BOOTING)
SWITCHED = (board_states.BOOTING, board_states.SHUTTING_DOWN)
#: States that the record of a board whose outlet is on again must not keep.
OFF = (board_states.SHUTTING_DOWN, board_states.POWER_OFF)


class Undo(NamedTuple):
    """Why an outlet that was switched off is being switched on again.

    :param note: what was seen.
    :param shows: what the board showed of it, in words.
    :param shown: what answered there (power/presence.py).
    :param learn: writes down what was seen of the outlet, and returns, in words, what follows.
    """

    note: str
    shows: str
    shown: str | None
    learn: Callable[[BoardWork], str]


def undo_of_cut(work: BoardWork, feeds: Feeds, cut: list[Record]) -> Undo:
    """Write down that an outlet cut the boards of other instances, and return its Undo."""
    note, learnt = fell_silent(work, cut), feeds.took(work, cut)  # at once: this process may be killed
    return Undo(note, note, presence.SILENT, lambda _work: learnt)


def end_uncut(work: BoardWork, undone: str, undo: Undo, seconds: float) -> None:
    """End the work on a board whose outlet was off, and fed another board, now that it is on again.

    :param undone: what was not done for it, NOT_BOOTED or NOT_OFF.
    :param seconds: seconds for which the outlet was off.
    """
    note = UNCUT.format(undone=undone, note=undo.note, seconds=seconds) + undo.learn(work)
    if work.claim is None:
        work.quarantine(note)
        return
    if undo.shown == presence.OWN_KEY and work.state in SWITCHED and work.began in RAN:
        work.move(board_states.RUNNING)
    elif work.state in OFF:
        work.quarantine(note)
        return
    work.say("error", note)
    work.fail(None, f"{work.board.name}: {note}")
