# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wiring as a cabling check found it: lines for the inventory, which people paste, and what is said above them."""

from __future__ import annotations

import json

from ..plays import play

#: The verdict on an outlet that feeds another board than the wiring says.
OTHER = "other"


def corrected(proxy, findings):
    """{board id: its wiring with the outlet that feeds it in truth}, of boards that another outlet feeds than was said.

    :param findings: cabling.Finding of each board.
    """
    wiring = {}
    for finding in findings:
        if finding.verdict == OTHER:
            fed = proxy.board(finding.found[0])
            wiring[fed.id] = dict(proxy.wiring(fed), pdu=finding.work.pdu, outlet=finding.work.outlet)
    return dict(sorted(wiring.items()))


def headline(findings, wrong, wiring):
    """What the check comes to, and the corrected lines (JSON, which is YAML's flow style)."""
    tested = [finding for finding in findings if finding.seconds is not None]
    outcome = f": {len(wrong)} not as the wiring says" if wrong else ": all as the wiring says" if tested else ""
    lines = [f"{len(tested)} of {len(findings)} boards tested{outcome}"]
    if wiring:
        lines.append(f"Move the cables, or correct tftp_proxy_boards and run {play('proxy')}:")
        lines += [f"  {board}: {json.dumps(wires, ensure_ascii=False)}" for board, wires in wiring.items()]
    # Of a board whose own outlet turned out to feed another, and which came up by no other.
    lost = [
        finding.work.board for finding in findings if finding.verdict == OTHER and finding.work.board.id not in wiring
    ]
    lines += [f"  # {board.id}: which outlet feeds {board.name} was not found" for board in lost]
    return lines
