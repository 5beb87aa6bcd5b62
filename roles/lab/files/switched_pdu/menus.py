# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""APC's numbered menus as tables: a further generation of the firmware is a further table.

What an action does to the outlets, and what a fault switch makes of it, is left to the PDU.
"""

from __future__ import annotations

from .terminal import CTRL_C, CTRL_L, ESC

DELAYED = 2.0  # seconds of a "Delayed" action; real units have it per outlet
ACTIONS = {
    "Immediate On": ("on", 0),
    "Immediate Off": ("off", 0),
    "Immediate Reboot": ("reboot", 0),
    "Delayed On": ("on", DELAYED),
    "Delayed Off": ("off", DELAYED),
    "Delayed Reboot": ("reboot", DELAYED),
}
#: Menus of AOS 3.9.2, administrator: screen → (title, items), an item being (label, screen it leads to).
AOS3 = {
    "main": (
        "Control Console",
        [("Device Manager", "device"), ("Network", "blank"), ("System", "blank"), ("Logout", "logout")],
    ),
    "device": (
        "Device Manager",
        [("Phase Management", "blank"), ("Outlet Management", "manage"), ("Power Supply Status", "blank")],
    ),
    "manage": ("Outlet Management", [("Outlet Control/Configuration", "list"), ("Outlet Restriction", "blank")]),
    "outlet": (None, [("Control Outlet", "control"), ("Configure Outlet", "blank")]),
    "control": ("Control Outlet", [(action, "act") for action in ACTIONS] + [("Cancel", "back")]),
    "blank": ("Settings", []),
}


class Menus:
    """Numbered menus: a table of screens and the way that led to the present one."""

    banner = (
        "American Power Conversion               Network Management Card AOS      v3.9.2\n"
        "(c) Copyright 2009 All Rights Reserved  Rack PDU APP                     v3.9.2\n"
    )
    menus = AOS3

    def __init__(self, pdu, terminal):
        self._pdu, self._terminal = pdu, terminal
        self._outlet = None

    def _screen(self, name):
        """(title, text between title and items, items) of a screen."""
        if name == "list":
            items = [(f"{outlet.name:<32.32} {outlet.state.upper()}", "outlet") for outlet in self._pdu.outlets]
            return "Outlet Control/Configuration", "", [*items, ("Master Control/Configuration", "outlet")]
        title, items = self.menus[name]
        if name == "outlet" and self._outlet > len(self._pdu.outlets):
            return "Master Control/Configuration", "", items
        if name == "outlet":
            outlet = self._pdu.outlets[self._outlet - 1]
            text = f"        Name         : {outlet.name}\n        Outlet       : {outlet.number}\n"
            return f"Outlet {outlet.number}", f"{text}        State        : {outlet.state.upper()}\n\n", items
        return title, "", items

    async def serve(self):
        way = ["main"]
        while True:
            title, text, items = self._screen(way[-1])
            rows = "".join(f"    {number:2}- {label}\n" for number, (label, _to) in enumerate(items, 1))
            head = f"------- {title} ".ljust(79, "-")
            back = "Back" if way[1:] else "Main Menu"
            foot = f"     <ESC>- {back}, <ENTER>- Refresh, <CTRL-L>- Event Log"
            await self._terminal.show(f"\n{head}\n\n{text}{rows}\n{foot}\n> ")
            typed = await self._terminal.line(keys=(ESC, CTRL_C, CTRL_L))
            if typed == CTRL_C:
                way = ["main"]
            elif typed == ESC:
                way = way[:-1] or ["main"]
            elif typed.isdigit() and 1 <= int(typed) <= len(items):
                label, target = items[int(typed) - 1]
                if target == "logout":
                    return
                if target == "act":
                    if await self._act(label) == CTRL_C:
                        way = ["main"]
                elif target == "back":
                    way.pop()
                else:
                    if way[-1] == "list":
                        self._outlet = int(typed)
                    way.append(target)

    async def _act(self, label):
        """Ask, act, and tell; returns the last that was typed."""
        every = self._outlet > len(self._pdu.outlets)
        numbers = [outlet.number for outlet in self._pdu.outlets] if every else [self._outlet]
        whom = "all outlets" if every else f"outlet {self._outlet} named '{self._pdu.outlets[self._outlet - 1].name}'"
        ask = "        Enter 'YES' to continue or <ENTER> to cancel : "
        await self._terminal.show(f"\n        {label}\n\n        This command will act on {whom}.\n\n{ask}")
        typed = await self._terminal.line(keys=(ESC, CTRL_C))
        if typed != "YES":
            return typed
        await self._pdu.command(ACTIONS[label], numbers)
        await self._terminal.show("\n        Command successfully issued.\n\n        Press <ENTER> to continue...")
        return await self._terminal.line(keys=(ESC, CTRL_C))
