# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a board itself says of its power, beside its PDU's read-back: an outlet that is off may feed another board.

A board without power is silent: nothing answers at its address, its console's log does not grow. A board that was
switched on asks for its boot files. What follows from a contradiction is for boot/stops.py and boot/starts.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from ...core.deadline import Deadline
from ...core.plays import play
from ...drivers.boot import blame
from ...drivers.boot.driver import FIRMWARE, SYSTEM, TFTP

if TYPE_CHECKING:
    import threading

    from .board_views import PoweredBoot, PowerWork

#: One look (seconds): a board on the same network answers within milliseconds, also one under emulation.
LOOK = 0.2
#: Looks without a sign of life that make silence, so that one lost packet does not.
LOOKS = 2
#: How long a board may go on after its outlet was read back as off: power supplies bridge 16 ms (ATX) to a second or
#: two (large capacitors, a light load).
LINGER = 4.0

#: What to do about a board that is in use: the cabling test switches outlets, so it takes free boards only.
PLUGS = f"look at its plug ({play('cabling')} says what the outlets of free boards feed)"
ANSWERS = "something answers at {ip}"
GROWS = "its console's log grows"
UNSEEN = "no own proof of power on: no boot request was seen, and no console said anything"


class Silence:
    """Whether a board goes silent when its outlet is switched off.

    :param work: its driver looks at the board.
    """

    def __init__(self, work: PowerWork) -> None:
        self.work = work
        #: Whether it answered before; None where that was not asked.
        self.answered: bool | None = None
        self._console: str | None = work.proxy.wiring(work.board).get("console")

    def before(self) -> None:
        """Look before the outlet is switched."""
        self.answered = self.lives()

    def lives(self) -> bool:
        """Return whether it answers to one look."""
        return self.work.driver.alive(self.work.board, LOOK)

    def life(self, over: threading.Event | None = None) -> list[str]:
        """Look until the board was silent `LOOKS` times in a row, or for `LINGER`.

        :param over: ends the looks early.
        :returns: its signs of life in the last look, as texts.
        """
        deadline, silent = Deadline(LINGER), 0
        signs: list[str] = []
        while silent < LOOKS and not deadline.passed and not (over and over.is_set()):
            signs, window, size = [], Deadline(LOOK), blame.console_size(self._console)
            if self.work.driver.alive(self.work.board, LOOK):
                signs.append(ANSWERS.format(ip=self.work.board.ip))
            elif self._console:
                window.nap(LOOK)
            if blame.console_size(self._console) > size:
                signs.append(GROWS)
            silent = 0 if signs else silent + 1
            if signs:
                deadline.nap()
        return signs

    @property
    def words(self) -> str | None:
        """What its silence proves, in words; None where it proves nothing."""
        words = [text for text, heard in (("console silent", self._console), ("no answer", self.answered)) if heard]
        return ", ".join(words) or None

    @property
    def unproven(self) -> str:
        """Why its silence proves nothing."""
        asked = "was off before" if self.answered is None else "was not answering before"
        return f"no own proof: it has no console and {asked}"


def contradiction(work: PowerWork, signs: Sequence[str]) -> str:
    """Return the note of a board that lives on although its outlet was read back as off."""
    return (
        f"off by {work.pdu}'s read-back, but {' and '.join(signs)}: outlet {work.outlet} does not feed this board, or "
        f"its address is taken: {PLUGS}"
    )


def is_by_its_outlet(boot: PoweredBoot) -> bool:
    """Return whether a board that runs now was silent, or asked to boot, when its outlet was switched here.

    :param boot: one of which `of_running` was said.
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
    elif boot.console and blame.console_size(boot.console) > boot.console_from:
        proof["board"] = "its console's log grew"
    else:
        proof["board"] = UNSEEN
        boot.work.say("power", UNSEEN)
