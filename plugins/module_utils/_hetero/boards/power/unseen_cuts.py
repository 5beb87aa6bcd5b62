# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switchings of which nobody saw what they cut, for their process was killed, or lost its PDU, before it looked.

The event before a switching names the boards that answered until then. It counts until the outlet was switched again,
or each of them was seen to live since, or was stopped for its own tenant; until then each stop and reconcile looks in
its process's stead (bystanders.py), and says who may have lost its power.

The power is given back only shortly after, for who was silenced then may be silent later for another reason. What was
seen before this node was restarted proves nothing: what took its power may have taken the boards'. So the time of a
switching is kept in the run folder, by the kernel's count, which no clock moves.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Collection, Mapping, NamedTuple

from ...core.errors import HeteroError
from ...core.locks import held_by_another
from ...drivers.boot.registry import BootDrivers
from ..records import boot_marks
from ..records.board_records import ANSWER, TO_BE
from .power_proof import LOOK

if TYPE_CHECKING:
    from ..records.board_records import Event
    from ..records.proxy import Proxy

#: The folder below the run folder that holds a file for each board.
FOLDER = "cuts"
#: Seconds after a switching in which the power is given back, where its process was killed, and where it told that it
#: had lost its PDU, so that nobody could look.
UNSEEN_FOR, LOST_FOR = 600.0, 3600.0
#: The names of boards in the event before a switching (Bystanders.to_be_cut), the outlet, and what was to be done.
NAMED = re.compile(rf"(?:{ANSWER.format(boards='((?:board[0-9]+, )*board[0-9]+)')})?(.*) ({TO_BE.format(state='off')})")
#: The phase and the text of the event that a board lives on after such a switching.
ALIVE, ANSWERS = "alive", "answers, after {outlet} was switched off for {name}"


class UnseenCut(NamedTuple):
    """A switching of which nobody saw what it cut.

    :param outlet: the PDU and the outlet, in words.
    :param left: ids of the boards that answered until then, and were not seen to live since.
    :param seconds: seconds since then; None where it is too long ago, or not known, to give power back.
    """

    event: Event
    outlet: str
    left: set[int]
    seconds: float | None


def begins(proxy: Proxy, board: int) -> None:
    """Keep the time, before the event that a board's outlet is to be switched off."""
    boot_marks.keep(proxy, FOLDER, f"board{board}", {"at": _now()})


def lost(proxy: Proxy, board: int) -> None:
    """Keep that the process which was to switch a board's outlet off lost the PDU, so that it could not look."""
    mark = boot_marks.kept(proxy, FOLDER, f"board{board}")
    if mark:
        boot_marks.keep(proxy, FOLDER, f"board{board}", dict(mark, lost=True))


def of(proxy: Proxy, board: int) -> UnseenCut | None:
    """Return the switching off of a board's outlet of which it was not seen whom that cut, or None."""
    event = proxy.store.unseen_cut(board)
    named = NAMED.match(event.text) if event else None
    if event is None or named is None:
        return None
    names = {int(name[len("board") :]) for name in (named[1] or "").split(", ") if name}
    left = {one for one in names & set(proxy.boards) if not proxy.store.has_since(one, ALIVE, event)}
    return UnseenCut(event, named[2], left, _seconds(proxy, board))


def all_of(proxy: Proxy) -> dict[int, UnseenCut]:
    """Return {board id: the switching off of its outlet} of those that may be said to have cut others."""
    cuts = {board: of(proxy, board) for board in proxy.boards}
    return {board: cut for board, cut in cuts.items() if cut and cut.left - {board}}


def lives(proxy: Proxy, boards: Collection[int], cuts: Mapping[int, UnseenCut]) -> None:
    """Write down of boards that have just answered that they live, where such a switching may be said to have cut them.

    They are asked once more: until then its process may have waited for its PDU.

    :param cuts: as of `all_of`.
    """
    for other, cut in cuts.items():
        found = (cut.left & set(boards)) - {other}
        if not found or held_by_another(proxy.config.run_folder, f"board{other}"):
            continue
        drivers, said = BootDrivers(proxy), ANSWERS.format(outlet=cut.outlet, name=f"board{other}")
        for board in sorted(found):
            with suppress(HeteroError):
                if drivers.of(proxy.board(board)).alive(proxy.board(board), LOOK):
                    proxy.store.event(board, ALIVE, said)


def _seconds(proxy: Proxy, board: int) -> float | None:
    mark = boot_marks.kept(proxy, FOLDER, f"board{board}") or {}
    try:
        seconds = max(0.0, _now() - float(mark["at"]))
    except (KeyError, TypeError, ValueError):
        return None
    return seconds if seconds <= (LOST_FOR if mark.get("lost") else UNSEEN_FOR) else None


def _now() -> float:
    """Return the seconds that the kernel counted since this machine's boot."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
