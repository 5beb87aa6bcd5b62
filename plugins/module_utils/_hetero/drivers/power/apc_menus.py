# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""APC's numbered menus of AOS 2 and 3, whatever part of them the account may see.

The way is found by titles on the screen and never by fixed numbers, because firmware, model and account change them.
Each screen is recognised before anything is typed into it. YES is typed only after the PDU has named the outlet.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ...core.errors import Busy
from .apc_screens import Screen, Unread
from .driver import Answer
from .terminal import CTRL_C, ENTER, ESC

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from .apc_screens import Row
    from .terminal import Line

#: Names that a question for YES quotes, which may look like anything.
QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
ASKED_ACTION = re.compile(r"\b(?:immediate|delayed|sequenced?) (?:on|off|reboot)\b", re.I)
ASKED_OUTLET = re.compile(r"\boutlet #?(\d+)\b", re.I)
ALL_OUTLETS = re.compile(r"\ball outlets\b|\bmaster\b", re.I)
#: Titles on the way from any menu to the list of outlets. The first one that a screen has is taken.
TO_THE_LIST = (r"^outlet control\b", r"^outlet management\b", r"^device manager\b")
#: Number of menus down to the list; the deepest known way, to the list and back, has four screens.
LEVELS = 6


class Menus:
    """The numbered menus of AOS 2 and 3."""

    name = "menu"

    def __init__(self, line: Line) -> None:
        self._line = line
        self._at = Screen(line.screen)

    def status(self) -> dict[str, str]:
        if self._at.is_list:
            self._show("")
        self._to_the_list()
        rows, _master = self._read()
        return {row.number: row.state for row in rows}

    @property
    def listed(self) -> set[str]:
        """The numbers on the list of outlets, if that is the screen, else none."""
        return {row.number for row in self._read()[0]} if self._at.is_list else set()

    def together(self, outlets: list[str]) -> str | None:
        """Return the number of the entry that switches exactly these outlets at once, or None."""
        self._to_the_list()
        rows, master = self._read()
        return master if len(outlets) > 1 and {row.number for row in rows} == set(outlets) else None

    def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
        master = self.together(outlets)
        if master:
            self._show(master)
            action = None if self._at.is_list else self._action(state, None)
            if action:
                return dict.fromkeys(outlets, self._act(action, state, None))
            self._to_the_list(back=True)  # this account may only switch single outlets
        return {outlet: self._one(outlet, state) for outlet in outlets}

    def logout(self, deadline: Deadline) -> None:
        self._line.send(CTRL_C, end="")
        _mark, text = self._line.read("menu", within=deadline)
        way_out = Screen(text).find(r"^log ?out\b")
        if way_out is None:
            raise self._line.unknown("item 'Logout'")
        self._line.send(way_out)

    def _one(self, outlet: str, state: str) -> Answer:
        row = next((row for row in self._read()[0] if row.number == outlet), None)
        if row is None:
            raise self._line.unknown(f"outlet {outlet}")
        self._show(outlet)
        action = self._action(state, row)
        if action is None:
            raise self._line.unknown(f"item 'Immediate {state.title()}'")
        return self._act(action, state, row)

    def _action(self, state: str, row: Row | None) -> str | None:
        """Return the number of the action, which may be one level down from the outlet's screen, or None."""
        self._named = False  # whether the PDU has said that this is the outlet, or the entry for all outlets
        self._check(row)
        title = rf"^immediate {state}\b"
        if self._at.find(title) is None:
            control = self._at.find(r"\bcontrol\b")
            if control:
                self._show(control)
                self._check(row)
        return self._at.find(title)

    def _check(self, row: Row | None) -> None:
        """Raise HeteroError unless the screen is that of the row's outlet, or of all outlets if there is no row."""
        outlets = self._at.outlets
        if self._at.is_list or outlets - ({row.number} if row else set()):
            raise self._line.unknown(f"outlet {row.number}" if row else "Master Control")
        self._named |= bool(outlets) if row else bool(ALL_OUTLETS.search(self._at.title))

    def _act(self, action: str, state: str, row: Row | None) -> Answer:
        """Confirm an action, and go back to the list. A question that names another outlet gets no YES."""
        self._line.send(action)
        mark, text = self._line.read("confirm", "menu")
        if mark != "confirm":
            raise self._line.unknown("question for YES")
        self._check_question(text, state, row)
        self._line.send("YES")
        mark, text = self._line.read("more", "menu")
        self._at = Screen(text)
        words = " ".join(line for line in map(str.strip, text.splitlines()) if line not in ("", "YES", ">"))
        words = re.sub(r"press <enter> to continue[. ]*", "", words, flags=re.I).strip()
        if mark == "more":
            self._show("")
        self._to_the_list(back=True)
        return Answer("success" in words.lower(), self._line.masked(words))

    def _check_question(self, text: str, state: str, row: Row | None) -> None:
        """Raise HeteroError unless a question is for this action and for the row's outlet, or for all outlets."""
        if row and row.name:
            name = r"\s+".join(map(re.escape, row.name.split()))
            text = re.sub(rf"\bnamed\s+(['\"]?){name}\1", "", text)
        text = QUOTED.sub("", text)
        actions, outlets = {action.lower() for action in ASKED_ACTION.findall(text)}, set(ASKED_OUTLET.findall(text))
        if actions - {f"immediate {state}"}:
            raise self._line.unknown(f"question for 'Immediate {state.title()}'")
        if row:
            named, wrong = outlets == {row.number}, outlets - {row.number} or ALL_OUTLETS.search(text)
        else:
            named, wrong = bool(ALL_OUTLETS.search(text)), outlets
        if wrong or not (named or self._named):
            raise self._line.unknown(f"question for outlet {row.number}" if row else "question for all outlets")

    def _to_the_list(self, back: bool = False) -> None:
        """Go down to the list, or back to it from an action's screens. No number is typed into an unknown menu."""
        for _level in range(2 * LEVELS):
            if self._at.is_list:
                return
            way = next(filter(None, map(self._at.find, TO_THE_LIST)), None)
            if way is None and not back:
                break
            self._show(*((way,) if way else (ESC, "")))
        raise self._line.unknown("list of outlets")

    def _read(self) -> tuple[list[Row], str | None]:
        """Return (rows, number of the entry for all outlets, or None) of the list; raise HeteroError if it is not
        readable.
        """
        try:
            return self._at.read()
        except Unread as error:
            what = f"its list of outlets is not understood, and nothing is switched by it ({error})"
            raise self._line.odd(self._line.masked(what)) from error

    def _show(self, text: str, end: str = ENTER) -> None:
        """Type a text and read the next screen with all its pages."""
        self._line.send(text, end)
        _mark, shown = self._line.read_pages("menu")
        if "still initializing" in shown:
            raise Busy("is still initializing", self._line.name, "wait until it has started")
        self._at = Screen(shown)
