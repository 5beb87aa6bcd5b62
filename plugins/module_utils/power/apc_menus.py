# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""APC's numbered menus of AOS 2 and 3, whatever the account may see of them.

The way is found by the titles on the screen, never by fixed numbers, because firmware, model and account change them.
"""

from __future__ import annotations

import re

from ..errors import Busy
from .driver import Answer
from .terminal import CTRL_C, ENTER, ESC, MARKS

ITEM = re.compile(r"^[ \t]*(\d+)-[ \t]+(\S.*?)[ \t]*$", re.M)
ROW = re.compile(r"^[ \t]*(\d+)-(.*?)[ \t]\*?(ON|OFF)\*?[ \t]*\*?[ \t]*$", re.M)
OUTLET = re.compile(r"^[ \t]*Outlet[ \t]*:[ \t]*(\d+)[ \t]*$", re.M)
#: What a question for YES may name, and the names that it quotes, which may look like it.
QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
ASKED_ACTION = re.compile(r"\b(?:immediate|delayed) (?:on|off|reboot)\b", re.I)
ASKED_OUTLET = re.compile(r"\boutlet #?(\d+)\b", re.I)
#: The way from any menu to the list of outlets: the first title that a screen has is taken.
TO_THE_LIST = (r"outlet control", r"outlet management", r"device manager")
#: The deepest known way to the list and back has four screens.
LEVELS = 6
#: More pages than the list of the largest PDU has; without an end a PDU gone wrong would hold its play.
PAGES = 32


class Menus:
    """The numbered menus of AOS 2 and 3."""

    name = "menu"

    def __init__(self, line):
        self._line = line
        self._at = line.screen

    def status(self):
        if self.listed:
            self._show("")
        else:
            self._down_to_the_list()
        return {number: state.lower() for number, _name, state in ROW.findall(self._at)}

    @property
    def listed(self):
        """The numbers on the list of outlets, where that is the screen."""
        return {number for number, _name, _state in ROW.findall(self._at)}

    def together(self, outlets):
        """The number of the entry that switches these outlets at once and no other; None where there is none."""
        if not self.listed:
            self._down_to_the_list()
        if len(outlets) > 1 and self.listed == set(outlets):
            return self._find((r"master control",))
        return None

    def switch(self, outlets, state):
        master = self.together(outlets)
        if master:
            self._show(master)
            action = self._action(state)
            if action:
                return dict.fromkeys(outlets, self._act(action, state))
            self._up_to_the_list()
        return {outlet: self._one(outlet, state) for outlet in outlets}

    def logout(self, deadline):
        self._line.send(CTRL_C, end="")
        _mark, self._at = self._line.read("menu", within=deadline)
        self._line.send(self._find((r"log ?out",)) or "")

    def _one(self, outlet, state):
        self._show(outlet)
        shown = OUTLET.search(self._at)
        if shown and shown.group(1) != outlet:
            raise self._line.unknown(f"outlet {outlet}")
        action = self._action(state)
        if action is None:
            raise self._line.unknown(f"item 'Immediate {state.title()}'")
        return self._act(action, state, outlet)

    def _action(self, state):
        """The number of the action, one level down where the outlet's own screen does not have it; None without."""
        titles = (rf"^immediate {state}\b",)
        if not self._find(titles):
            control = self._find((r"\bcontrol\b",))
            if control:
                self._show(control)
        return self._find(titles)

    def _act(self, action, state, outlet=None):
        """Confirm an action, and go back to the list. A question that names another one gets no YES."""
        self._line.send(action)
        mark, text = self._line.read("confirm", "menu")
        if mark != "confirm":
            raise self._line.unknown("question for YES")
        text = QUOTED.sub("", text)
        actions, outlets = ASKED_ACTION.findall(text), ASKED_OUTLET.findall(text)
        if actions and f"immediate {state}" not in map(str.lower, actions):
            raise self._line.unknown(f"question for 'Immediate {state.title()}'")
        if outlet and outlets and outlet not in outlets:
            raise self._line.unknown(f"question for outlet {outlet}")
        self._line.send("YES")
        mark, self._at = self._line.read("more", "menu")
        said = [line.strip() for line in self._at.splitlines()]
        words = " ".join(line for line in said if line not in ("", "YES", ">") and not MARKS["more"].match(line))
        if mark == "more":
            self._show("")
        self._up_to_the_list()
        return Answer("success" in words.lower(), words)

    def _down_to_the_list(self):
        for _level in range(LEVELS):
            way = self._find(TO_THE_LIST)
            if way is None:
                break
            self._show(way)
            if self.listed:
                return
        raise self._line.unknown("list of outlets")

    def _up_to_the_list(self):
        """Back from an action; a number is never typed into a menu that is not the list."""
        for _level in range(LEVELS):
            if self.listed:
                return
            if self._find(TO_THE_LIST):
                self._down_to_the_list()
                return
            self._show(ESC, end="")
        raise self._line.unknown("list of outlets")

    def _show(self, text, end=ENTER):
        """The next screen whole, all its pages."""
        self._line.send(text, end)
        self._at = ""
        for _page in range(PAGES):
            mark, part = self._line.read("menu", "more", "user")
            self._at += part
            if mark == "user":
                raise self._line.lost("it logged us off")
            if "still initializing" in part:
                raise Busy("is still initializing", self._line.name, "wait until it has started")
            if mark == "menu":
                return self._at
            self._line.send("")
        raise self._line.unknown(f"end after {PAGES} pages")

    def _find(self, titles):
        """The number of the item with the first of these titles, or None."""
        items = ITEM.findall(self._at)
        for title in titles:
            for number, text in items:
                if re.search(title, text, re.I):
                    return number
        return None
