# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of a board and the ways between them.

The first four are the blueprint's (Nova's bare-metal driver for Tilera), the others ours.
"""

from __future__ import annotations

from .instance import age

POWER_OFF = "power off"
BOOTING = "booting"
RUNNING = "running"
SHUTTING_DOWN = "shutting down"
ERROR = "error"
MAINTENANCE = "maintenance"

#: Note of a board that is recorded as off because it was seen off.
FOUND_OFF = "found off"

#: state → states it may go to. Staying in a state is always allowed (a rerun of the same verb).
TRANSITIONS = {
    POWER_OFF: {BOOTING, MAINTENANCE, ERROR},
    BOOTING: {RUNNING, ERROR, SHUTTING_DOWN},
    RUNNING: {BOOTING, SHUTTING_DOWN, ERROR},
    SHUTTING_DOWN: {POWER_OFF, ERROR},
    # To running by reconcile only, where the board proves its key.
    ERROR: {SHUTTING_DOWN, MAINTENANCE, RUNNING},
    MAINTENANCE: {SHUTTING_DOWN, POWER_OFF},
}


def why_not_free(state: str, note: str, instance: str | None, since: float, claimed: float) -> str | None:
    """Why a board cannot be claimed, in words; None for a free one.

    :param since: seconds that it has been in this state.
    :param claimed: seconds since the claim, where an `instance` has it.
    """
    if state in (ERROR, MAINTENANCE):
        return f"{state}: {note}" if note else state
    if instance and state == POWER_OFF:
        return f"claimed for {instance} since {age(claimed)}"
    if instance:
        return f"{state} {instance} since {age(since)}"
    return None if state == POWER_OFF else f"{state} since {age(since)}"
