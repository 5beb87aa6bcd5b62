# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""APC's numbered menus as tables: a further generation of the firmware or kind of account is a further row.

What an action does to the outlets, and what a fault switch makes of it, is left to the PDU.
"""

from __future__ import annotations

from typing import NamedTuple

from .terminal import CTRL_C, CTRL_L, ESC

DELAYED = 2.0  # seconds of a "Delayed" action; real units have it per outlet
PAGE = 22  # rows of a list before it stops and asks for ENTER
MORE = "\n        Press <ENTER> to continue..."
ACTIONS = {
    "Immediate On": ("on", 0),
    "Immediate Off": ("off", 0),
    "Immediate Reboot": ("reboot", 0),
    "Delayed On": ("on", DELAYED),
    "Delayed Off": ("off", DELAYED),
    "Delayed Reboot": ("reboot", DELAYED),
    "Cancel": ("cancel", 0),
}


class Firmware(NamedTuple):
    """What a generation of the firmware shows to a kind of account."""

    version: str
    device: tuple  # items of Device Manager, each (label, screen that it leads to)
    manage: tuple = ()  # items of Outlet Management, which AOS 2 does not have
    control: bool = True  # whether an outlet has a menu of its own above the actions


AOS2 = Firmware(
    "v2.7.0",
    (
        ("Phase Monitor/Configuration", "blank"),
        ("Outlet Restriction Configuration", "blank"),
        ("Outlet Control/Configuration", "list"),
        ("Power Supply Status", "blank"),
    ),
)
AOS3 = Firmware(
    "v3.9.2",
    (("Phase Management", "blank"), ("Outlet Management", "manage"), ("Power Supply Status", "blank")),
    (("Outlet Control/Configuration", "list"), ("Outlet Restriction", "blank")),
)
#: The numbers are those that fence_apc, pdudaemon and powerman count on. A `user` is no administrator.
FIRMWARE = {
    "menu": AOS3,
    "menu-direct": AOS3._replace(control=False),
    "menu-user": AOS3._replace(manage=(("Outlet Control", "list"),), control=False),
    "menu2": AOS2,
    "menu2-direct": AOS2._replace(control=False),
    "menu2-user": AOS2._replace(
        device=(("Phase Monitor", "blank"), ("Outlet Control", "list"), ("Power Supply Status", "blank")),
        control=False,
    ),
}
MAIN = (("Device Manager", "device"), ("Network", "blank"), ("System", "blank"), ("Logout", "logout"))


class Menus:
    """Numbered menus: the firmware's table of screens, and the way that led to the present one."""

    def __init__(self, pdu, terminal, name):
        self._pdu, self._terminal = pdu, terminal
        self._outlet = None
        self._firmware = firmware = FIRMWARE[name]
        self.banner = (
            f"American Power Conversion               Network Management Card AOS      {firmware.version}\n"
            f"(c) Copyright 2009 All Rights Reserved  Rack PDU APP                     {firmware.version}\n"
        )
        self._actions = tuple((action, "act") for action in ACTIONS)

    def _screen(self, name):
        """(title, text between title and items, items) of a screen."""
        if name == "list":
            items = [(f"{outlet.name:<32.32} {outlet.state.upper()}", "outlet") for outlet in self._pdu.outlets]
            return "Outlet Control/Configuration", "", [*items, ("Master Control/Configuration", "outlet")]
        if name == "outlet":
            items = (("Control Outlet", "control"), ("Configure Outlet", "blank"))
            return (*self._of_the_outlet(), items if self._firmware.control else self._actions)
        fixed = {
            "main": ("Control Console", MAIN),
            "device": ("Device Manager", self._firmware.device),
            "manage": ("Outlet Management", self._firmware.manage),
            "control": ("Control Outlet", self._actions),
            "blank": ("Settings", ()),
        }
        title, items = fixed[name]
        return title, "", items

    def _of_the_outlet(self):
        """(title, text) of the outlet that was chosen, or of all of them."""
        if self._outlet > len(self._pdu.outlets):
            return "Master Control/Configuration", ""
        outlet = self._pdu.outlets[self._outlet - 1]
        text = f"        Name         : {outlet.name}\n        Outlet       : {outlet.number}\n"
        return f"Outlet {outlet.number}", f"{text}        State        : {outlet.state.upper()}\n\n"

    async def serve(self):
        way = ["main"]
        while True:
            title, text, items = self._screen(way[-1])
            typed = await self._shown(title, text, items, "Back" if way[1:] else "Main Menu")
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
                else:
                    if way[-1] == "list":
                        self._outlet = int(typed)
                    way.append(target)

    async def _shown(self, title, text, items, back):
        """Show a screen, in pages where it is long; what is typed at its end, or the key that leaves it before."""
        keys = (ESC, CTRL_C, CTRL_L)
        rows = [f"    {number:2}- {label}\n" for number, (label, _to) in enumerate(items, 1)]
        head = f"------- {title} ".ljust(79, "-")
        page = f"\n{head}\n\n{text}"
        while len(rows) > PAGE:
            await self._terminal.show(page + "".join(rows[:PAGE]) + MORE)
            page, rows = "\n", rows[PAGE:]
            typed = await self._terminal.line(keys=keys)
            if typed in keys:
                return typed
        foot = f"     <ESC>- {back}, <ENTER>- Refresh, <CTRL-L>- Event Log"
        await self._terminal.show(f"{page}{''.join(rows)}\n{foot}\n> ")
        return await self._terminal.line(keys=keys)

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
        await self._terminal.show(f"\n        Command successfully issued.\n{MORE}")
        return await self._terminal.line(keys=(ESC, CTRL_C))
