# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PDUs as bad as a seed makes them, byte by byte, which count each outlet that they switch.

Its menus and its command line are right, as the lab's are (roles/lab/files/pdu.py); how they are drawn is not: rows
that are cut, doubled, pending or out of order, names that look like entries and prompts, banners and titles with
prompts in them, prompts that come twice, other ends of line, telnet options at any byte, late and split screens.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time

IAC_NOISE = (b"\xff\xf1", b"\xff\xfb\x03", b"\xff\xfd\x18", b"\xff\xfa\x18\x01\xff\xf0", b"\xff\xfe\x22")
NAMES = (
    "Master Control/Configuration",
    "9- Master Control/Configuration",
    "Lamp ON",
    "OFF",
    "3- Lamp   OFF",
    "> ",
    "apc>",
    "1- Immediate Off",
    "Control Outlet",
    "Logout",
    "Outlet : 2",
    "outlet 5",
    "outlet 4 named 'x",
    "it's",
    "Device Manager",
    "Outlet Control/Configuration",
    "User Name :",
    "Press <ENTER> to continue...",
    "Enter 'YES' to continue or <ENTER> to cancel :",
    "-------- Control Console --------",
    "all outlets",
    "E000: Success",
    "PENDING",
    "board 1",
    "db: main",
)
PASSWORDS = (
    "xyzzy-1957",
    "ON",
    "OFF",
    "1",
    "2",
    "- ",
    "Outlet",
    "Master Control",
    "Immediate",
    "YES",
    "apc>",
    "3- ",
    "*",
)
BANNERS = (
    "\nUser Name : is on your badge\nPassword  : ask the desk\n",
    "\n> authorised users only\n> \nothers leave\n",
    "\napc> is the prompt\napc>\nof the other unit\n",
    "\n     1- Immediate Off\n     2- Device Manager\n> 2\n",
    "\n------- Control Console -----\n\n     1- Device Manager\n> \n------- note -----\n",
    "\nPress <ENTER> to continue...\n",
)
PROMPTS = ("apc>", "APC>", "jackie@apc>", "rack-7>", "apc-3f>", "device>")
#: What is wrong with a PDU, each by chance; and what is wrong with its list of outlets.
ODDITIES = (
    *(
        "names",
        "password",
        "banner",
        "again",
        "late again",
        "twice",
        "late twice",
        "bell",
        "osc",
        "ends",
        "options",
        "split",
        "slow",
    ),
    *("no echo", "prompt", "paging", "pending", "unknown", "cut row", "cut list", "joined", "doubled", "shuffled"),
    *(
        "numberless",
        "no master",
        "other outlet",
        "stuck",
        "mute",
        "drop",
        "state cut",
        "question",
        "initializing",
        "tells",
    ),
)
ROWS = ("pending", "unknown", "cut row", "cut list", "joined", "doubled", "numberless", "state cut")
#: Nothing that a user does not meet every day; a PDU with these only must obey.
HARMLESS = {"names", "password", "bell", "osc", "options", "split", "slow", "paging", "no master", "tells"}
ACTIONS = ("Immediate On", "Immediate Off", "Immediate Reboot", "Delayed On", "Delayed Off", "Delayed Reboot", "Cancel")
ESC, CTRL_C = "\x1b", "\x03"


class Gone(Exception):
    """Its user is gone, or it has hung up."""


