# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a board that has power is its instance's. A board that runs is somebody's, and a busy one answers late.

So no few seconds decide: only silence at its ssh port says that nobody is there. Where another key answers, it is
somebody else's, or its tenant changed the key: only an explicit word (how=hard, terminate) has its power cut.
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

#: What a look ends with. ALIVE: a machine takes or refuses connections there and has not proven its key.
OWN_KEY, OTHER_KEY, ALIVE, SILENT = "own key", "other key", "answers without a key", "no answer"
#: What is said of a board where another key answers, and what to do then; {ip} is its address, {name} its instance.
ANOTHERS = "another host key than its own answers at its address {ip}"
HOW_TO_CUT = (
    "see which machine that is, and take another than the board off its address; where it is the board, look at its "
    f"console ({play('console', instance='{name}')}), or cut its power: "
    f"{play('reboot_instance', instance='{name}', how='hard')}"
)
#: What is said of a board that is on and never was switched on for its claim.
NOBODYS = (
    "its outlet is on, and {name} was never started here: not switched, somebody may be at work there "
    f"({play('reconcile')} says who)"
)
#: One try to have the key proven (seconds): an emulated board takes 1 s when it is idle, one at 300 MHz some seconds.
PROOF = 6.0
#: One connect (seconds): the kernel asks again after 1 s, so a lost packet is no silence.
CONNECT = 2.5
#: Between two looks (seconds).
NAP = 0.05
#: How long it must be silent on an idle proxy node until nobody is there (seconds).
QUIET = 15.0
#: How long a machine that is there may take to prove its key, on an idle proxy node (seconds).
LONGEST = 60.0
#: How many times as long as that all takes at most, however busy the node is.
MOST_STRAIN = 10.0
#: Proofs at one time: each costs this node 15 ms of CPU, and boards under emulation more. Others wait for their turn,
#: and a board's time begins with its own. Silence is heard of all boards at once.
AT_ONCE = threading.BoundedSemaphore(4 * (os.cpu_count() or 1))


def strain() -> float:
    """Return how many times as long as usual things take on this node: its load per CPU, from 1 to MOST_STRAIN."""
    return min(MOST_STRAIN, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def look(work: PowerWork, cancelled: threading.Event, limit: float | None = None) -> str | None:
    """Ask a board until it is known who is there.

    :param work: one with its driver, whose claim has a host key.
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
    """Return whether another host key than its claim's answers on a board just now: nobody can tell whose that is.

    :param work: one with its driver. A board without a key to be known by is nobody else's.
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
    """Pass over a driver's steps on the way to an answer, which are not what is asked here."""
