# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Consoles of a plan against each other and its PDUs: one place has one console, and one by IPMI has a BMC.

What each by itself may say is site/console_lines.py's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping

from ...site.console_lines import CONSOLE_FROM, IPMI

if TYPE_CHECKING:
    from ...core.findings import Findings
    from .entries_check import Entry

#: Drivers of PDUs that are BMCs: their host and credentials are taken.
BMCS = ("ipmi", "redfish")


def consoles(wires: Mapping[str, Entry], pdus: Mapping[str, Entry], found: Findings) -> None:
    """Check the consoles of all boards whose wiring has console_from.

    :param wires: by board id.
    :param pdus: by name.
    """
    places: dict[str, str] = {}
    for board_id, wire in sorted(wires.items()):
        line = CONSOLE_FROM.read(wire["console_from"], "", []) if wire.get("console_from") else None
        if line is None:
            continue
        thing = f"tftp_proxy_boards, board {board_id}"
        first = places.setdefault(line.place, board_id) if line.place else board_id
        if first != board_id:
            found.defect(thing, f"its console is at {line.place}, as board {first}'s is", "correct one of them")
        name = line.options.get("pdu") or wire.get("pdu")
        bmc = pdus.get(str(name))
        if line.type == IPMI and (bmc is None or bmc.get("driver") not in BMCS):
            what = f"its console is by IPMI, and {name or 'no PDU'} is no BMC"
            found.defect(thing, what, f"name a PDU of driver {' or '.join(BMCS)} (console_from, pdu)")
