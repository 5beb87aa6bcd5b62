# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases, for instances of all kinds: how long they may be, when they end, and their ends in words."""

from __future__ import annotations

import time

from ..core.errors import BadInput
from ..core.plays import play
from .instance import left

#: Hours: ten years. A longer lease is a slip of the pen.
LONGEST = 87600
#: Seconds. An end that differs less from the one that is asked for stays as it is, so that the same play run twice
#: changes nothing.
SAME = 60.0
#: Seconds between two turns in which a node ends leases, where its role sets no other time (tftp_proxy_reap_interval).
TURN = 60.0
#: Fault and remedy of an instance whose end was interrupted after its data were removed.
ENDS, END = "its end was begun, and what it had is gone: no longer lease keeps it", "terminate it, then ask for it anew"


def must_be_hours(hours: float, name: str, endless: bool = False) -> None:
    """Raise BadInput for hours that are no lease.

    :param endless: 0 is allowed and means no end.
    """
    if not (hours > 0 or (endless and hours == 0)) or not hours <= LONGEST:
        what = "give 0 for no end, or at most" if endless else "give more than 0 and at most"
        raise BadInput(f"is {hours:g}", name, f"{what} {LONGEST}")


def end(hours: float, old: float | None, now: float) -> float | None:
    """Return the end of a lease (unix seconds), or None for 0 hours.

    :param old: the present end, which is returned if it is nearly the same.
    """
    expires = now + 3600 * hours if hours else None
    return old if expires and old and abs(expires - old) < SAME else expires


def later(one: float | None, other: float | None) -> float | None:
    """Return the later of two ends of a lease; None, for no end, is later than all."""
    return None if one is None or other is None else max(one, other)


def not_before(expires: float | None, now: float) -> float | None:
    """Return when what a claim has becomes free by its lease: one that is over is ended by the node's next turn."""
    return None if expires is None else max(expires, now + TURN)


def as_date(expires: float | None) -> str | None:
    """Return the end of a lease to the second, for a diff."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires)) if expires else None


def until(expires: float | None, now: float) -> str:
    """Return the end of a lease for people at this machine: "until 2024-05-01 12:40 CEST, 3 h left"."""
    if expires is None:
        return "no end"
    return f"until {at(expires)}, {left(expires - now)}"


def at(when: float) -> str:
    """Return a time for people at this machine: "2024-05-01 12:40 CEST"."""
    return time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(when))


def kept(instance: str, hours: float | None, expires: float | None, now: float) -> str | None:
    """Return that an instance keeps its lease although a request for it gives other hours, and what changes it.

    :param hours: hours from now, 0 for no end; None where the request gives none.
    :returns: None where the lease ends as the request says, or has ended, which `over` tells.
    """
    if hours is None or (expires is not None and expires <= now) or end(hours, expires, now) == expires:
        return None
    longer = expires is not None and (not hours or now + 3600 * hours > expires)
    way = play("extend_instance", instance=instance, hours=f"{hours:g}" if hours else "none")
    return f"keeps its lease: {until(expires, now)}; {way} makes it {'longer' if longer else 'shorter'}"


def over(instance: str, expires: float | None, now: float) -> str | None:
    """Return that a lease ended, when, and what the way on is, or None while it lasts."""
    if expires is None or expires > now:
        return None
    ended = at(expires)
    keep = play("extend_instance", instance=instance, hours="HOURS")
    return f"its lease ended {ended}: its node ends it, with all that it has, at its next turn; {keep} keeps it"
