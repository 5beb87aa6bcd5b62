# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find out whether a board that has power is its instance's.

A busy board answers late, so a few seconds are not enough: only lasting silence at its ssh port proves that no system
runs. Where another key answers, the board is another instance's, or its tenant has changed the key. Its power is then
cut only where the user asks for that explicitly (how=hard, terminate).
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from ...core.deadline import Deadline
from ...core.plays import play
from ...drivers.boot.ssh import WrongHostKey

if TYPE_CHECKING:
    from .board_views import PowerWork

#: Results of a look. ALIVE: a machine accepts or refuses connections there and has not proven its key.
OWN_KEY, OTHER_KEY, ALIVE, SILENT = "own key", "other key", "answers without a key", "no answer"
#: The text on a board where another key answers, and the remedy; {ip} is the board's address, {name} its instance.
ANOTHERS = "another host key than its own answers at its address {ip}"
HOW_TO_CUT = (
    "see which machine that is, and take another than the board off its address; where it is the board, look at its "
    f"console ({play('console', instance='{name}')}), or cut its power: "
    f"{play('reboot_instance', instance='{name}', how='hard')}"
)
#: Seconds of one try to have the key proven: an idle emulated board takes 1 s, one at 300 MHz some seconds.
PROOF = 6.0
#: Seconds of one connect: the kernel sends again after 1 s, so that a lost packet does not count as silence.
CONNECT = 2.5
#: Seconds between two looks.
NAP = 0.05
#: Seconds of silence that prove, on an idle proxy node, that no system runs on the board.
QUIET = 15.0
#: Seconds within which a machine that answers must prove its key, on an idle proxy node.
LONGEST = 60.0
#: The largest factor by which these times grow on a busy node.
MOST_STRAIN = 10.0
#: Limits proofs at the same time: each costs this node 15 ms of CPU, and more with emulated boards. Others wait, and a
#: board's time begins when its proof does. All boards are watched for silence at once.
AT_ONCE = threading.BoundedSemaphore(4 * (os.cpu_count() or 1))


def strain() -> float:
    """Return the factor for times on this node: its load per CPU, from 1 to MOST_STRAIN."""
    return min(MOST_STRAIN, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def look(work: PowerWork, cancelled: threading.Event, limit: float | None = None) -> str | None:
    """Ask a board until it is known which system runs there.

    :param work: a work with its driver, whose claim has a host key.
    :param cancelled: ends the look early.
    :param limit: seconds of silence, and of proofs in vain, at most; None for QUIET and LONGEST by the node's load.
    :returns: OWN_KEY, OTHER_KEY, ALIVE or SILENT; None when it was cancelled.
    """
    slow = strain()
    quiet, proofs = [seconds * slow if limit is None else limit for seconds in (QUIET, LONGEST)]
    silence = Deadline(quiet)
    deadline: Deadline | None = None
    while not cancelled.wait(NAP):
        if work.driver.alive(work.board, CONNECT):
            with AT_ONCE:
                deadline = deadline or Deadline(proofs)
                seen = _proof(work, cancelled, Deadline(PROOF * slow))
            if seen or deadline.passed:
                return seen or ALIVE
            silence = Deadline(quiet)
        elif silence.passed:
            return SILENT
    return None


def is_others(work: PowerWork, cancelled: threading.Event | None = None) -> bool:
    """Return whether another host key than its claim's answers on a board just now.

    :param work: a work with its driver; False where its claim has no host key.
    """
    return bool(work.system.host_key) and shown(work, cancelled) == OTHER_KEY


def shown(work: PowerWork, cancelled: threading.Event | None = None) -> str:
    """Return what answers on a board just now, by one look: OWN_KEY, OTHER_KEY, ALIVE or SILENT."""
    if not work.driver.alive(work.board, CONNECT):
        return SILENT
    if not work.system.host_key:
        return ALIVE
    with AT_ONCE:
        return _proof(work, cancelled or threading.Event(), Deadline(PROOF * strain())) or ALIVE


def _proof(work: PowerWork, cancelled: threading.Event, patience: Deadline) -> str | None:
    """Return OWN_KEY or OTHER_KEY, or None where nothing was proven."""
    try:
        return OWN_KEY if work.driver.answers(work.board, work.system, patience, cancelled, _unheard) else None
    except WrongHostKey:
        return OTHER_KEY


def _unheard(phase: str, text: str) -> None:
    """Ignore a driver's reports of its steps."""
