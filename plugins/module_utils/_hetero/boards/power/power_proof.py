# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prove by the board itself, beside the PDU's read-back, that it was switched: its outlet may feed another board.

A board without power is silent: nothing answers at its address, and its console's log does not grow. A board that was
switched on asks for its boot files. boot/stops.py and boot/starts.py decide what follows from a contradiction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from ...core.deadline import Deadline
from ...core.plays import play
from ...drivers.boot import blame
from ...drivers.boot.driver import FIRMWARE, SYSTEM, TFTP
from .presence import ALIVE, OWN_KEY

if TYPE_CHECKING:
    import threading

    from ...drivers.boot.driver import BootDriver
    from ...site.boards_file import Board
    from .board_views import PoweredBoot, PowerWork

#: Seconds of one look: a board on the same network answers within milliseconds, also an emulated one.
LOOK = 0.2
#: Looks in a row without a sign of life that count as silence; a single one may be a lost packet.
LOOKS = 2
#: Seconds that a board may go on after its outlet was read back as off: power supplies bridge 16 ms (ATX) to a second
#: or two (large capacitors, a light load).
LINGER = 4.0

#: The remedy for a board in use; the cabling check switches outlets, so it tests free boards only.
PLUGS = f"look at its plug ({play('cabling')} says what the outlets of free boards feed)"
ANSWERS = "something answers at {ip}"
GROWS = "its console's log grows"
UNSEEN = "no own proof of power on: no boot request was seen, and no console said anything"


class Silence:
    """Looks whether a board becomes silent when its outlet is switched off.

    :param work: the work on the board, with its driver.
    """

    def __init__(self, work: PowerWork) -> None:
        self.work = work
        #: Whether the board answered before the switching; None where that was not looked at.
        self.answered: bool | None = None
        self._console = work.proxy.wiring(work.board).console

    def before(self) -> None:
        """Look before the outlet is switched."""
        self.answered = self.lives()

    def lives(self) -> bool:
        """Return whether the board answers one look."""
        return self.work.driver.alive(self.work.board, LOOK)

    def life(self, over: threading.Event | None = None) -> list[str]:
        """Look until the board was silent `LOOKS` times in a row, or for `LINGER`.

        :param over: ends the looks early.
        :returns: the signs of life in the last look, as texts.
        """
        deadline, silent = Deadline(LINGER), 0
        signs: list[str] = []
        while silent < LOOKS and not deadline.passed and not (over and over.is_set()):
            signs, window, size = [], Deadline(LOOK), blame.console_size(self._console)
            if self.work.driver.alive(self.work.board, LOOK):
                signs.append(ANSWERS.format(ip=self.work.board.ip))
            elif self._console:
                window.nap(LOOK)
            if blame.has_spoken(self._console, size):
                signs.append(GROWS)
            silent = 0 if signs else silent + 1
            if signs:
                deadline.nap()
        return signs

    @property
    def words(self) -> str | None:
        """Return, in words, what the board's silence proves; None where it proves nothing."""
        words = [text for text, heard in (("console silent", self._console), ("no answer", self.answered)) if heard]
        return ", ".join(words) or None

    @property
    def unproven(self) -> str:
        """Return, in words, why the board's silence proves nothing."""
        asked = "was off before" if self.answered is None else "was not answering before"
        return f"no own proof: it has no console and {asked}"


def lives(driver: BootDriver, board: Board) -> bool:
    """Return whether a board answers a few looks, whatever answers there."""
    return any(driver.alive(board, LOOK) for _turn in range(LOOKS))


def contradiction(work: PowerWork, signs: Sequence[str]) -> str:
    """Return the note of a board that lives on although its outlet was read back as off."""
    return (
        f"off by {work.pdu}'s read-back, but {' and '.join(signs)}: outlet {work.outlet} does not feed this board, or "
        f"its address is taken: {PLUGS}"
    )


def are_its_own(signs: Sequence[str], shown: str) -> bool:
    """Return whether signs of life are the board's, as far as is known: no other key answers in its place.

    :param shown: what its address shows just now (presence.shown).
    """
    return GROWS in signs or (bool(signs) and shown in (OWN_KEY, ALIVE))


def is_by_its_outlet(boot: PoweredBoot) -> bool:
    """Return whether a board that runs now was silent, or asked to boot, when its outlet was switched here.

    :param boot: a boot for which of_running was called.
    """
    proof = boot.work.power_proof
    return proof is not None and (boot.way == "off → on" or proof["board"] != UNSEEN)


def of_running(boot: PoweredBoot) -> None:
    """Say how it is proven that a board which runs now was really switched on, or that only its PDU says so."""
    proof = boot.work.power_proof
    if proof is None:
        return  # nobody switched it here
    asks = (FIRMWARE, TFTP, SYSTEM) if boot.flash else (FIRMWARE, TFTP)
    requests = [boot.kinds[kind] for kind in asks if kind in boot.kinds]
    if requests:
        proof["board"] = f"boot request {max(0.0, min(requests) - boot.powered):.1f} s after power on"
    elif blame.has_spoken(boot.console, boot.console_from):
        proof["board"] = "its console's log grew"
    else:
        proof["board"] = UNSEEN
        boot.work.say("power", UNSEEN)
