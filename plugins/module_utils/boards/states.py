# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of a board and the ways between them.

The first four are the blueprint's (Nova's bare-metal driver for Tilera), the others ours.
"""

from __future__ import annotations

POWER_OFF = "power off"
BOOTING = "booting"
RUNNING = "running"
SHUTTING_DOWN = "shutting down"
ERROR = "error"
MAINTENANCE = "maintenance"

#: state → states it may go to. Staying in a state is always allowed (a rerun of the same verb).
TRANSITIONS = {
    POWER_OFF: {BOOTING, MAINTENANCE, ERROR},
    BOOTING: {RUNNING, ERROR, SHUTTING_DOWN},
    RUNNING: {BOOTING, SHUTTING_DOWN, ERROR},
    SHUTTING_DOWN: {POWER_OFF, ERROR},
    ERROR: {SHUTTING_DOWN, MAINTENANCE},
    MAINTENANCE: {SHUTTING_DOWN, POWER_OFF},
}
