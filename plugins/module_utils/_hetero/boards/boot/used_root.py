# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell from a board's root whether a tenant may be at work on a board whose boot no process watched to its end.

A connection of the board's NFS client is proof while it lasts, but may have ended. What a system writes into its root
when it comes up stays there; a board that hangs in its firmware, or finds no root, has written nothing.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from ...core.errors import HeteroError
from ...drivers.boot.driver import NFS
from ...roots.place import Place
from ...site import board_states
from ..records.board_records import MAY_HAVE_RUN, NO_USE_SEEN, SWITCH, TO_BE, UNWATCHED
from .boot_progress import BEGINS, REBOOT
from .power_marks import was_stepped

if TYPE_CHECKING:
    from ..work.board_work import BoardWork


def since_power(work: BoardWork) -> tuple[float | None, set[str]]:
    """Return (unix time when the board's present boot began, phases since); the time is None where it is not known."""
    phases: set[str] = set()
    for event in reversed(work.proxy.store.newest_events(work.board.id, 50)):
        switched = event.phase == SWITCH and event.text.endswith(TO_BE.format(state="on"))
        if switched or (event.phase == REBOOT and event.text.endswith(BEGINS[REBOOT])):
            return event.time, phases
        phases.add(event.phase)
    return None, phases


def since_found(work: BoardWork) -> tuple[float | None, set[str]]:
    """Return the same of a board that was found on; the time of one that was not booting is when it was off last."""
    found = work.found
    if found is None or found.state == board_states.BOOTING:
        return since_power(work)
    return found.power_seen if found.power == "off" else found.since, set()


def is_somebodys(work: BoardWork) -> bool:
    """Return whether somebody may be at work on a board, should it be on, by what is recorded of it.

    It runs or boots, by the database or by its claim's own record, which may be newer; or a stop of it has failed, and
    it was not seen off.
    """
    state, claim, off = work.state, work.claim, work.found is not None and work.found.power == "off"
    if state in board_states.AT_WORK or (state == board_states.SHUTTING_DOWN and not off):
        return True
    try:
        kept = work.proxy.store.kept(work.board.id)
    except HeteroError:
        return True  # it may say so
    return kept is not None and kept.claim.is_same(claim) and kept.state not in (board_states.POWER_OFF, state)


def may_be_at_work(work: BoardWork) -> bool:
    """Return whether the instance of a board that is on may be at work there, whatever its state is.

    The outlet of one that is recorded as off may have been off for a while only, by a hand or a power cut.
    """
    return work.ran and (is_somebodys(work) or may_be_used(work, *since_found(work)))


def may_be_used(work: BoardWork, since: float | None, phases: set[str]) -> bool:
    """Return whether a tenant may be at work on a board, by its events, its NFS connection and its root.

    :param since: as since_found returns it.
    :param phases: as since_found returns them.
    """
    return NFS in phases or work.driver.has_root(work.board) or used_since(work, since)


def note_unwatched(work: BoardWork, text: str = MAY_HAVE_RUN) -> None:
    """Write down that a boot went on unwatched, so that its root is not taken for one that was never used.

    What a root tells (used_since) is enough to cut the board's power, each time anew, but not to remove the root.

    :param text: NO_USE_SEEN where the root shows no use.
    """
    if _began_unwatched(work) and not (text == NO_USE_SEEN and work.ran):
        work.say(UNWATCHED, text.format(name=work.instance))


def note_if_used(work: BoardWork) -> None:
    """Call note_unwatched where a boot that no play watches may have come up.

    For verbs that switch the board, before they do, and once its outlet is off.
    """
    if _began_unwatched(work) and work.claim and work.proxy.store.had_power(work.claim):
        work.proxy.store.commit()  # for who waits to write: a root has many files
        if may_be_used(work, *since_power(work)):
            note_unwatched(work)


def _began_unwatched(work: BoardWork) -> bool:
    """Return whether the boot of an instance that is not known to have run began before: by its state; as its stop was
    begun, and its outlet was not seen off since; as it is in error, for a look that saw its outlet off since tells
    nothing of what was before; or by its record alone.
    """
    if not work.claim or work.change.check or work.came_up_before:
        return False
    if work.began == board_states.BOOTING or work.proxy.store.is_older_than(work.claim):
        return True
    stops = work.began == board_states.SHUTTING_DOWN and work.found and work.found.power != "off"
    return bool(stops or work.began == board_states.ERROR) and work.proxy.store.had_power(work.claim)


def used_since(work: BoardWork, when: float | None) -> bool:
    """Return whether a board's root may have been used since a unix time; True where that cannot be told.

    :param when: unix time when its boot began, or when it was off; None where that is not known. A time in the future
        shows that the node's clock was set back, and so does the mark of a boot that was under way.
    """
    if work.from_its_disk or when is None or when > time.time():
        return True
    try:
        root = Place(work.proxy, work.board).root
        stepped = work.began == board_states.BOOTING and was_stepped(work.proxy, work.board)
        return not root.is_mounted or stepped or changed_since(root.path, when)
    except (OSError, HeteroError):
        return True


def changed_since(folder: str, when: float) -> bool:
    """Return whether anything in a folder was made, changed or removed since a unix time, by the files' ctime."""
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
