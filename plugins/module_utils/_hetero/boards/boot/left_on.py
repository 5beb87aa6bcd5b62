# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards that do not come up, and whose tenants may be at work there: their outlets stay on.

The outlet is read before that is said. Where it is off, nobody is at work there: somebody's hand, or a fuse, cut its
power while it booted, and it is begun with once more.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Mapping

from ...core.errors import HeteroError
from ...core.plays import play
from ...drivers.boot import blame
from ..power import presence
from ..records.suspect_boards import CUT, MAY_WORK, STAYS_ON, UNSEEN
from ..work.board_work import unread_outlet
from .boot_progress import BOOTING, FROM_OFF, LOOKING
from .late_cuts import FRESH
from .queued_boots import QueuedBoots
from .wired_boots import WiredBoots

if TYPE_CHECKING:
    from .boot_options import BootOptions
    from .boot_progress import Answer, Boot

IN_USE_AGAIN = f" ({play('reconcile')} has it in use again once it shows its key)"
#: What is said, and not noted, of a board whose power was cut at each boot.
CUT_EACH_TIME = ", at {tries} boots: see who switches it, its fuse and, with a BMC, whether its system switches it off"
#: What is said where the outlet could not be read.
UNREAD = "whether its outlet is on is not known ({error})"


class LeftOn(QueuedBoots, WiredBoots):
    """A loop that gives up waiting for boards and does not cut their power."""

    options: BootOptions
    check: bool

    @abstractmethod
    def _listen(self, boot: Boot) -> None:
        """Look for signs of life of a board, in a thread."""

    @abstractmethod
    def _found_off(self, boot: Boot) -> None:
        """Switch on a board whose outlet was read as off, once it shows no sign of life."""

    @abstractmethod
    def _on_answer(self, boot: Boot, answer: Answer, at: float) -> None:
        """Go on with a boot whose board proved its key."""

    def _look_before_left(self, boot: Boot, note: str, who: str) -> None:
        """Read the outlet of a board that is to be left on.

        :param who: at whose fault it is, of blame.py's.
        """
        if self.check:
            self._leave_on(boot, note, who)
            return
        boot.stage, boot.stalled = LOOKING, (note, who)
        if boot.work.pdu in self.lines:
            self._then(self.lines[boot.work.pdu].look)
        else:
            self._open_line(boot.work.pdu)  # which tells the outlets' states by itself

    def _on_status(self, pdu: str, outlets: Mapping[str, str]) -> None:
        for boot in self._of(pdu):
            if boot.stage != LOOKING or boot.work.over:
                continue
            error = unread_outlet(boot.work, outlets)
            if error is not None:
                self._leave_unread(boot, error)
            elif outlets[boot.work.outlet] == "on":
                self._leave_if_silent(boot)
            else:
                self._on_cut(boot)

    def _leave_if_silent(self, boot: Boot) -> None:
        """Leave a board on that is still silent where its PDU was waited for: it may have come up meanwhile."""
        if boot.answered_at is None or time.monotonic() - boot.answered_at <= FRESH:
            self._leave_on(boot, *boot.stalled)
            return
        boot.stage = BOOTING
        self._spawn(self._look_again, boot)

    def _look_again(self, boot: Boot) -> None:
        shown = presence.SILENT
        with suppress(HeteroError, OSError):  # such as a step of its driver that fails
            shown = presence.shown(boot.work)
        self._post(self._on_shown, boot, shown)

    def _on_shown(self, boot: Boot, shown: str) -> None:
        if shown == presence.OWN_KEY:
            self._on_answer(boot, True, time.monotonic())
        else:
            self._leave_on(boot, *boot.stalled)

    def _on_cut(self, boot: Boot) -> None:
        """Go on with a board whose outlet is off, though it was switched on."""
        work, note = boot.work, f"{boot.stalled[0]}; {boot.work.outlet_name} {CUT}"
        work.power_seen("off")
        work.driver.switched(boot.board, "off")
        if boot.tries > self.options.retries:
            work.quarantine(note, CUT_EACH_TIME.format(tries=boot.tries), at_fault=False)
            return
        work.say("error", f"{note}; trying again")
        boot.decide_anew()
        boot.was_cut = True  # until its firmware asks for anything, it may be at work all the same
        boot.way, boot.outlet_now, boot.outlet_at = FROM_OFF, "off", time.monotonic()
        self._spawn(self._listen, boot)
        self._found_off(boot)

    def _leave_unread(self, boot: Boot, error: HeteroError) -> None:
        """Leave a board whose outlet cannot be read as one that is on."""
        note, who = boot.stalled
        boot.stalled = f"{note}; {UNREAD.format(error=error)}", who
        self._leave_if_silent(boot)

    def _leave_on(self, boot: Boot, note: str, who: str = blame.IMAGE) -> None:
        """Leave on a board that has its tenant's root and has run: a long fsck is silent, too, and a cut may cost work.

        Its root was mounted from here, or lies on its own disk. That proves more than another machine on the network
        does, or a host key that the tenant may have made anew.
        """
        work = boot.work
        note = f"{note}; {_why_left(boot)}"
        if self.check:
            work.say("error", note)
            work.fail(blame.INSTANCE, f"{work.board.name}: {note}")
        else:
            work.quarantine(note, IN_USE_AGAIN, at_fault=False)
            work.blame = who


def _why_left(boot: Boot) -> str:
    """Return why the outlet of a board that does not answer stays on."""
    if boot.work.stays_on:
        return STAYS_ON
    if boot.taken_over:
        return UNSEEN.format(cut=play("reboot_instance", instance=boot.work.instance, how="hard"))
    return MAY_WORK
