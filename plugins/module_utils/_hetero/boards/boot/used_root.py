# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether somebody may be at work on a board whose boot nobody watched to its end: what its root tells.

A connection of its NFS client says so while it is there, and may be gone since. What a system that came up writes into
its root stays; one that hangs in its firmware, or for want of its root, has written nothing.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from ...core.errors import HeteroError
from ...drivers.boot.driver import NFS
from ...roots.provision import Place
from ...site import board_states
from ..records.board_records import MAY_HAVE_RUN, SWITCH, TO_BE, UNWATCHED
from .boot_progress import BEGINS, REBOOT
from .power_marks import was_stepped

if TYPE_CHECKING:
    from ..work.board_work import BoardWork


def since_power(work: BoardWork) -> tuple[float | None, set[str]]:
    """(unix time when the board's present boot began, phases since); None as the time where nobody knows."""
    phases: set[str] = set()
    for event in reversed(work.proxy.store.newest_events(work.board.id, 50)):
        switched = event.phase == SWITCH and event.text.endswith(TO_BE.format(state="on"))
        if switched or (event.phase == REBOOT and event.text.endswith(BEGINS[REBOOT])):
            return event.time, phases
        phases.add(event.phase)
    return None, phases


def may_be_used(work: BoardWork, since: float | None, phases: set[str]) -> bool:
    """Whether somebody may be at work on it, by all that can still be told.

    :param since, phases: as since_power returns them.
    """
    return NFS in phases or work.driver.has_root(work.board) or used_since(work, since)


def note_unwatched(work: BoardWork) -> None:
    """Write down that a boot went on while nobody looked: its root is not taken for one that was never used.

    What its root tells is enough for a cut of its power, and not for removing it.
    """
    if work.began == board_states.BOOTING and work.claim and not (work.change.check or work.ran):
        work.say(UNWATCHED, MAY_HAVE_RUN.format(name=work.instance))


def note_if_used(work: BoardWork) -> None:
    """The same before a verb that looks no further switches a board whose boot has no play any more."""
    if work.state == board_states.BOOTING and work.claim and not (work.change.check or work.ran):
        if work.proxy.store.had_power(work.claim) and may_be_used(work, *since_power(work)):
            note_unwatched(work)


def used_since(work: BoardWork, when: float | None) -> bool:
    """Whether a board's root may have been used since a unix time; True where nobody can tell.

    :param when: when its boot began; None where that is not known. The node's clock went back where it is to come, or
        where it is not as far from the kernel's count as it was then.
    """
    if work.from_its_disk or when is None or when > time.time():
        return True
    try:
        root = Place(work.proxy, work.board).root
        return not root.is_mounted or was_stepped(work.proxy, work.board) or changed_since(root.path, when)
    except (OSError, HeteroError):
        return True


def changed_since(folder: str, when: float) -> bool:
    """Whether anything in a folder was made, changed or removed since a unix time, by the clock of its file system."""
    folders = [folder]
    while folders:
        looked_at = folders.pop()
        if os.lstat(looked_at).st_ctime >= when:
            return True
        with os.scandir(looked_at) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.stat(follow_symlinks=False).st_ctime >= when:
                    return True
    return False
