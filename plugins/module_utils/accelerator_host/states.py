# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of an instance on an accelerator host, as its claim records them. Who brings it from one to another is
instances.py's business.
"""

from __future__ import annotations

from .store import CLAIMED

#: Its container is being made for the first time, so nobody can have anything in it.
BUILDING = "building"
#: Likewise, but it had one before, and keeps its claim whatever happens.
REBUILDING = "rebuilding"
STARTING = "starting"
RUNNING = "running"
STOPPING = "shutting down"
STOPPED = "stopped"
#: A person has to look; the claim and its GPUs stay its owner's.
ERROR = "error"

#: What is made anew where it is not there: nobody has it yet, or its tenant asked for that, or for its end.
MADE_ANEW = (CLAIMED, BUILDING, REBUILDING, STOPPING)
#: What never ran: there is nothing in it that a failure could cost somebody.
NEVER_RAN = (CLAIMED, BUILDING)
