# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long an instance may keep its board: setting the end of its lease, and saying it in words.

Ending what is over is proxy_node/reap.py's.
"""

from __future__ import annotations

import time

from ..errors import BadInput, Refused
from ..instances import left
from .claiming import LONGEST_LEASE
from .each import each, ids_of, must_own

PHASE = "lease"
#: An end that is nearer than this to the one asked for is left as it is (seconds): the same play run twice in a row.
SAME = 60.0


def extend(proxy, request, owner, hours, change, deadline):
    """Let the lease of an instance, or of all instances of a request, end `hours` from now; the module's result.

    :param owner: where given, another owner's lease is refused.
    :param hours: 0 takes the end away.
    """
    if not 0 <= hours <= LONGEST_LEASE:
        raise BadInput(f"is {hours:g}", "hours", f"give 0 (no end) to {LONGEST_LEASE}")

    def one(board, claim, report):
        if claim is None:
            raise Refused("was given back meanwhile", board.name, f"ask for {request} anew")
        must_own(claim, owner)
        now = time.time()
        expires = now + 3600 * hours if hours else None
        if expires and claim.expires and abs(expires - claim.expires) < SAME:
            expires = claim.expires
        changed = change.note(claim.instance, {"expires": as_date(claim.expires)}, {"expires": as_date(expires)})
        if changed:
            with proxy.store.transaction(dry=change.check):
                proxy.store.put(claim.instance, expires=expires)
                report(PHASE, f"{until(expires, now)} (was: {until(claim.expires, now)})")
            expires = expires if change.check else proxy.store.record(board.id).claim.expires  # read back
        return dict(changed=changed, owner=claim.owner, expires=expires, until=until(expires, now))

    return each(proxy, ids_of(proxy.store, request), PHASE, one, change, deadline, [], request)


def as_date(expires):
    """The end of a lease to the second, for a diff."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires)) if expires else None


def until(expires, now):
    """The end of a lease for people on this machine: "until 2024-05-01 12:40 CEST, 3 h left"."""
    if expires is None:
        return "no end"
    return f"until {time.strftime('%Y-%m-%d %H:%M %Z', time.localtime(expires))}, {left(expires - now)}"
