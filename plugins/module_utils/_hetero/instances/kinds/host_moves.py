# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of module `instance_copy`, by which an instance moves from one compute host to another.

compute_host/departures.py and compute_host/arrivals.py take them.
"""

from __future__ import annotations

import os
from typing import Any, Callable

from ...compute_host import arrivals, departures
from ...compute_host.host import Host
from ...compute_host.move_step import Asked, Result, Step
from ...core.changes import Change
from ...core.errors import BadInput, HeteroError

#: {step: who takes it}, in the order of a move.
STEPS: dict[str, Callable[[Step], Result]] = {
    "described": departures.described,
    "arriving": arrivals.arriving,
    "leaving": departures.leaving,
    "begun": arrivals.begun,
    "planned": departures.planned,
    "read": departures.read,
    "written": arrivals.written,
    "digested": departures.digested,
    "taken": arrivals.taken,
    "settled": arrivals.settled,
    "gone": departures.gone,
    "given_up": arrivals.given_up,
    "recalled": departures.recalled,
    "back": departures.back,
}
PIECE = ("file", "number", "offset", "length", "sha256", "data")
#: What is said where the answer of one host, which is passed on to the other, cannot be read.
ODD = "cannot be read: {error!r}"
PASS_ON = "pass on what the other host answered, all of it, and set both up with one release of the collection"


def work(params: dict[str, Any], check: bool) -> dict[str, Any]:
    """Take one step, and return the module's result."""
    change = Change(check)
    asked = Asked(
        params["instance"],
        params["created"],
        owner=params["owner"],
        run=params["run"] or "",
        seen=params["seen"] or "",
        other=params["other"] or "",
        came=params["came"] or {},
        has=params["has"] or {},
        piece={name: params[name] for name in PIECE if params[name] is not None},
        digests=params["digests"] or {},
        host_key=params["host_key"] or "",
        departure=params["departure"] or "",
        force=params["force"],
        timeout=params["timeout"],
        soft_timeout=params["soft_timeout"],
    )
    with Host(params["config"], f"{params['owner'] or 'move'} pid {os.getpid()}", create=not check) as host:
        step = Step(host, asked, change)
        try:
            told = STEPS[params["step"]](step)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise BadInput(ODD.format(error=error), params["instance"], PASS_ON) from error
        except HeteroError as error:
            if not check and host.store.claim_of(asked.instance):
                host.store.event(asked.instance, "error", str(error))
            raise
    return dict(change.result, **{**told, "lines": [*told.get("lines", ()), *step.lines]})
