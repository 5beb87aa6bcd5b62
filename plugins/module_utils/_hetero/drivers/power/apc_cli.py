# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""APC's two command lines: `apc>` of AOS 5 and later, and `APC>`, which AOS 3 has beside its menus."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, cast

from ...core.errors import HeteroError
from .driver import Answer

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from .terminal import Line

ROW = re.compile(r"^ *(\d+) *:(.*): *(On|Off|Pending)\*? *$", re.I)
#: A line that begins or ends like a row. If it is no row, a row was cut, or two were joined.
LIKE_A_ROW = re.compile(r"^ *\d+ *(?::|$)|: *(?:On|Off)\*? *$", re.I)
TWO_ROWS = re.compile(r": *(?:On|Off|Pending)\*? +\d+ *:", re.I)
#: "E000: Success", "E001: Successfully Issued", or "OK" of the older command line.
SUCCESS = re.compile(r"^ *(?:E00[01]\b.*|OK) *$", re.M)
CODE = re.compile(r"^ *E\d{3}:")
UNKNOWN_COMMAND = re.compile(r"^ *E101\b", re.M)


class Words(NamedTuple):
    """The commands of a command line."""

    status: str
    on: str
    off: str


NEW, OLD = Words("olStatus all", "olOn", "olOff"), Words("status", "on", "off")


class CommandLine:
    """One of the two command lines. Its prompt tells which, and that it does not know the other's commands."""

    name = "cli"

    def __init__(self, line: Line) -> None:
        self._line = line
        prompt = cast("re.Match[str]", line.marks["cli"].search(line.screen))[1]
        # From now on a screen ends with exactly this prompt.
        self._prompt = re.compile(rf"(?:^|\n) *{re.escape(prompt)}(?: *{re.escape(prompt)})*")
        line.marks["cli"] = re.compile(self._prompt.pattern + r" *\Z")
        self._words, self._others = (OLD, NEW) if prompt == "APC>" else (NEW, OLD)

    def status(self) -> dict[str, str]:
        states, names = {}, {}
        for line in self._ask("status").splitlines():
            row = ROW.match(line)
            if row is None and LIKE_A_ROW.search(line) and not CODE.match(line):
                raise self._unread(f"'{line.strip()}' is no row")
            if row and (TWO_ROWS.search(line) or row[1] in states):
                raise self._unread(f"'{line.strip()}' is {'there twice' if row[1] in states else 'more than a row'}")
            if row:
                states[row[1]], names[row[1]] = row[3].lower(), row[2].strip()
        if not states:
            raise self._line.unknown("list of outlets")
        for number, name in names.items():
            following = str(int(number) + 1)
            if following not in states and re.search(rf"\b{following} *:", name):
                raise self._unread(f"'{name}' may be two rows")
        return states

    def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
        answer = self._order(outlets, state)
        if answer.accepted or len(outlets) == 1:
            return dict.fromkeys(outlets, answer)
        # A list with one outlet that this account may not switch is refused as a whole.
        return {outlet: self._order([outlet], state) for outlet in outlets}

    def logout(self, _deadline: Deadline) -> None:
        self._line.send("exit")

    def _unread(self, why: str) -> HeteroError:
        what = f"its list of outlets is not understood, and nothing is switched by it ({why})"
        return self._line.odd(self._line.masked(what))

    def _order(self, outlets: list[str], state: str) -> Answer:
        text = self._ask(state, ",".join(outlets))
        words = " ".join(line.strip() for line in text.splitlines() if line.strip())
        return Answer(bool(SUCCESS.search(text)), self._line.masked(words))

    def _ask(self, command: str, outlets: str = "") -> str:
        text = self._said(command, outlets)
        if UNKNOWN_COMMAND.search(text):
            self._words, self._others = self._others, self._words
            text = self._said(command, outlets)
        return text

    def _said(self, command: str, outlets: str) -> str:
        self._line.send(f"{getattr(self._words, command)} {outlets}".rstrip())
        _mark, text = self._line.read_pages("cli")
        # A prompt within the text means that the screen began anew; one after the text was merely printed twice.
        return next((part for part in reversed(self._prompt.split(text)) if part.strip()), "")
