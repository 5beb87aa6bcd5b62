# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find out which outlet feeds which board: switch on each free board's outlet and name the board that then boots.

Boards that somebody has are never switched. wiring_lines.py returns the lines for the corrected wiring.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ContextManager, Mapping, Sequence

from ...core.changes import Change
from ...core.deadline import Deadline
from ...core.errors import HeteroError
from ...core.plays import play
from ..power.doubt import Doubt
from ..power.pdu_loop import PDU
from ..records.board_records import SWITCH
from ..records.claim_records import Fed
from ..work.board_locks import locked
from ..work.board_work import BoardWork, must_be_each_once, unread_outlet
from .findings import OTHER, RIGHT, WRONG, Finding
from .outlet_tests import PHASE, Options, OutletTests
from .wiring_lines import corrected, headline

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ..power.last_outlet import Feeds
    from ..records.board_records import Event
    from ..records.proxy import Proxy

#: What ends an outlet that is on while nobody has its board.
SEE = f"correct its wiring, or, where the outlet is this board's, {play('reconcile')} switches it off"


class Cabling(OutletTests[BoardWork]):
    """Tests of the outlets that the wiring names, each for its board."""

    is_on = f"{{name}} is on although this board is free: it feeds something, and is not switched; {SEE}"

    def _turn(self, work: BoardWork) -> ContextManager[Any]:
        return locked([work], PHASE, Deadline(PDU))

    def _whose(self, work: BoardWork) -> str | None:
        return self._taken(work.board, work.record) or self._held(work)

    def _held(self, work: BoardWork) -> str | None:
        """Return why an outlet is known to feed another's board, which it would boot; None where it is not known to."""
        try:
            return self._feeds().held_by(work.board)
        except HeteroError as error:
            return str(error)

    def _unknown(self, feeds: Feeds, work: BoardWork) -> dict[int, str | None]:
        return feeds.unknown(work.board)

    def _doubt(self, feeds: Feeds, work: BoardWork, unknown: Mapping[int, str | None]) -> object:
        return Doubt(feeds, work.board, None, Fed(work.pdu, work.outlet), None, {}, unknown)

    def _one(self, finding: Finding[BoardWork], board: Board, how: str) -> tuple[str, str]:
        name = finding.work.outlet_name
        if board.id == finding.work.board.id:
            return RIGHT, f"{name} feeds it: {how}"
        return OTHER, f"{name} feeds board{board.id} ({board.mac}), not this board: {how}"

    def _unread(self, work: BoardWork, outlets: Mapping[str, str]) -> HeteroError | None:
        return unread_outlet(work, outlets)

    def _switched(self, work: BoardWork, state: str) -> None:
        self._drivers.to_look(work.board).switched(work.board, state)

    def _note(self, work: BoardWork, text: str) -> None:
        self.proxy.store.event(work.board.id, SWITCH, text)

    def _newest(self, work: BoardWork) -> Event | None:
        switched = [event for event in self.proxy.store.newest_events(work.board.id, 50) if event.phase == SWITCH]
        return switched[-1] if switched else None


def check(proxy: Proxy, ids: Sequence[int], options: Options) -> dict[str, Any]:
    """Test the boards of `ids`; return the module's result."""
    options.must_be_right()
    must_be_each_once(ids)
    change = Change(options.check)
    cabling = Cabling(proxy, [BoardWork(proxy, proxy.board(board), change) for board in ids], options)
    with change.step("cabling"):
        cabling.run()
    findings = cabling.findings
    wrong = [finding for finding in findings if finding.verdict in WRONG]
    wiring = corrected(proxy, findings)
    lines = [line for finding in findings for line in finding.work.lines]
    result = dict(change.result, boards=[_shown(finding) for finding in findings], wiring=wiring, failed=bool(wrong))
    result["changed"] = cabling.switched
    result["lines"] = [*lines, *headline(findings, wrong, wiring)]
    if wrong:
        result["msg"] = "; ".join(f"{finding.work.board.name}: {finding.text}" for finding in wrong)
    return result


def _shown(finding: Finding[BoardWork]) -> dict[str, Any]:
    work = finding.work
    return dict(
        board=work.board.id,
        name=work.board.name,
        pdu=work.pdu or None,
        outlet=work.outlet or None,
        verdict=finding.verdict,
        found=finding.found,
        text=finding.text,
        seconds=None if finding.seconds is None else round(finding.seconds, 2),
    )
