# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A move to another board that was cut off between the claim and the root, and that nobody takes up: the instance ends,
or gets a new root. Its root lies in the place of the board before, and goes with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.deadline import Deadline
from ...core.errors import Refused
from ...core.locks import lock
from ...core.plays import play
from ...roots import moved_root
from ...roots.board_parts import root_of_board
from ...roots.recorded_boards import of_its_record
from ..power.outlet_power import outlet_power
from ..records import console_logs
from ..records.board_records import CLAIM_PHASE
from ..records.store import NOBODY, must_be_of

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...roots.proxy_node import Report
    from ...site.boards_file import Board
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy

#: The phase of the events and lines of a move, and the verb that holds its locks.
PHASE = "move"
#: The end of the event with which an instance that moves gets its board.
MOVES = "its root comes from {board}"
#: Seconds to wait for whoever works on the board before; a move that is under way has its lock.
PATIENCE = 1.0
NOT_OFF = "{name}'s root lies in its place since a move was cut off, and its outlet is {power}"
SEE = f"see who is at work there; or {play('migrate_instance', instance='{name}')} brings the root after"
WOULD = "its root would be brought from {board}, where a move was cut off"


def came_by(proxy: Proxy, claim: Claim) -> str | None:
    """Return the name of the board from which an instance moved to its own; None where it did not move there."""
    newest = proxy.store.newest_told(CLAIM_PHASE, "%", claim.board)
    _text, moves, board = newest.text.rpartition(MOVES.partition("{")[0]) if newest else ("", "", "")
    return board if moves else None


def bring_after(proxy: Proxy, board: Board, claim: Claim, change: Change, report: Report, deadline: Deadline) -> None:
    """Bring the root of a claim to its board where a move left it in the place of the board before.

    The caller holds the lock of the claim's board, which is off.

    :raises Refused: the board before is not off, or somebody's by now; or the claim has another board by its record,
        or its own by none, and its root lies there, so the database may be older than its move there.
    :raises TimedOut: somebody works on it.
    """
    if not claim.image_hash or root_of_board(proxy, board.id).exists():
        return
    there = moved_root.lies_at(proxy, claim, board.id)
    if there is None or there not in proxy.boards:
        return
    before = proxy.boards[there]
    if came_by(proxy, claim) != before.name:
        error = of_its_record(proxy, there, claim, claim.instance)  # a root made here would be a second machine
        if error:
            raise error
        return
    if change.check:
        report(PHASE, WOULD.format(board=before.name))
        return
    with lock(proxy.config.run_folder, before.name, PHASE, proxy.actor, Deadline(PATIENCE)):
        must_be_of(proxy.store.record(there).claim, NOBODY, before.name)
        _must_be_off(proxy, before, claim, report, deadline)
        moved_root.bring(proxy, claim, before, board)
        console_logs.ended(proxy.config, before, claim.instance)
    report(PHASE, f"{MOVES.format(board=before.name)}, which is off")


def _must_be_off(proxy: Proxy, board: Board, claim: Claim, report: Report, deadline: Deadline) -> None:
    seen: dict[str, Any] = {"id": board.id}

    def tell(_pdu: str, text: str) -> None:
        report("wait", text)

    unread = "; ".join(outlet_power(proxy, [seen], deadline, tell=tell).values())
    if seen["power"] != "off":
        what = NOT_OFF.format(name=claim.instance, power=unread or seen["power"] or "not known")
        raise Refused(what, board.name, SEE.format(name=claim.instance))
