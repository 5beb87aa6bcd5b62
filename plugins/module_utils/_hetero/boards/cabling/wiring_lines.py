# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wiring as a cabling check found it: lines for people to paste into the inventory, and the text above them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Mapping, Protocol, Sequence

from ...core.plays import play
from ...core.typed_keys import as_said

if TYPE_CHECKING:
    from ..records.proxy import Proxy
    from ..work.board_work import BoardWork

#: The verdict on an outlet that feeds another board than the wiring says.
OTHER = "other"


class Tested(Protocol):
    """The result of a cabling check for one board (cabling.Finding), as far as this file uses it."""

    @property
    def work(self) -> BoardWork: ...
    @property
    def verdict(self) -> str: ...
    @property
    def found(self) -> list[int]: ...
    @property
    def seconds(self) -> float | None: ...


def corrected(proxy: Proxy, findings: Sequence[Tested]) -> dict[int, dict[str, Any]]:
    """Return {board id: its wiring with the outlet that really feeds it} of boards that another outlet feeds."""
    wiring = {}
    for finding in findings:
        if finding.verdict == OTHER:
            fed = proxy.board(finding.found[0])
            wiring[fed.id] = dict(as_said(proxy.wiring(fed)), pdu=finding.work.pdu, outlet=finding.work.outlet)
    return dict(sorted(wiring.items()))


def headline(findings: Sequence[Tested], wrong: Sequence[Tested], wiring: Mapping[int, dict[str, Any]]) -> list[str]:
    """Return lines for people: the outcome of the check, and the corrected wiring (JSON, which is also YAML)."""
    tested = [finding for finding in findings if finding.seconds is not None]
    outcome = f": {len(wrong)} not as the wiring says" if wrong else ": all as the wiring says" if tested else ""
    lines = [f"{len(tested)} of {len(findings)} boards tested{outcome}"]
    if wiring:
        lines.append(f"Move the cables, or correct tftp_proxy_boards and run {play('proxy')}:")
        lines += [f"  {board}: {json.dumps(wires, ensure_ascii=False)}" for board, wires in wiring.items()]
    # A board whose own outlet feeds another board, and that asked to boot at no outlet.
    lost = [
        finding.work.board for finding in findings if finding.verdict == OTHER and finding.work.board.id not in wiring
    ]
    lines += [f"  # {board.id}: which outlet feeds {board.name} was not found" for board in lost]
    return lines
