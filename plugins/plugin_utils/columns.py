# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables as text, and what is too long for a row of theirs as lines below it."""

from __future__ import annotations

import re
import textwrap
from typing import Any, Sequence

#: Between two columns.
GAP = "  "
#: Columns of a table; what does not fit stands below its row, this far to the right.
WIDTH = 100
INDENT = "    "
#: A command line that a message has somebody type, which stays in one piece: of several, after && a shell goes on.
COMMAND = re.compile(
    r"ansible-playbook hetero\.compute\.\w+(?: -e \S+)*"
    r"|\b(?:mkdir -p|touch|mv(?: --backup=numbered)?|cp -p)(?: /\S+)+(?: &&)?"
)
UNBROKEN = "\xa0"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of texts as lines, each column as wide as it needs."""
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(rows[0]))]
    return [GAP.join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in rows]


def left_beside(rows: Sequence[Sequence[str]], width: int = WIDTH) -> int:
    """How many columns are left to the right of rows of cells."""
    return width - sum(max(map(len, column)) + len(GAP) for column in zip(*rows))


def wrapped(text: str, first: str = INDENT) -> list[str]:
    """A text as lines, which break between words only, and not in what is to be typed."""
    whole = COMMAND.sub(lambda found: found[0].replace(" ", UNBROKEN), text)
    indents: dict[str, Any] = dict(initial_indent=first, subsequent_indent=INDENT)
    lines = textwrap.wrap(whole, WIDTH, break_long_words=False, break_on_hyphens=False, **indents)
    return [line.replace(UNBROKEN, " ") for line in lines]
