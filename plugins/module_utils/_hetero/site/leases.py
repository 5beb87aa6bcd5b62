# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long an instance may stay, whatever it runs on: ends of leases, and how they are said."""

from __future__ import annotations

import time

from ..core.errors import BadInput
from .instance import left

#: Ten years; a longer lease is a slip of the pen.
LONGEST = 87600
#: An end that is nearer than this to the one asked for is left as it is (seconds): the same play run twice in a row.
SAME = 60.0
#: What is said of an instance whose end was cut off once its data were gone, and what to do then.
ENDS, END = "its end was begun, and what it had is gone: no longer lease keeps it", "terminate it, then ask for it anew"


def must_be_hours(hours: float, name: str, endless: bool = False) -> None:
    """BadInput for hours that are no lease; 0 takes the end away where that is to be had (`endless`)."""
    if not (hours > 0 or (endless and hours == 0)) or not hours <= LONGEST:
        what = "give 0 for no end, or at most" if endless else "give more than 0 and at most"
        raise BadInput(f"is {hours:g}", name, f"{what} {LONGEST}")


def end(hours: float, old: float | None, now: float) -> float | None:
    """The end of a lease `hours` from `now`; `old` where that is nearly the same, None for 0."""
    expires = now + 3600 * hours if hours else None
    return old if expires and old and abs(expires - old) < SAME else expires


def as_date(expires: float | None) -> str | None:
    """The end of a lease to the second, for a diff."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires)) if expires else None


def until(expires: float | None, now: float) -> str:
    """The end of a lease for people on this machine: "until 2024-05-01 12:40 CEST, 3 h left"."""
    if expires is None:
        return "no end"
    return f"until {time.strftime('%Y-%m-%d %H:%M %Z', time.localtime(expires))}, {left(expires - now)}"
