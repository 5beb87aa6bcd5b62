# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""APC's two command lines: `apc>` of AOS 5 and later, and `APC>`, which AOS 3 has beside its menus."""

from __future__ import annotations

import re
from typing import NamedTuple

from .driver import Answer

ROW = re.compile(r"^[ \t]*(\d+)[ \t]*:(.*):[ \t]*(On|Off)\*?[ \t]*$", re.M | re.I)
#: "E000: Success", "E001: Successfully Issued", or the older line's "OK".
SUCCESS = re.compile(r"^[ \t]*(?:E00[01]\b.*|OK)[ \t]*$", re.M)
UNKNOWN_COMMAND = re.compile(r"^[ \t]*E101\b", re.M)


class Words(NamedTuple):
    """What a command line calls things."""

    status: str
    on: str
    off: str


NEW, OLD = Words("olStatus all", "olOn", "olOff"), Words("status", "on", "off")


class CommandLine:
    """A command line; which of the two is told by its prompt, and by its not knowing the other's words."""

    name = "cli"

    def __init__(self, line):
        self._line = line
        self._words, self._others = (OLD, NEW) if line.screen.endswith("APC>") else (NEW, OLD)

    def status(self):
        rows = ROW.findall(self._ask("status"))
        if not rows:
            raise self._line.unknown("list of outlets")
        return {number: state.lower() for number, _name, state in rows}

    def switch(self, outlets, state):
        answer = self._order(outlets, state)
        if answer.accepted or len(outlets) == 1:
            return dict.fromkeys(outlets, answer)
        # A list with one outlet that this account may not switch is refused whole.
        return {outlet: self._order([outlet], state) for outlet in outlets}

    def logout(self, _deadline):
        self._line.send("exit")

    def _order(self, outlets, state):
        text = self._ask(state, ",".join(outlets))
        words = " ".join(line.strip() for line in text.splitlines()[1:-1] if line.strip())
        return Answer(bool(SUCCESS.search(text)), words)

    def _ask(self, command, outlets=""):
        text = self._said(command, outlets)
        if UNKNOWN_COMMAND.search(text):
            self._words, self._others = self._others, self._words
            text = self._said(command, outlets)
        return text

    def _said(self, command, outlets):
        self._line.send(f"{getattr(self._words, command)} {outlets}".rstrip())
        mark, text = self._line.read("cli", "user")
        if mark == "user":
            raise self._line.lost("it logged us off")
        return text
