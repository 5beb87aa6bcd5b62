# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.reconcile_table`: what board_reconcile found, of all owners, as one aligned table."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.filter.status_table import aligned

DOCUMENTATION = r"""
name: reconcile_table
short_description: Show what board_reconcile found as a table
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Turns results of M(hetero.compute.board_reconcile) into lines with aligned columns, a heading first, and a sum last.
positional: _input
options:
  _input:
    description: Results of M(hetero.compute.board_reconcile), one for each owner.
    type: list
    elements: dict
    required: true
seealso:
  - module: hetero.compute.board_reconcile
"""

EXAMPLES = r"""
- name: Show what was found
  hetero.compute.show:
    lines: "{{ found.results | hetero.compute.reconcile_table }}"
# NODE    RECORD     INSTANCE  OUTLET  SSH      FOUND                             DONE
# board0  running    jackie    on      own key  missing: export                   put back
# board1  power off  -         on      -        its outlet is on, and nobody has  off, cleaned, free
# board2  power off  -         off     -        as recorded
# 3 boards: 1 as recorded, 2 mended, 0 to look at
"""

RETURN = r"""
_value:
  description: The lines of the table.
  type: list
  elements: str
"""

HEADING = ("NODE", "RECORD", "INSTANCE", "OUTLET", "SSH", "FOUND", "DONE")
AS_RECORDED = [{"found": "as recorded", "done": ""}]


def rows_of(board):
    """A row for each thing found of a board; the board itself stands in the first."""
    first = [board[key] or "-" for key in ("name", "recorded", "instance", "power", "ssh")]
    for number, found in enumerate(board["found"] or AS_RECORDED):
        own = first if number == 0 else [""] * len(first)
        yield (*own, found["found"], "not touched" if found["done"] is None else found["done"])


def reconcile_table(results):
    if isinstance(results, (str, dict)) or not all(isinstance(one, dict) and "others" in one for one in results):
        raise AnsibleFilterError("hetero.compute.reconcile_table needs a list of results of board_reconcile")
    boards = [board for one in results for board in one["boards"]]
    rows = [row for board in boards for row in rows_of(board)]
    others = [f"of no board in the boards file, not touched: {text}" for one in results for text in one["others"]]
    fine = sum(not board["found"] for board in boards)
    to_see = sum(any(found["done"] is None for found in board["found"]) for board in boards)
    mended = len(boards) - fine - to_see
    return [
        *aligned([HEADING, *rows]),
        *others,
        f"{len(boards)} boards: {fine} as recorded, {mended} mended, {to_see} to look at",
    ]


class FilterModule:
    def filters(self):
        return {"reconcile_table": reconcile_table}
