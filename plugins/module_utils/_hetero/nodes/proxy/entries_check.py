# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of tftp_proxy_boards and tftp_proxy_pdus by the kinds of their values, so that one that is wrong hides
nothing of the others beside it. What the values mean together is preflight.py's and words_check.py's.
"""

from __future__ import annotations

from ...core.errors import HeteroError
from ...core.spelling import meant_by
from ...core.typed_keys import TableOf, read_all
from ...site.proxy_config import PDU, WIRE


class Entry(dict):
    """What an entry says, without what is wrong. `wrong` are the keys of that, also those that were meant: what is not
    there because of that has been told already.
    """

    wrong: frozenset = frozenset()


def right_types(plan, found):
    """(wiring, PDUs), by name an Entry; each value that is none that proxy.json may hold is a defect."""
    right: list[dict] = []
    for variable, kind, given in (("boards", WIRE, plan.wiring), ("pdus", PDU, plan.pdus)):
        right.append({})
        for name, one in given.items():
            mistakes = _mistakes(kind, name, one, variable)
            found.defects += mistakes
            if not isinstance(one, dict):
                continue
            wrong = {key for key in one if mistakes and _mistakes(kind, name, {key: one[key]}, variable)}
            right[-1][name] = entry = Entry({key: value for key, value in one.items() if key not in wrong})
            entry.wrong = frozenset(wrong | {meant_by(str(key), kind.keys) for key in wrong})
    return right


def _mistakes(kind, name, one, variable):
    mistakes: list[HeteroError] = []
    read_all(TableOf(kind), {name: one}, f"tftp_proxy_{variable}", mistakes)
    return mistakes
