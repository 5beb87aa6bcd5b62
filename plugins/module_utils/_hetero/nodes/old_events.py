# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `hetero backup` and `hetero gpu-backup` do after a copy is made: remove events that are too old to be kept.

Each has been in copies by then. Nothing is removed by a clock that jumped: what counts is what it certainly is by now.
"""

from __future__ import annotations

import os
import sys
from typing import Protocol

from ..core.errors import HeteroError
from ..site import node_clock


class EventsStore(node_clock.DatedStore, Protocol):
    """What is used of a node's database (a ClaimsStore)."""

    def prune(self, days: float, now: float) -> tuple[int, bool]: ...


def certain_time(store: EventsStore, reaper: str) -> float | HeteroError | None:
    """Return the unix time that it certainly is by now; None where the node has no database yet.

    Where the mark of the clock cannot be read, the error is returned: a copy is made in any case.

    It is asked before anything is written: what a clock that jumped dated says nothing any more.

    :param reaper: the verb of `hetero` by which an operator says that the clock is right.
    """
    if not os.path.exists(store.path):
        return None
    try:
        clock = node_clock.look(store, reaper)
        node_clock.keep(clock, _say)
    except HeteroError as error:
        return error
    return clock.sure


def remove(store: EventsStore, days: int, now: float | HeteroError | None) -> None:
    """Remove old events, and say how many on standard output.

    :param days: for how many days they are kept.
    :param now: as certain_time returned it.
    :raises HeteroError: the database cannot be written, or the mark of the clock could not be read.
    """
    if isinstance(now, HeteroError):
        raise now
    removed, is_all = store.prune(days, now) if now is not None else (0, True)
    if removed:
        _say(f"{removed} events older than {days} days are removed{'' if is_all else '; the next turn goes on'}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
