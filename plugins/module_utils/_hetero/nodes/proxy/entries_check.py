# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of tftp_proxy_boards and tftp_proxy_pdus by the kinds of their values, so that one that is wrong hides
nothing of the others beside it. preflight.py and words_check.py check what the values mean together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Mapping

from ...core.errors import HeteroError
from ...core.spelling import meant_by
from ...core.typed_keys import TableOf, read_all
from ...site.proxy_config import PDU, WIRE

if TYPE_CHECKING:
    from ...core.findings import Findings
    from ...core.typed_keys import Record
    from .setup_plan import Plan


class Entry(Dict[str, Any]):
    """An entry without its wrong keys.

    :ivar wrong: the keys that are wrong, and those that were meant by them. That they are missing has been told.
    """

    wrong: frozenset[str] = frozenset()


def right_types(plan: Plan, found: Findings) -> tuple[dict[str, Entry], dict[str, Entry]]:
    """Return (wiring, PDUs), each by name; each value that proxy.json may not hold is a defect."""
    return _entries(WIRE, plan.wiring, "boards", found), _entries(PDU, plan.pdus, "pdus", found)


def _entries(kind: Record, given: Mapping[str, Any], variable: str, found: Findings) -> dict[str, Entry]:
    right = {}
    for name, one in given.items():
        mistakes = _mistakes(kind, name, one, variable)
        found.defects += mistakes
        if not isinstance(one, dict):
            continue
        wrong = {key for key in one if mistakes and _mistakes(kind, name, {key: one[key]}, variable)}
        right[name] = entry = Entry({key: value for key, value in one.items() if key not in wrong})
        entry.wrong = frozenset([*wrong, *filter(None, (meant_by(str(key), kind.keys) for key in wrong))])
    return right


def _mistakes(kind: Record, name: str, one: object, variable: str) -> list[HeteroError]:
    mistakes: list[HeteroError] = []
    read_all(TableOf(kind), {name: one}, f"tftp_proxy_{variable}", mistakes)
    return mistakes
