# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wiring as a cabling check found it: lines for people to paste into the inventory, and the text above them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ...core.plays import play
from ...core.typed_keys import as_said
from ...site.proxy_config import UNWIRED
from .findings import OTHER, Finding

if TYPE_CHECKING:
    from ..records.proxy import Proxy
    from ..work.board_work import BoardWork


def corrected(proxy: Proxy, findings: Sequence[Finding[Any]], verdict: str = OTHER) -> dict[int, dict[str, Any]]:
    """Return {board id: its wiring with the outlet that really feeds it} of the boards of a verdict's outlets."""
    wiring = {}
    for finding in findings:
        if finding.verdict == verdict:
            fed = proxy.board(finding.found[0])
            place = dict(pdu=finding.work.pdu, outlet=finding.work.outlet)
            wiring[fed.id] = {**place, **as_said(proxy.config.boards.get(str(fed.id), UNWIRED)), **place}
    return dict(sorted(wiring.items()))


def pasted(wiring: Mapping[int, dict[str, Any]]) -> list[str]:
    """Return wiring as lines to paste: JSON, which is also YAML."""
    return [f"  {board}: {json.dumps(wires, ensure_ascii=False)}" for board, wires in wiring.items()]


def headline(
    findings: Sequence[Finding[BoardWork]], wrong: Sequence[Finding[BoardWork]], wiring: Mapping[int, dict[str, Any]]
) -> list[str]:
    """Return lines for people: the outcome of the check, and the corrected wiring (JSON, which is also YAML)."""
    tested = [finding for finding in findings if finding.seconds is not None]
    outcome = f": {len(wrong)} not as the wiring says" if wrong else ": all as the wiring says" if tested else ""
    lines = [f"{len(tested)} of {len(findings)} boards tested{outcome}"]
    if wiring:
        lines.append(f"Move the cables, or correct tftp_proxy_boards and run {play('proxy')}:")
        lines += pasted(wiring)
    # A board whose own outlet feeds another board, and that asked to boot at no outlet.
    lost = [
        finding.work.board for finding in findings if finding.verdict == OTHER and finding.work.board.id not in wiring
    ]
    lines += [f"  # {board.id}: which outlet feeds {board.name} was not found" for board in lost]
    return lines
