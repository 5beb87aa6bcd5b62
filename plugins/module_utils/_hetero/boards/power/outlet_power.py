# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the PDUs which boards have power just now: each PDU once, several at the same time. This file only reads."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Optional, Tuple

from ...core.errors import HeteroError
from .pdu_sessions import opened

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from ...drivers.power.drawn import Drawn
    from ...drivers.power.outlets import Session
    from ..records.proxy import Proxy

#: ({outlet: state}, None) of a PDU that answered; ({}, why) of one that did not.
Status = Tuple[Dict[str, str], Optional[str]]
#: A function that is called, from any thread, with (PDU name, text on what is waited for).
Tell = Callable[[str, str], None]
#: The same, with (PDU name, the session with it) once its status was read.
Also = Callable[[str, "Session"], None]

#: Most PDUs that are asked at the same time; they are separate devices, so they do not disturb each other.
AT_ONCE = 100


def outlet_power(
    proxy: Proxy,
    boards: Iterable[dict[str, Any]],
    deadline: Deadline,
    meters: dict[int, Drawn] | None = None,
    tell: Tell | None = None,
) -> dict[str, str]:
    """Ask the PDUs of these boards and put the answers into their `power` and `power_seen`; None without an answer.

    Each is waited for PDU seconds at most (pdu_sessions.py).

    :param boards: boards as work/info.py describes them.
    :param meters: where given, the outlets' meters are read as well: {board id: Drawn} of those that tell is put here.
    :returns: {PDU name: why it did not answer}.
    """
    outlets: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for board in boards:
        board.update(power=None, power_seen=None)
        fed_by = proxy.wiring(proxy.board(board["id"])).fed
        if fed_by:
            outlets.setdefault(fed_by[0], []).append((fed_by[1], board))

    read: dict[int, Drawn] = {} if meters is None else meters

    def measure(name: str, pdu: Session) -> None:
        drawn = pdu.drawn([outlet for outlet, _board in outlets[name]])
        read.update({board["id"]: drawn[outlet] for outlet, board in outlets[name] if outlet in drawn})

    errors = {}
    also = None if meters is None else measure
    for name, (status, error) in statuses(proxy, outlets, deadline, tell, also).items():
        fed = outlets[name]
        missing = [outlet for outlet, board in fed if error is None and outlet not in status]
        if missing:
            error = f"{name}: has no outlet {', '.join(missing)}: correct the wiring in proxy.json"
        if error:
            errors[name] = error
        for outlet, board in fed:
            if outlet in status:
                board.update(power=status[outlet], power_seen=time.time())
    return errors


def statuses(
    proxy: Proxy, names: Iterable[str], deadline: Deadline, tell: Tell | None = None, also: Also | None = None
) -> dict[str, Status]:
    """Return {PDU name: its Status}, in the order of `names`."""
    names = list(names)
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        return dict(zip(names, pool.map(lambda name: _ask(proxy, name, deadline, tell, also), names)))


def _ask(proxy: Proxy, name: str, deadline: Deadline, tell: Tell | None, also: Also | None) -> Status:
    try:
        with opened(proxy, name, deadline, partial(tell, name) if tell else None) as pdu:
            status = pdu.status()
            if also:
                also(name, pdu)
            return status, None
    except HeteroError as error:
        return {}, str(error)
