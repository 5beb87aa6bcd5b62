# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of an instance on a compute host, as its claim records them, and the ways between them. Who brings it
from one to another is compute_host/lifecycle.py's business.
"""

from __future__ import annotations

#: Of an instance of which nothing is there yet.
CLAIMED = "claimed"
#: Its container or guest is being made for the first time, so nobody can have anything in it.
BUILDING = "building"
#: Likewise, but it had one before, and keeps its claim whatever happens.
REBUILDING = "rebuilding"
STARTING = "starting"
RUNNING = "running"
STOPPING = "shutting down"
STOPPED = "stopped"
#: A person has to look; the claim and its devices stay its owner's.
ERROR = "error"

#: state → states it may go to. Staying in a state is always allowed. What never ran ends where it fails, and
#: in no error; what runs is never built for the first time again.
TRANSITIONS = {
    CLAIMED: {BUILDING, REBUILDING, STARTING, RUNNING, STOPPING, STOPPED},
    BUILDING: {REBUILDING, RUNNING, STOPPING, STOPPED},
    REBUILDING: {RUNNING, STOPPING, STOPPED, ERROR},
    STARTING: {REBUILDING, RUNNING, STOPPING, STOPPED, ERROR},
    RUNNING: {REBUILDING, STARTING, STOPPING, STOPPED, ERROR},
    STOPPING: {BUILDING, REBUILDING, STARTING, RUNNING, STOPPED, ERROR},
    STOPPED: {BUILDING, REBUILDING, STARTING, RUNNING, STOPPING, ERROR},
    ERROR: {BUILDING, REBUILDING, STARTING, RUNNING, STOPPING, STOPPED},
}

#: What is made anew where it is not there: nobody has it yet, or its tenant asked for that, or for its end.
MADE_ANEW = (CLAIMED, BUILDING, REBUILDING, STOPPING)
#: What never ran: there is nothing in it that a failure could cost somebody.
NEVER_RAN = (CLAIMED, BUILDING)


def ways_from(state: str) -> set[str]:
    """The states that a claim may go to from this one; any of them from one that no release of ours has written."""
    return TRANSITIONS.get(state, set(TRANSITIONS))
