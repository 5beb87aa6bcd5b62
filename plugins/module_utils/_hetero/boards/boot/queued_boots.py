# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards that wait until fewer of their proxy node's boards boot (boot_places.py), without power and without a place in
their PDU's session. A board that waited is looked at again before it is switched on. One that is on never waits: what
is done there meanwhile would be lost when its turn comes.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import deque
from typing import TYPE_CHECKING

from ...drivers.boot.driver import NFS
from ...site import board_states
from .boot_places import BootPlaces, usual
from .boot_progress import BOOTING, DECIDING, QUEUED
from .ended_boots import TICK, EndedBoots
from .late_cuts import FRESH
from .silent_boots import EARLY

if TYPE_CHECKING:
    from ..records.proxy import Proxy
    from .boot_progress import Boot

WAITS = "waits for its turn: no more than {limit} of this proxy node's boards boot at the same time (boots_at_once)"
#: What is told of all boards of a call while some of them wait, and the seconds from one such line to the next.
SO_FAR = "{running} of {all} boards run, {booting} boot, {queued} wait for their turn"
AGAIN = 10.0
#: Seconds that a board has its place for whose boot nobody follows: EARLY until it asks, and as long again to load.
UNFOLLOWED = 2 * EARLY


class QueuedBoots(EndedBoots):
    """A loop that switches on no more boards than its proxy node may boot at the same time."""

    #: Set by the loop while it runs.
    _limit: int | None
    _places: BootPlaces

    def __init__(self, proxy: Proxy) -> None:
        super().__init__(proxy)
        self._queued: deque[Boot] = deque()
        self._uncounted: dict[int, Boot] = {}  # boards that load and have no place
        self._told_at = 0.0  # monotonic time since when nothing was told of all boards

    @abstractmethod
    def _begin(self, boot: Boot) -> None:
        """Begin to find out what must be known before anything is done with a board."""

    @abstractmethod
    def _cold_start(self, boot: Boot) -> None:
        """Switch a board on, or off and on."""

    def _open_places(self) -> BootPlaces:
        config = self.proxy.config
        self._limit = config.boots_at_once or usual(config.interface)
        self._places = BootPlaces(config.run_folder, self._limit)
        self._told_at = time.monotonic()
        return self._places

    def _listen_for_places(self) -> None:
        """Have the loop look for free places until it ends: other plays leave them without a word.

        The loop also gives back the place of a board that asks for nothing, of which no event tells.
        """
        while self._limit is not None and not self._ended.wait(TICK):
            if self._queued:
                self._post(self._let_in)
                self._post(self._tell_so_far)
            elif any(_needs_no_place(self.boots[board]) for board in self._places.held):
                self._post(self._give_places_back)

    def _may_boot(self, boot: Boot) -> bool:
        """Return whether a board has a place; else it is queued, and begun again once it has one."""
        board = boot.board.id
        if board in self._places.held or (not self._queued and self._places.take(board)):
            return True
        boot.stage, boot.queued_at = QUEUED, time.monotonic()
        self._queued.append(boot)
        boot.work.say("wait", WAITS.format(limit=self._limit))
        return False

    def _give_places_back(self) -> None:
        """Give back the places of boards that load nothing any more, and let in others in their stead."""
        left = [board for board in self._places.held if _needs_no_place(self.boots[board])]
        for board in left:
            self._places.leave(board)
        if left:
            for boot in list(self._uncounted.values()):
                self._count(boot)
            self._let_in()

    def _end_turn(self) -> None:
        self._give_places_back()

    def _count(self, boot: Boot) -> None:
        """Count a board that loads and has no place, where one is free: its firmware asked for nothing for EARLY."""
        board = boot.board.id
        self._uncounted.pop(board, None)
        if boot.stage == BOOTING and boot.kinds and "nfs" not in boot.said and not boot.work.over:
            self._places.take_free(board)
            if board not in self._places.held:
                self._uncounted[board] = boot

    def _let_in(self) -> None:
        """Let in boards of this loop that wait for longest, as long as there are places."""
        while self._queued:
            boot = self._queued[0]
            if not boot.work.over and not self._places.take(boot.board.id):
                return
            self._queued.popleft()
            if not boot.work.over:
                self._begin_again(boot)
        self._places.leave_line()  # the last one may have been ended, and took no place

    def _tell_so_far(self) -> None:
        """Tell how many boards of this loop run, boot and wait, as an event of the one that waits for longest."""
        if len(self.boots) == 1 or time.monotonic() - self._told_at < AGAIN:
            return
        waiting = [boot for boot in self._queued if not boot.work.over]
        if not waiting:
            return
        self._told_at = time.monotonic()
        works = [boot.work for boot in self.boots.values()]
        failed = sum(work.failed for work in works)
        # one whose boot is not waited for is over, and boots
        running = sum(work.over and not work.failed and work.state == board_states.RUNNING for work in works)
        booting = len(works) - running - failed - len(waiting)
        told = SO_FAR.format(running=running, all=len(works), booting=booting, queued=len(waiting))
        waiting[0].work.say("wait", f"{told}, {failed} failed" if failed else told)

    def _begin_again(self, boot: Boot) -> None:
        """Go on with a board that waited, which was off, and may have power by now."""
        if time.monotonic() - boot.queued_at < FRESH:
            boot.stage = DECIDING
            self._cold_start(boot)
            return
        line = self.lines.get(boot.work.pdu)
        boot.decide_anew()
        self._begin(boot)
        if line is not None:
            self._then(line.look)


def _needs_no_place(boot: Boot) -> bool:
    """Return whether a board is done with, or has mounted its root since it has power, or asks for nothing."""
    if boot.work.over:
        return True
    if boot.stage != BOOTING or boot.powered is None:
        return False
    return NFS in boot.kinds or (not boot.kinds and time.monotonic() - boot.powered > EARLY)
