# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prove that a board which was on lost its power, and no other one did, while its outlet is off to be cycled.

One that lives on is fed by another outlet, and its own one may feed another tenant's board; or another tenant's board
falls silent (power/bystanders.py). So the outlet is switched on again, and the boot fails (undone_cuts.py). Where
nothing answered before either, or another key answers, nothing is proven, and the boot goes on.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Callable

from ...core.deadline import Deadline
from ...drivers.boot.own_drivers import fault_of
from ..power import power_proof, presence
from ..power.pdu_loop import PduLoop
from ..records.board_records import SWITCH
from .undone_cuts import NOT_BOOTED, Undo, end_uncut, undo_of_cut

if TYPE_CHECKING:
    from ..power.bystanders import Bystanders
    from ..power.last_outlet import Feeds
    from .boot_progress import Boot


class ProvenCuts(PduLoop):
    """A loop that cycles the power of boards that were on."""

    _feeds: Feeds
    _bystanders: Bystanders

    @abstractmethod
    def _on(self, boot: Boot) -> None:
        """Switch a board on and follow its boot."""

    @abstractmethod
    def _ask(self, boot: Boot, state: str) -> None:
        """Ask the board's PDU to switch its outlet."""

    def _cut(self, boot: Boot) -> None:
        """Switch a board off, once it is known which other boards answer."""
        if self._bystanders.find(boot.work):
            self._spawn(self._look_around, boot)
        else:
            self._ask(boot, "off")

    def _look_around(self, boot: Boot) -> None:
        self._bystanders.before(boot.work)
        self._post(self._on_looked_around, boot)

    def _on_looked_around(self, boot: Boot) -> None:
        if not boot.work.over:
            self._ask(boot, "off")

    def _prove_cut(self, boot: Boot, then: Callable[[Boot], None]) -> None:
        """Look what was silenced now that an outlet is off, and go on.

        :param then: what follows where it is this board, as far as can be seen.
        """
        boot.off, boot.then = Deadline(0), then
        own, boot.cycled = not boot.cycled and then == self._on, True
        if own or self._bystanders.watched(boot.work):
            self._spawn(self._look_for_life, boot, own)
        else:
            self._go_on(boot, then)

    def _look_for_life(self, boot: Boot, own: bool) -> None:
        """Look for signs of life of a board whose outlet is off, and for bystanders that fell silent with it.

        :param own: whether the board itself is listened to; where it is given up, that follows later.
        """
        signs = power_proof.Silence(boot.work).life() if own else []
        shown = presence.shown(boot.work) if signs else presence.SILENT
        lives = power_proof.are_its_own(signs, shown)
        silent = [] if lives else self._bystanders.silent(boot.work, boot.off, own and not signs)
        self._post(self._on_life, boot, signs, shown, silent)

    def _on_life(self, boot: Boot, signs: list[str], shown: str, silent: list[int]) -> None:
        work = boot.work
        if work.over:
            return
        cut = self._bystanders.cut(work, silent)
        if cut:
            boot.undo = undo_of_cut(work, self._feeds, cut)
        elif power_proof.are_its_own(signs, shown) and not fault_of(work.driver, boot.board):
            note = power_proof.contradiction(work, signs)
            boot.undo = Undo(note, " and ".join(signs), shown, self._feeds.belie)
        else:
            self._go_on(boot, boot.then)
            return
        boot.doomed = boot.undo.note
        self._ask(boot, "on")

    def _go_on(self, boot: Boot, then: Callable[[Boot], None]) -> None:
        if then != self._on:  # which writes an event itself
            self.proxy.store.event(boot.board.id, SWITCH, f"{boot.work.outlet_name} stays off")
        then(boot)

    def _end_uncut(self, boot: Boot, undo: Undo) -> None:
        """End the work on a board whose outlet fed another, now that it is on again."""
        work = boot.work
        work.power_proof = dict(pdu=f"{boot.way}, read back", board=undo.shows)
        work.phases["power"] = boot.switch_seconds
        end_uncut(work, NOT_BOOTED, undo, boot.off.spent)
