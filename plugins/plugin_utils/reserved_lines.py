# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is reserved by date, as `status` and the roles tell it: one line for each reservation of each node."""

from __future__ import annotations

from typing import Any, Mapping

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief, one_line

#: Lines of reservations; the others are only counted.
TOLD = 20
#: Most characters of each part of a line.
LONGEST = 400


def reserved(seen: Mapping[Any, Any]) -> list[str]:
    """Return the lines of all reservations, those that begin first before others.

    :param seen: {node: what it said}, as snapshots.py keeps it.
    """
    found = [
        (one["start"], one["end"], f" on {node}" if len(seen) > 1 else "", one)
        for node, said in seen.items()
        for one in (said.get("reservations") or [] if isinstance(said, dict) else [])
    ]
    lines = [_line(one, on_node) for _start, _end, on_node, one in sorted(found, key=lambda one: one[:3])]
    more = [f"and {len(lines) - TOLD} more reservations"] if lines[TOLD:] else []
    return lines[:TOLD] + more


def _line(one: Mapping[str, Any], on_node: str) -> str:
    """Return `reserved on proxy1: 2 tp64.8x8 for ann from 2026-12-07 08:00 CET to 2026-12-11 18:00 CET (course)`."""
    lacks = f"; but {one_line(brief(one['lacks'], LONGEST))}" if one["lacks"] else ""
    return f"reserved{on_node}: {one_line(brief(one['text'], LONGEST))}{lacks}"
