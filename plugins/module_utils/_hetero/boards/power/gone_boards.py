# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look for signs of life of a board without a claim, or even without a line in the boards file: either may be gone by
mistake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import HeteroError
from ...drivers.boot import ssh
from ...roots.board_parts import nfs_server_of, root_of_board
from . import pdu_names
from .outlet_power import statuses
from .power_proof import LOOK, LOOKS

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from ...nfs.exporter import Export
    from ..records.proxy import Proxy

SWITCHED = "see what it feeds, and have that switched off; or take the board out of the wiring"
MENDED = "mend that, or take the board out of the wiring"
SWITCH_OFF = "see which machine that is, and switch it off"


def exports_of(proxy: Proxy, board: int) -> list[Export]:
    """Return the exports of the root of a board, by its number."""
    server = nfs_server_of(proxy)
    path = root_of_board(proxy, board).path
    return [export for export in server.show().values() if export.path == path]


def sign_of_life(proxy: Proxy, board: int, deadline: Deadline) -> tuple[str, str] | None:
    """Return (what, remedy) of a board that is not known to be without power.

    None is returned where its outlet is off, or not known, and nothing answers at an address to which its
    root is exported.

    An outlet that the wiring gives to another board of the boards file says nothing of this one.

    :param board: the board's number.
    """
    place = _outlet(proxy, board)
    if place and place not in [outlet_of(proxy, other) for other in proxy.boards if other != board]:
        pdu, outlet = place
        states, error = statuses(proxy, [pdu], deadline)[pdu]
        state = states.get(outlet)
        if state == "on":
            return f"its outlet {outlet} of {pdu} is on", SWITCHED
        if state != "off":
            why = error or state or "it has no such outlet"
            return f"whether its outlet {outlet} of {pdu} is off is not known ({why})", MENDED
    for client in sorted({client for export in exports_of(proxy, board) for client in export.clients}):
        if any(ssh.alive(client, LOOK) for _turn in range(LOOKS)):
            return f"something answers at {client}, to which its root is exported", SWITCH_OFF
    return None


def outlet_of(proxy: Proxy, board: int) -> tuple[str, str] | None:
    """Return the (PDU, outlet) that a board's wiring names, or None."""
    wire = proxy.config.boards.get(str(board))
    return wire.fed if wire else None


def _outlet(proxy: Proxy, board: int) -> tuple[str, str] | None:
    """Return the (PDU, outlet) that a board's wiring names, else the one by which it had its power last, or None.

    The PDU of the latter is still there.
    """
    wired = outlet_of(proxy, board)
    if wired:
        return wired
    try:
        kept = proxy.store.kept(board)
    except HeteroError:
        return None
    fed = kept.fed if kept else None
    if fed is None or fed.taken:
        return None
    names = pdu_names.now(proxy.config.pdus, fed)
    return (names[0], fed.outlet) if names else None
