# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables as text."""

from __future__ import annotations

#: Between two columns.
GAP = "  "


def aligned(rows):
    """Rows of texts as lines, each column as wide as it needs."""
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(rows[0]))]
    return [GAP.join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in rows]
