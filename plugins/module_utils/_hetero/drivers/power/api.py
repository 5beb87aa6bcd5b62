# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a power driver of a site's own may import, as `hetero_drivers.power`.

Whoever takes a name away here, or changes what one promises, raises API and OLDEST, and says in the guide Writing a
power driver what to change. Whoever adds one raises API alone.
"""

from __future__ import annotations

from ...core.deadline import Deadline
from ...core.errors import BadInput, Busy, HeteroError, Lost, TimedOut
from .drawn import Drawn
from .driver import Answer, PowerDriver
from .http import Http
from .snmp import Snmp

#: The number that a driver's file says as POWER_API; of an older one than OLDEST it is refused.
API, OLDEST = 1, 1

__all__ = [
    "Answer",
    "BadInput",
    "Busy",
    "Deadline",
    "Drawn",
    "HeteroError",
    "Http",
    "Lost",
    "PowerDriver",
    "Snmp",
    "TimedOut",
]
