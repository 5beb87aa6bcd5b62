# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A place in the queue of a node, kept or given up: which kind of node keeps it, and what of a request it keeps.

claims/those_who_wait.py keeps places, boards/work/board_queue.py and compute_host/host_queue.py know what they are for.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, Sequence

from ...claims.tickets import Ticket, must_be_asked
from ...core.changes import Change
from ...core.errors import BadInput
from ...site.kinds import BOARD, SECTIONS
from .registry import kind_of

if TYPE_CHECKING:
    from ...claims.store import ClaimsStore


def work(params: dict[str, Any], check: bool) -> dict[str, Any]:
    """Keep a place or give it up, and return the module's result."""
    kind_of(params)
    change = Change(check)
    with change.step("ticket"):
        place = (_of_boards if params["kind"] == BOARD.name else _of_instances)(params, check)
    return dict(change.result, changed=False, place=place)


def _of_boards(params: dict[str, Any], check: bool) -> dict[str, Any] | None:
    from ...boards.records.proxy import Proxy
    from ...boards.work.board_fit import ClaimRequest
    from ...boards.work.board_queue import KEPT, kept

    with Proxy(params, _actor(params), create=not check) as proxy:
        if params["state"] == "absent":
            _give_up(proxy.store, params, check)
            return None
        wish = dict(_wish(params, KEPT), image=params["image"] or "")
        request = ClaimRequest(
            params["instance"],
            params["owner"],
            ssh_public_key=params["ssh_public_key"],
            **dict(wish, numbers=tuple(wish["numbers"])),
        )
        return kept(proxy, request, _ticket(params, wish), check, params["takes_over"])


def _of_instances(params: dict[str, Any], check: bool) -> dict[str, Any] | None:
    from ...compute_host.claim_request import ClaimRequest
    from ...compute_host.host import Host
    from ...compute_host.host_queue import KEPT, kept

    with Host(params["config"], _actor(params), create=not check) as host:
        if params["state"] == "absent":
            _give_up(host.store, params, check)
            return None
        section = SECTIONS[params["kind"]]
        image = params["image"] or host.config.section(section).default_image or ""
        wish = dict(_wish(dict(params, kind=section), KEPT), image=image)
        lists = dict(numbers=tuple(wish["numbers"]), devices=tuple(wish["devices"]))
        request = ClaimRequest(
            params["instance"], params["owner"], ssh_public_key=params["ssh_public_key"], **dict(wish, **lists)
        )
        return kept(host, request, _ticket(params, wish), check, params["takes_over"])


def _give_up(store: ClaimsStore[Any], params: dict[str, Any], check: bool) -> None:
    with store.transaction(dry=check):
        store.tickets.end(params["instance"], params["owner"])


def _wish(params: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: params[name] for name in names}


def _ticket(params: dict[str, Any], wish: dict[str, Any]) -> Ticket:
    ticket = Ticket(
        params["instance"],
        params["owner"],
        params["asked"],
        wish,
        params["priority"],
        _steps(params["elsewhere"]),
        lasts=params["seconds"],
        others=params["others"],
    )
    ticket.check()
    must_be_asked(ticket.asked)
    return ticket


def _steps(given: Sequence[Any]) -> tuple[tuple[float, int], ...]:
    try:
        steps = tuple((float(when), int(many)) for when, many in given)
    except (TypeError, ValueError, OverflowError):
        steps = ((math.nan, 0),)
    if not all(math.isfinite(when) for when, _many in steps):
        what = "has an entry that is not [seconds since 1970, number of instances]"
        raise BadInput(what, "elsewhere", "give the steps of other nodes' answers")
    return steps


def _actor(params: dict[str, Any]) -> str:
    return f"{params['owner']} pid {os.getpid()}"
