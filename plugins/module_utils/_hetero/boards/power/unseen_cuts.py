# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switchings of which nobody saw what they cut, for their process was killed, or lost its PDU, before it looked.

The next process looks in its stead. What was seen before this node was restarted proves nothing any more: what took its
power may have taken the boards'. So the time is kept in the run folder, by the kernel's count, which no clock moves.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...core.errors import BadInput
from ...core.json_file import read_object
from ...files.whole_file import write_whole
from ...site.node_clock import boot_id

if TYPE_CHECKING:
    from ..records.board_records import Event
    from ..records.proxy import Proxy

#: The folder below the run folder that holds a file for each board.
FOLDER = "cuts"
#: Seconds for which a switching counts whose process was killed: who was silenced then may be silent later for another
#: reason. A play that was killed is run again, or reconciled, before that. Where the PDU was lost nobody may be able to
#: look before, so it counts until somebody did.
UNSEEN_FOR = 600.0


def begins(proxy: Proxy, board: int) -> None:
    """Keep the time, before the event that a board's outlet is to be switched off."""
    path = _path(proxy, board)
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_whole(path, json.dumps(_here()), 0o600)


def of(proxy: Proxy, board: int) -> tuple[Event, float] | None:
    """Return the event of a board's outlet that was to be switched off, and the seconds since then.

    None where it was seen what came of it, and where it does not count any more.
    """
    event = proxy.store.unseen_cut(board)
    if event is None:
        return None
    try:
        mark, here = read_object(_path(proxy, board), ""), _here()
        seconds = here["at"] - float(mark["at"]) if mark["boot"] == here["boot"] else None
    except (BadInput, KeyError, TypeError, ValueError):
        return None
    if seconds is None or (seconds > UNSEEN_FOR and not proxy.store.has_failed_since(board, event, UNSEEN_FOR)):
        return None
    return event, max(0.0, seconds)


def _path(proxy: Proxy, board: int) -> str:
    return os.path.join(proxy.config.run_folder, FOLDER, f"board{board}.json")


def _here() -> dict[str, Any]:
    """Return {boot: id of the machine's boot, at: seconds that the kernel counted}."""
    return {"boot": boot_id(), "at": time.clock_gettime(time.CLOCK_BOOTTIME)}
