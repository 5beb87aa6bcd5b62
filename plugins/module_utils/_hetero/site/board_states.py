# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of a board and the transitions between them.

The first four are those of Nova's former bare-metal driver for Tilera boards; the others are the collection's own.
"""

from __future__ import annotations

from .instance import age

POWER_OFF = "power off"
BOOTING = "booting"
RUNNING = "running"
SHUTTING_DOWN = "shutting down"
ERROR = "error"
MAINTENANCE = "maintenance"

#: States of a board that somebody uses, or may use.
AT_WORK = (RUNNING, BOOTING)

#: Note of a board that is recorded as off because its outlet was seen off.
FOUND_OFF = "found off"

#: Note of a free board that is being checked (boards/verbs/checks.py), in state "shutting down". A request that finds
#: no other board gets it as soon as the check has ended.
CHECKING = "its health is being checked"

#: Notes of a free board that is kept for an instance that moves, in state "shutting down" (boards/verbs/migration.py):
#: of the board that it goes to, and of the one that it left, until it runs.
GOES_THERE = "it is kept for {name}, which moves there"
LEFT = "it is kept for {name}, which has left it and does not run yet"

#: State → states that may follow. A board may always stay in its state (the same verb again).
TRANSITIONS = {
    POWER_OFF: {BOOTING, MAINTENANCE, ERROR},
    BOOTING: {RUNNING, ERROR, SHUTTING_DOWN},
    RUNNING: {BOOTING, SHUTTING_DOWN, ERROR},
    SHUTTING_DOWN: {POWER_OFF, ERROR},
    # RUNNING only by reconcile, if the board proves its key.
    ERROR: {SHUTTING_DOWN, MAINTENANCE, RUNNING},
    MAINTENANCE: {SHUTTING_DOWN, POWER_OFF},
}


def is_at_rest(state: str, power: str | None) -> bool:
    """Return whether nobody is at work on a board: it was stopped, or is being stopped, and its outlet was seen off.

    :param power: the state of its outlet as it was seen; None where it was not.
    """
    return power == "off" and state in (POWER_OFF, SHUTTING_DOWN, MAINTENANCE)


def is_checked(state: str, note: str | None) -> bool:
    """Return whether a board that nobody has is only being checked, or was when the check was killed.

    :param note: the board's note, which may go on with what else is known.
    """
    return state == SHUTTING_DOWN and bool(note and note.startswith(CHECKING))


def is_kept_for(state: str, note: str | None, name: str) -> bool:
    """Return whether a board that nobody has is kept for an instance that moves, or was when the move was killed."""
    return state == SHUTTING_DOWN and note in (GOES_THERE.format(name=name), LEFT.format(name=name))


def kept_for(state: str, note: str | None) -> str | None:
    """Return the instance for which a board that nobody has is kept, as it moves or its move was killed; else None."""
    for text in (GOES_THERE, LEFT) if state == SHUTTING_DOWN and note else ():
        before, after = text.split("{name}")
        if note and note.startswith(before) and note.endswith(after):
            return note[len(before) : len(note) - len(after)]
    return None


def why_not_free(state: str, note: str, instance: str | None, since: float, claimed: float) -> str | None:
    """Return in words why a board cannot be claimed, or None if it is free.

    :param since: seconds that it has been in this state.
    :param claimed: seconds since the claim, if an `instance` has it.
    """
    if state in (ERROR, MAINTENANCE):
        return f"{state}: {note}" if note else state
    if instance and state == POWER_OFF:
        return f"claimed for {instance} since {age(claimed)}"
    if instance:
        return f"{state} {instance} since {age(since)}"
    if is_checked(state, note):
        return f"{CHECKING} since {age(since)}"
    if state == SHUTTING_DOWN and note and note.startswith(LEFT.partition("{")[0]):
        return f"{note}, since {age(since)}"
    return None if state == POWER_OFF else f"{state} since {age(since)}"
