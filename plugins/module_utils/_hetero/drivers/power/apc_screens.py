# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a screen of APC's numbered menus says: its title, its items, and the rows of the list of outlets.

Users name outlets, so a name may look like any item. A list is therefore read completely or not at all, and no item is
looked for by its words on a screen with rows. apc_menus.py decides what to choose.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

TITLE = re.compile(r"^ *-{3,} *([^-\s].*?) *-* *$")
ITEM = re.compile(r"^ *(\d+)- *(.*?) *$")
#: A row after its number: the name, and ON or OFF, perhaps with a `*`, or PENDING.
ROW = re.compile(r"^ *(\d+)-(?P<name>.*?)(?P<gap> +)(?P<state>\*?(?:ON|OFF) ?\*?|(?:(?:ON|OFF) +)?\(?PENDING\)?) *$")
MASTER = re.compile(r"master control(?:/\w+)?", re.I)
#: Lines that may stand between rows: ends of pages, keys, the prompt.
BETWEEN = re.compile(r"^ *(?:press <enter> to continue[. ]*|<\w+.*>- .*|\?- help.*|>|) *$", re.I)
MORE = re.compile(r" *press <enter> to continue[. ]*$", re.I)
OUTLET = re.compile(r"^ *Outlet *: *(\d+) *$", re.M)


class Row(NamedTuple):
    """An outlet on the list. Its number is the item that selects it."""

    number: str
    name: str
    state: str


class Unread(Exception):
    """A list that cannot be read completely; the text says why."""


class Screen:
    """A screen with all its pages. If the text has several screens, it is the last one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.title, self._lines, last = "", [], ""
        for line in text.split("\n"):
            title = TITLE.match(line)
            if not title:
                self._lines.append(line)
            elif not (title[1] == self.title and MORE.match(last)):  # the next page of the same screen
                self.title, self._lines = title[1], []
            last = line if line.strip() else last
        self._items = [match.groups() for match in map(ITEM.match, self._lines) if match]

    @property
    def is_list(self) -> bool:
        """Return whether the menu's items are outlets; one row of an outlet, or the entry for all, shows that."""
        return any(map(ROW.match, self._lines)) or any(MASTER.match(label) for _number, label in self._items)

    @property
    def outlets(self) -> set[str]:
        """The outlets whose own screen it says it is."""
        return set(OUTLET.findall("\n".join(self._lines)))

    def find(self, title: str) -> str | None:
        """Return the number of the only item with this title (a regular expression), or None; on a list always None."""
        numbers = [number for number, _label in self._items]
        if self.is_list or len(set(numbers)) < len(numbers):
            return None
        found = [number for number, label in self._items if re.search(title, label, re.I)]
        return found[0] if len(found) == 1 else None

    def read(self) -> tuple[list[Row], str | None]:
        """Return (rows, number of the entry for all outlets, or None).

        :raises Unread: something on it is no row.
        """
        rows, columns, master = [], [], None
        for line in self._lines:
            item, row = ITEM.match(line), ROW.match(line)
            if not item:
                if rows and not BETWEEN.match(line):
                    raise Unread(f"'{line.strip()}' is no row")
            elif master:
                raise Unread(f"'{line.strip()}' follows the entry for all outlets")
            elif int(item[1]) != len(rows) + 1:
                raise Unread(f"'{line.strip()}' is where {len(rows) + 1} was expected")
            elif row:
                state = "pending" if "PENDING" in row["state"] else row["state"].strip(" *").lower()
                rows.append(Row(item[1], row["name"].strip(), state))
                columns.append((row.start("state") + row["state"].startswith("*"), row))
            elif rows and MASTER.fullmatch(item[2]):
                master = item[1]
            else:
                raise Unread(f"'{line.strip()}' has no state that is known")
        if not rows:
            raise Unread("it is empty")
        self._check_columns(columns)
        # without an entry after it, the last row may be two whose line end was lost
        if master is None and re.search(rf"\b(?:ON|OFF)\W* {len(rows) + 1}- ", rows[-1].name):
            raise Unread(f"'{rows[-1].name}' may be two rows")
        return rows, master

    @staticmethod
    def _check_columns(columns: list[tuple[int, re.Match[str]]]) -> None:
        """Raise Unread for a state that may be part of a name whose own state is cut off.

        That is one left of the other states' column, or with less than two blanks after the name.
        """
        column, times = Counter(at for at, _row in columns).most_common(1)[0]
        aligned = 2 * times > len(columns) and times > 1
        for at, row in columns:
            if at != column and ((aligned and at < column) or len(row["gap"]) < 2):
                raise Unread(f"'{row[0].strip()}' may have no state")
