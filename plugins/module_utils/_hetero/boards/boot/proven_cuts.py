# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prove that a board which was on lost its power, while its outlet is off to be cycled.

One that lives on is fed by another outlet, and its own one may feed another tenant's board. So that is switched on
again, the boot fails, and the board's record keeps what was seen (power/last_outlet.py): nothing is switched by that
wiring again. Where nothing answered before either, or another key answers, nothing is proven, and the boot goes on.
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
    from .boot_progress import Boot

UNCUT = "not booted anew: {note}; the outlet is on again, and what it feeds was without power for {seconds:.1f} s"


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
        note = UNCUT.format(note=boot.doomed, seconds=seconds)
        if work.claim is None:
            work.quarantine(note)
            return
        note += self._feeds.belie(work)
        if boot.shown == presence.OWN_KEY and work.state == board_states.BOOTING:
            work.move(board_states.RUNNING)
        work.say("error", note)
        work.fail(None, f"{work.board.name}: {note}")
