# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.status_table`: nodes as an aligned table. What is in it was found out by board_info."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.filter.fits import fits as types_that_fit
from ansible_collections.hetero.compute.plugins.module_utils.instances import age, left

DOCUMENTATION = r"""
name: status_table
short_description: Show boards as a table
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Turns boards into lines with aligned columns, a heading first, for M(hetero.compute.show).
positional: _input, fits
options:
  _input:
    description: Boards as M(hetero.compute.board_info) returns them.
    type: list
    elements: dict
    required: true
  fits:
    description: Instance types by name. Column FITS names those that a board can serve.
    type: dict
    default: {}
seealso:
  - plugin: hetero.compute.fits
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show who has which board
  hetero.compute.show:
    lines: "{{ info.boards | hetero.compute.status_table(fits=hetero_instance_types) }}"
# NODE    KIND   ARCH       FITS      STATE      INSTANCE  SINCE  NOTE
# board0  board  TILEPro64  tp64.8x8  running    jackie    2 min
# board1  board  TILEPro64  tp64.8x8  power off  -         -
"""

RETURN = r"""
_value:
  description: The lines of the table.
  type: list
  elements: str
"""

HEADING = ("NODE", "KIND", "ARCH", "FITS", "STATE", "INSTANCE", "SINCE", "NOTE")
#: Between two columns.
GAP = "  "


def row(board, fits):
    """A board's cells, as text."""
    since = board.get("since_seconds")
    return (
        board["name"],
        "board",
        board["arch"],
        ", ".join(types_that_fit(fits, board)) or "-",
        board["state"],
        board.get("instance") or "-",
        "-" if since is None else age(since),
        ", ".join(filter(None, (lease(board), board.get("note")))),
    )


def lease(board):
    """What is left of a board's lease ("lease 3 h left"), nothing where it has no end."""
    seconds = board.get("lease_seconds")
    return "" if seconds is None else f"lease {left(seconds)}"


def aligned(rows):
    """Rows of texts as lines, each column as wide as it needs."""
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(rows[0]))]
    return [GAP.join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in rows]


def status_table(boards, fits=None):
    if isinstance(boards, (str, dict)) or not all(isinstance(board, dict) and "state" in board for board in boards):
        raise AnsibleFilterError(
            "hetero.compute.status_table needs a list of boards, as board_info returns them, before the bar"
        )
    return aligned([HEADING] + [row(board, fits or {}) for board in boards])


class FilterModule:
    def filters(self):
        return {"status_table": status_table}
