# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of an instance on a compute host, as its claim records them, and the transitions between them.
compute_host/lifecycle.py brings instances from one to another.
"""

from __future__ import annotations

#: Nothing of the instance exists yet.
CLAIMED = "claimed"
#: Its container or guest is being made for the first time, so nobody can have anything in it.
BUILDING = "building"
#: Its container or guest is being made anew. It keeps its claim whatever happens.
REBUILDING = "rebuilding"
STARTING = "starting"
RUNNING = "running"
#: A stop or a reboot was begun. All that is claimed and made stays.
STOPPING = "shutting down"
#: Its end was begun: what was made for it is removed, and its claim goes last.
ENDING = "ending"
STOPPED = "stopped"
#: A person has to look. The claim and its devices stay with their owner.
ERROR = "error"
#: It moves to another host, where its root is copied to: it is off here, and nothing starts it, until that host has
#: started it (then it ends here) or its move is given up (then it is STOPPED here).
LEAVING = "leaving"
#: It moves here from another host: its claim holds what it needs, and it was never started here.
ARRIVING = "arriving"

#: State → states that may follow. An instance may always stay in its state. One that never ran has no state ERROR: it
#: ends where it fails. One that ran is never BUILDING again.
TRANSITIONS = {
    CLAIMED: {BUILDING, REBUILDING, STARTING, RUNNING, STOPPING, STOPPED, ENDING},
    BUILDING: {REBUILDING, STARTING, RUNNING, STOPPING, STOPPED, ENDING},
    REBUILDING: {RUNNING, STOPPING, STOPPED, ENDING, ERROR},
    STARTING: {REBUILDING, RUNNING, STOPPING, STOPPED, ENDING, ERROR, LEAVING},
    RUNNING: {REBUILDING, STARTING, STOPPING, STOPPED, ENDING, ERROR, LEAVING},
    STOPPING: {REBUILDING, STARTING, RUNNING, STOPPED, ENDING, ERROR, LEAVING},
    STOPPED: {REBUILDING, STARTING, RUNNING, STOPPING, ENDING, ERROR, LEAVING},
    ENDING: {BUILDING, REBUILDING, STARTING, RUNNING, STOPPING, STOPPED, ERROR},
    ERROR: {REBUILDING, STARTING, RUNNING, STOPPING, STOPPED, ENDING, LEAVING},
    LEAVING: {STOPPED, ENDING},
    ARRIVING: {STARTING, ENDING},
}

#: States in which a missing instance is made anew: nobody has had it yet, or its tenant asked for that or for its end.
MADE_ANEW = (CLAIMED, BUILDING, REBUILDING, ENDING)
#: States of an instance that never ran, but for what a request that was killed as it waited for ssh has left, which ran
#: (Work.has_run): elsewhere a failure can cost nobody anything.
NEVER_RAN = (CLAIMED, BUILDING)
#: Those of the two claims of an instance that moves. Nothing starts what is in one, but for the move.
HALVES = (LEAVING, ARRIVING)


def ways_from(state: str) -> set[str]:
    """Return the states that may follow a claim's state; all of them if no release wrote that state."""
    return TRANSITIONS.get(state, set(TRANSITIONS))
