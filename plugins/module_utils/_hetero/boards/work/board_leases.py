# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Set the end of a lease, until which an instance may keep its board.

nodes/proxy/reap.py ends instances whose lease is over.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...core.errors import HeteroError, Refused
from ...core.plays import play
from ...roots.ownership import is_gone, refuse_anothers
from ...site.leases import END, ENDS, as_date, end, later, must_be_hours, until
from ...site.node_clock import extend_lease, extended_late
from ..evidence.unknown_leases import unknown_lease
from .board_queue import BoardQueue
from .each_board import each, ids_of
from .owner_limits import limits_of

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...core.deadline import Deadline
    from ...site.boards_file import Board
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy
    from .each_board import Instances, Report

PHASE = "lease"
NOT_ENDED = f"; but {{what}}: it is not ended until {play('reconcile', adopt='{name}')} has that written anew"
#: The same where a person has to do more than to give that word.
UNTIL_MENDED = "; but {what}: it is not ended until that is mended: {remedy}"
#: The command of `hetero` that ends instances whose lease is over.
REAPER = "reap"


def extend(
    proxy: Proxy,
    instances: Instances,
    hours: float,
    change: Change,
    deadline: Deadline,
) -> dict[str, Any]:
    """Let the lease of instances end `hours` from now, or never with 0; return the module's result."""
    must_be_hours(hours, "hours", endless=True)
    late = extend_lease(proxy.store, REAPER, change.check) if hours else ""

    def one(board: Board, claim: Claim | None, report: Report, change: Change) -> dict[str, Any]:
        claim = instances.must_have(board, claim)
        refuse_anothers(proxy, board, claim)
        if is_gone(proxy, board, claim) and proxy.store.is_ending(claim):
            raise Refused(ENDS, claim.instance, END)
        now = time.time()
        expires = end(hours, claim.expires, now)
        limits = limits_of(proxy)
        _must_be_allowed(proxy, claim, limits.longest(claim.owner, expires, now))  # it may be nearer than the limit
        if later(claim.expires, expires) != claim.expires:
            limits.must_not_be_longer(claim.instance, claim.owner, hours)
        changed = change.note(claim.instance, {"expires": as_date(claim.expires)}, {"expires": as_date(expires)})
        if changed:
            unknown = unknown_lease(proxy, replace(claim, expires=expires))
            doubt = _doubt(claim, *unknown) if unknown else ""
            if not change.check:
                if late:
                    extended_late(proxy.store, REAPER)
                expires = _put(proxy, claim, expires)
            report(PHASE, f"{until(expires, now)} (was: {until(claim.expires, now)}){doubt}{late}")
        return dict(changed=changed, owner=claim.owner, expires=expires, until=until(expires, now))

    ids = ids_of(proxy, instances.request, instances.numbers, instances.only_key)
    return each(proxy, ids, PHASE, one, change, deadline, instances.tenant)


def _doubt(claim: Claim, what: str, remedy: str) -> str:
    """Return the text on a lease that is not ended, for what is not known of it."""
    text = NOT_ENDED if play("reconcile", adopt=claim.instance) in remedy else UNTIL_MENDED
    return text.format(what=what, name=claim.instance, remedy=remedy)


def _must_be_allowed(proxy: Proxy, claim: Claim, expires: float | None) -> None:
    """Raise Refused where the board is reserved before a longer lease ends, or others wait who would start later."""
    if later(claim.expires, expires) != claim.expires:
        queue, name = BoardQueue(proxy), f"board{claim.board}"
        queue.must_not_reach(claim, name, claim.expires, expires)
        queue.must_end_in_time(claim, name, expires)


def _put(proxy: Proxy, claim: Claim, expires: float | None) -> float | None:
    """Write the end of a lease (unix seconds) and return it as read back."""
    with proxy.store.transaction():
        _must_be_allowed(proxy, claim, expires)  # another claim may have come meanwhile
        proxy.store.put(claim.instance, expires=expires)
    found = proxy.store.claim_of(claim.instance)
    if found is None or not found.is_same(claim) or found.expires != expires:
        what = f"the lease of {claim.instance} does not read back as it was written"
        raise HeteroError(what, proxy.store.path, "see what else writes there, then run this again")
    return found.expires
