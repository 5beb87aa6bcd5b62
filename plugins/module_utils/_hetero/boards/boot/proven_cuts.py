# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prove that a board which was on lost its power, while its outlet is off to be cycled.

One that lives on is fed by another outlet, and its own one may feed another tenant's board. So that is switched on
again, the boot fails, and the board's record keeps what was seen (power/last_outlet.py): nothing is switched by that
wiring again. Where nothing answered before either, or another key answers, nothing is proven, and the boot goes on.

A board that is switched off for good (stops.py) ends the same way.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import TYPE_CHECKING

from ...site import board_states
from ..power import power_proof, presence
from ..power.pdu_loop import PduLoop

if TYPE_CHECKING:
    from ..power.last_outlet import Feeds
    from ..work.board_work import BoardWork
    from .boot_progress import Boot

UNCUT = "{undone}: {note}; the outlet is on again, and what it feeds was without power for {seconds:.1f} s"
NOT_BOOTED, NOT_OFF = "not booted anew", "not switched off"
#: States of a board that go back to running where it shows its own key, if it was found in RAN.
RAN = (board_states.RUNNING, board_states.BOOTING)
SWITCHED = (board_states.BOOTING, board_states.SHUTTING_DOWN)
#: States that the record of a board whose outlet is on again must not keep.
OFF = (board_states.SHUTTING_DOWN, board_states.POWER_OFF)


def end_uncut(work: BoardWork, feeds: Feeds, undone: str, note: str, shown: str | None, seconds: float) -> None:
    """End the work on a board that lived on while its outlet was off, now that the outlet is on again.

    :param undone: what was not done for it, NOT_BOOTED or NOT_OFF.
    :param note: the contradiction.
    :param shown: what answered meanwhile (power/presence.py).
    :param seconds: seconds for which the outlet was off.
    """
    note = UNCUT.format(undone=undone, note=note, seconds=seconds)
    if work.claim is None:
        work.quarantine(note)
        return
    note += feeds.belie(work)
    if shown == presence.OWN_KEY and work.state in SWITCHED and work.began in RAN:
        work.move(board_states.RUNNING)
    elif work.state in OFF:
        work.quarantine(note)
        return
    work.say("error", note)
    work.fail(None, f"{work.board.name}: {note}")


class ProvenCuts(PduLoop):
    """A loop that cycles the power of boards that were on."""

    _feeds: Feeds

    @abstractmethod
    def _on(self, boot: Boot) -> None:
        """Switch a board on and follow its boot."""

    @abstractmethod
    def _ask(self, boot: Boot, state: str) -> None:
        """Ask the board's PDU to switch its outlet."""

    def _prove_cut(self, boot: Boot) -> None:
        """Look whether a board is silent now that its outlet is off, and switch it on."""
        boot.cut = time.monotonic()
        self._spawn(self._look_for_life, boot)

    def _look_for_life(self, boot: Boot) -> None:
        signs = power_proof.Silence(boot.work).life()
        self._post(self._on_life, boot, signs, presence.shown(boot.work) if signs else presence.SILENT)

    def _on_life(self, boot: Boot, signs: list[str], shown: str) -> None:
        if boot.work.over:
            return
        if not power_proof.are_its_own(signs, shown):
            self._on(boot)
            return
        boot.lives_on, boot.shown = signs, shown
        boot.doomed = power_proof.contradiction(boot.work, signs)
        self._ask(boot, "on")

    def _end_uncut(self, boot: Boot) -> None:
        """End the work on a board that lived on, now that its outlet is on again."""
        work, seconds = boot.work, time.monotonic() - boot.cut
        work.power_proof = dict(pdu=f"{boot.way}, read back", board=" and ".join(boot.lives_on))
        work.phases["power"] = boot.switch_seconds
        end_uncut(work, self._feeds, NOT_BOOTED, boot.doomed, boot.shown, seconds)