class OddPdu:
    """One PDU on a port of the loopback.

    :param seed: decides everything about it.
    :param odd: the oddities that it has, of ODDITIES; None for some by the seed.
    """

    def __init__(self, seed, odd=None, dialect=None, outlets=None):
        self._dice = dice = random.Random(f"pdu {seed}")
        some = [*dice.sample(ODDITIES, dice.choice((0, 1, 1, 2, 4))), *dice.sample(ROWS, dice.choice((0, 0, 1)))]
        self.odd = set(some if odd is None else odd)
        self.dialect = dialect or dice.choice(("menu", "menu direct", "menu2", "cli", "cli"))
        count = outlets or dice.choice((2, 5, 8, 8, 8, 24))
        self.states = {number: dice.choice(("on", "off")) for number in range(1, count + 1)}
        plain = {number: f"Outlet {number}" for number in self.states}
        self.names = {number: dice.choice(NAMES) for number in self.states} if "names" in self.odd else plain
        self.password = dice.choice(PASSWORDS) if "password" in self.odd else PASSWORDS[0]
        self.prompt = dice.choice(PROMPTS) if "prompt" in self.odd else "apc>"
        self.end = dice.choice(("\r", "\n", "\n\r", "\r\r\n")) if "ends" in self.odd else "\r\n"
        self.page = dice.choice((2, 5, 7)) if "paging" in self.odd else 22
        #: Each outlet that was told to switch, in order: (outlet, what became of it).
        self.switched = []
        #: The outlet whose row is drawn badly, where rows are.
        self.odd_row = dice.randrange(1, count + 1)
        #: Whether an oddity that comes by chance comes each time.
        self.always = False
        self._breaks = dice.randrange(3, 30)
        self._screens = 0
        self._typed, self._after_cr = [], False
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.settings = {"driver": "apc", "host": "127.0.0.1", "port": self._socket.getsockname()[1]}
        self.secrets = {"username": "apc", "password": self.password}
        self.sound = False  # whether it ended without a traceback of its own, once closed
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self):
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(30)

    def _serve(self):
        while True:
            try:
                self._line, _address = self._socket.accept()
            except OSError:
                self.sound = True
                return
            with self._line:
                self._line.settimeout(20)
                self._line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._typed, self._after_cr = [], False
                with contextlib.suppress(Gone, OSError):
                    self._session()

    def _comes(self, chance):
        return self._dice.random() < chance or self.always

    # What comes in

    def _word(self, secret=False):
        """What is typed up to an end of line; ESC and Ctrl-C count alone."""
        word = ""
        while True:
            while not self._typed:
                self._take(self._line.recv(1024))
            key = self._typed.pop(0)
            if key in (ESC, CTRL_C):
                return key
            if key == "\r":
                self._send("\r\n")
                return word
            word += key
            if "no echo" not in self.odd:
                self._send("*" if secret and "tells" not in self.odd else key)

    def _take(self, data):
        if not data:
            raise Gone
        data = iter(data)
        for byte in data:
            if byte == 255:
                command = next(data, 0)
                if command in (251, 252, 253, 254):
                    next(data, 0)
                while command == 250 and next(data, 240) != 240:
                    pass
            elif self._after_cr and byte in b"\n\0":
                self._after_cr = False
            else:
                self._after_cr = byte == 13
                self._typed.append("\r" if byte in b"\r\n" else chr(byte))

    # What goes out

    def _send(self, text):
        self._line.sendall(text.encode())

    def _show(self, text, mark):
        """A screen and the prompt at its end, as bad as this PDU draws them."""
        dice, odd = self._dice, self.odd
        self._screens += 1
        if self._screens == self._breaks and "mute" in odd:
            text, mark = text[: dice.randrange(len(text) + 1)], ""
        if self._screens == self._breaks and "drop" in odd:
            self._draw(text[: dice.randrange(len(text) + 1)])
            raise Gone
        if "bell" in odd:
            mark = "\a" + mark
        if "osc" in odd:
            mark = (
                dice.choice(("\x1b]0;apc> \a", "\x1b]2;\n> \x1b\\", "\x1b]0;User Name : \a")).replace("\n", " ") + mark
            )
        if "slow" in odd:
            time.sleep(dice.random() / 20)
        shown = text.replace("\n", self.end) + mark.replace("\n", self.end)
        self._draw(shown)
        if mark and self._comes(0.3):
            if odd & {"twice", "late twice"}:
                time.sleep(dice.choice((0.02, 0.1, 0.4)) if "late twice" in odd else 0)
                self._draw(shown)
            if odd & {"again", "late again"}:
                time.sleep(dice.choice((0.02, 0.1, 0.4)) if "late again" in odd else 0)
                self._draw(mark.replace("\n", self.end))

    def _draw(self, text):
        data, dice = text.encode(), self._dice
        if "options" in self.odd:
            for _noise in range(3):
                at = dice.randrange(len(data) + 1)
                if b"\xff" not in data[max(0, at - 8) : at + 8]:
                    data = data[:at] + dice.choice(IAC_NOISE) + data[at:]
        parts = sorted(dice.randrange(len(data) + 1) for _cut in range(3 if "split" in self.odd else 0))
        for start, end in zip([0, *parts], [*parts, len(data)]):
            self._line.sendall(data[start:end])
            if parts:
                time.sleep(dice.choice((0, 0.002, 0.03)))

    # What it says

    def _session(self):
        self._line.sendall(b"\xff\xfb\x01\xff\xfb\x03")
        head = ""
        if "initializing" in self.odd and self._dice.random() < 0.5:
            self._send("\r\nThe Switched Rack PDU is still initializing. Please try again later.\r\n")
            raise Gone
        for _attempt in range(3):
            self._show(head + (self._dice.choice(BANNERS) if "banner" in self.odd else ""), "\nUser Name : ")
            user = self._word()
            self._show(self._dice.choice(BANNERS) if "banner" in self.odd else "", "\nPassword  : ")
            if (user, self._word(secret=True)) == ("apc", self.password):
                break
        else:
            raise Gone
        version = "v6.5.0" if self.dialect == "cli" else "v2.7.0"  # no command line beside the menus
        head = f"\n\nAmerican Power Conversion    Network Management Card AOS    {version}\n"
        head += "(c) Copyright 2009 All Rights Reserved  Rack PDU APP   v6.5.0\n"
        head += self._dice.choice(BANNERS) if "banner" in self.odd else ""
        if self.dialect == "cli":
            self._command_line(head)
        else:
            self._menus(head)

    def _switch(self, outlets, state):
        """Do it, and count it."""
        for outlet in outlets:
            self.switched.append((outlet, state))
            if "stuck" not in self.odd or outlet % 2:
                self.states[outlet] = state

    def _menus(self, head):
        way, chosen = ["main"], None
        while True:
            typed = self._screen(head, way[-1], chosen)
            head = ""
            items = self._items(way[-1])
            if typed == CTRL_C:
                way = ["main"]
            elif typed == ESC:
                way = way[:-1] or ["main"]
            elif typed.isdigit() and way[-1] == "list" and 1 <= int(typed) <= len(self.states) + 1:
                chosen = int(typed)
                if "other outlet" in self.odd and chosen <= len(self.states):
                    chosen = chosen % len(self.states) + 1  # its items are in another order than its outlets
                way.append("outlet")
            elif typed.isdigit() and 1 <= int(typed) <= len(items):
                target = items[int(typed) - 1][1]
                if target == "logout":
                    return
                if target == "act":
                    self._act(items[int(typed) - 1][0], chosen)
                elif target:
                    way.append(target)

    def _items(self, name):
        acts = [(action, "act") for action in ACTIONS]
        control = acts if self.dialect == "menu direct" else [("Control Outlet", "control"), ("Configure Outlet", "")]
        if self.dialect == "menu2":
            device = [("Phase Monitor", ""), ("Outlet Restriction", ""), ("Outlet Control/Configuration", "list")]
        else:
            device = [("Phase Management", ""), ("Outlet Management", "manage"), ("Power Supply Status", "")]
        return {
            "main": [("Device Manager", "device"), ("Network", ""), ("System", ""), ("Logout", "logout")],
            "device": device,
            "manage": [("Outlet Control/Configuration", "list"), ("Outlet Restriction", "")],
            "outlet": control,
            "control": acts,
        }.get(name, [])

    def _screen(self, head, name, chosen):
        """Show one of the menus; what is typed at its end."""
        titles = {"main": "Control Console", "device": "Device Manager", "manage": "Outlet Management"}
        titles.update({"list": "Outlet Control/Configuration", "control": "Control Outlet"})
        every = chosen == len(self.states) + 1
        title = titles.get(name) or ("Master Control/Configuration" if every else self.names[chosen])
        text = head + f"\n------- {title} ".ljust(79, "-") + "\n\n"
        if name in ("outlet", "control") and not every:
            text += f"        Name         : {self.names[chosen]}\n        Outlet       : {chosen}\n"
            text += f"        State        : {self.states[chosen].upper()}\n\n"
        rows = self._rows() if name == "list" else []
        rows += [f"{number:6}- {label}\n" for number, (label, _to) in enumerate(self._items(name), 1)]
        while len(rows) > self.page:
            self._show(text + "".join(rows[: self.page]), "\n        Press <ENTER> to continue...")
            typed = self._word()
            if typed in (ESC, CTRL_C):
                return typed
            text, rows = "\n", rows[self.page :]
        foot = "" if "no echo" in self.odd else "\n     <ESC>- Back, <ENTER>- Refresh, <CTRL-L>- Event Log"
        self._show(text + "".join(rows) + foot, "\n> ")
        return self._word()

    def _rows(self):
        """The lines of the list of outlets."""
        dice, odd = self._dice, self.odd
        rows = [f"{number:6}- {self.names[number]:<46} {state.upper()}\n" for number, state in self.states.items()]
        at = self.odd_row - 1
        for oddity, row in (
            ("pending", lambda row: f"{row[:55]}PENDING\n"),
            ("unknown", lambda row: f"{row[:55]}{dice.choice(('ERROR', 'N/A', '-', 'REBOOT'))}\n"),
            ("cut row", lambda row: f"{row[: dice.randrange(4, 55)]}\n"),
            ("state cut", lambda row: f"{row[:54].rstrip()}\n"),
            ("joined", lambda row: row.rstrip("\n")),
            ("doubled", lambda row: row + dice.choice((row, row.replace("OFF\n", "ON\n")))),
            ("numberless", lambda row: f"        {row[8:]}"),
        ):
            if oddity in odd and self._comes(0.9) and (oddity != "state cut" or len(rows) > 2):
                rows[at] = row(rows[at])
        if "shuffled" in odd:
            dice.shuffle(rows)
        master = [] if "no master" in odd else [f"{len(self.states) + 1:6}- Master Control/Configuration\n"]
        if "cut list" in odd and self._comes(0.7):
            rows, master = rows[: max(1, at)], master if self.always else dice.choice(([], master))
        return rows + master

    def _act(self, label, chosen):
        every = chosen == len(self.states) + 1
        if "question" in self.odd and not every and self._comes(0.5):
            chosen = chosen % len(self.states) + 1  # the menu moved, and says so in its question only
        whom = "all outlets" if every else f"outlet {chosen} named '{self.names[chosen]}'"
        ask = f"\n        {label}\n\n        This command will act on {whom}.\n"
        self._show(ask, "\n        Enter 'YES' to continue or <ENTER> to cancel : ")
        if self._word() != "YES":
            return
        words = label.split()
        if words[0] == "Immediate":
            self._switch(list(self.states) if every else [chosen], {"On": "on"}.get(words[1], "off"))
        self._show("\n        Command successfully issued.\n", "\n        Press <ENTER> to continue...")
        self._word()

    def _command_line(self, head):
        answer = head + "\n"
        while True:
            self._show(answer, self.prompt)
            words = self._word().split()
            answer = self._answer(words[0].lower(), words[1:]) if words else "\n"
            if words and words[0].lower() in ("exit", "quit"):
                return

    def _answer(self, verb, words):
        if verb == "olstatus":
            return "E000: Success\n" + "".join(self._lines()) + "\n"
        if verb not in ("olon", "oloff"):
            return "E101: Command Not Found\n\n"
        try:
            outlets = [int(word) for word in "".join(words).split(",")]
        except ValueError:
            outlets = [0]
        if not set(outlets) <= set(self.states):
            return "E102: Parameter Error\n\n"
        self._switch(outlets, verb[2:])
        return "E000: Success\n\n"

    def _lines(self):
        """The lines of `olStatus all`."""
        dice, odd = self._dice, self.odd
        lines = [f" {number}: {self.names[number]}: {state.title()}\n" for number, state in self.states.items()]
        at = self.odd_row - 1
        head, _colon, _state = lines[at].rpartition(": ")
        for oddity, line in (
            ("pending", f"{head}: Pending\n"),
            ("unknown", f"{head}: {dice.choice(('Error', 'N/A', '-', 'Reboot'))}\n"),
            ("cut row", f"{lines[at][: dice.randrange(3, len(head))]}\n"),
            ("state cut", f"{head}\n"),
            ("joined", lines[at].rstrip("\n")),
            ("doubled", lines[at] + dice.choice((lines[at], lines[at].replace(": Off\n", ": On\n")))),
            ("numberless", f" {lines[at].partition(':')[2]}"),
        ):
            if oddity in odd and self._comes(0.9):
                lines[at] = line
        if "shuffled" in odd:
            dice.shuffle(lines)
        if "cut list" in odd and self._comes(0.7):
            lines = lines[:at]
        return lines
