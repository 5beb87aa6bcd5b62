# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables as text. What is too long for a row becomes lines below it."""

from __future__ import annotations

import re
import textwrap
from typing import Any, Sequence

#: Between two columns.
GAP = "  "
#: Characters of a table's line; and how far text below a row is indented.
WIDTH = 100
INDENT = "    "
#: A command line that people type, which is not broken. Of several, each is one: after && a shell goes on.
COMMAND = re.compile(
    r"ansible-playbook hetero\.compute\.\w+(?: -e \S+)*"
    r"|\b(?:mkdir -p|touch|mv(?: --backup=numbered)?|cp -p)(?: /\S+)+(?: &&)?"
)
UNBROKEN = "\xa0"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of texts as lines, with columns as wide as needed."""
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(rows[0]))]
    return [GAP.join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in rows]


def left_beside(rows: Sequence[Sequence[str]], width: int = WIDTH) -> int:
    """Return how many characters are left to the right of rows of cells."""
    return width - sum(max(map(len, column)) + len(GAP) for column in zip(*rows))


def wrapped(text: str, first: str = INDENT) -> list[str]:
    """Return a text as lines that break only between words and not within commands."""
    whole = COMMAND.sub(lambda found: found[0].replace(" ", UNBROKEN), text)
    indents: dict[str, Any] = dict(initial_indent=first, subsequent_indent=INDENT)
    lines = textwrap.wrap(whole, WIDTH, break_long_words=False, break_on_hyphens=False, **indents)
    return [line.replace(UNBROKEN, " ") for line in lines]
