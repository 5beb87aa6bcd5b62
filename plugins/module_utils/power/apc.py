# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""APC's switched PDUs: the numbered menus and the `apc>` command line, told apart by what is read after the login.

In menus the way is found by the titles on the screen, never by fixed numbers, because firmware, model and account
change them. Whether an outlet really switched is for others to read back.
"""

from __future__ import annotations

import re
import time

try:
    import pexpect
except ImportError:
    pexpect = None

from ..deadline import Deadline
from ..errors import BadInput, Busy, HeteroError, Lost
from .driver import Answer, PowerDriver

#: How a session is opened, as an argument list, and the usual port.
TRANSPORTS = {"telnet": (["telnet", "-E", "{host}", "{port}"], 23)}
#: Longest wait for one answer (seconds); a real unit needs up to a few seconds for a screen.
ANSWER = 10.0
#: Longest wait for the log-out (seconds): a session left open locks everybody out until it idles away.
FAREWELL = 3.0
ENTER, ESC, CTRL_C = "\r", "\x1b", "\x03"

#: What ends a screen.
MARKS = {
    "user": re.compile(r"(?:^|[\r\n])\s*(?:user name|login|username)\s*:", re.I),
    "password": re.compile(r"(?:^|[\r\n])\s*password\s*:", re.I),
    "menu": re.compile(r"[\r\n]>"),
    "cli": re.compile(r"[\r\n][\w.@-]*apc>", re.I),
    "more": re.compile(r"press <enter> to continue", re.I),
    "confirm": re.compile(r"enter 'yes' to continue[^:]*:", re.I),
}
#: The wording of a PDU that has no place for us is not documented; this is what is likely.
TAKEN = re.compile(r"another user|some(?:one|body) else|already logged|in use|still initializing|try again later", re.I)
#: What the transport says where nobody will ever answer.
UNREACHABLE = re.compile(r"could not resolve|unknown host|not known|no route|network is unreachable", re.I)

ITEM = re.compile(r"^[ \t]*(\d+)-[ \t]+(\S.*?)[ \t]*$", re.M)
ROW = re.compile(r"^[ \t]*(\d+)-(.*?)[ \t]\*?(ON|OFF)\*?[ \t]*\*?[ \t]*$", re.M)
CLI_ROW = re.compile(r"^[ \t]*(\d+):(.*):[ \t]*(On|Off)\*?[ \t]*$", re.M | re.I)
OUTLET = re.compile(r"^[ \t]*Outlet[ \t]*:[ \t]*(\d+)[ \t]*$", re.M)
#: The way from any menu to the list of outlets: the first title that a screen has is taken.
TO_THE_LIST = (r"outlet control", r"outlet management", r"device manager")
#: The deepest known way to the list and back has four screens.
LEVELS = 6


class Line:
    """The conversation: what is sent, what is read up to a mark, and the last screen, without the password."""

    def __init__(self, name, argv, password, deadline):
        if pexpect is None:
            raise HeteroError("Python library pexpect is missing", name, "install python3-pexpect on this node")
        self.name, self._password, self._deadline = name, password, deadline
        self.screen = ""
        self.answers = 0
        try:
            self._child = pexpect.spawn(argv[0], argv[1:], encoding="utf-8", codec_errors="replace", echo=False)
        except pexpect.ExceptionPexpect as error:
            raise HeteroError(f"program {argv[0]} is not installed", name, f"install {argv[0]}") from error
        self._child.delaybeforesend = None
        # A session ends by the PDU's hanging up, after which there is nothing to be patient with.
        self._child.ptyproc.delayafterclose = self._child.ptyproc.delayafterterminate = 0.02

    def send(self, text, end=ENTER):
        try:
            self._child.send(text + end)
        except OSError as error:
            raise self.lost("the session ended", ended=True) from error

    def read(self, *marks, within=None):
        """(mark, text before and with it) for whichever of the marks comes first. :raises Lost:"""
        limit = min(ANSWER, (within or self._deadline).left)
        start = time.monotonic()
        try:
            found = self._child.expect_list([MARKS[mark] for mark in marks], timeout=limit)
        except pexpect.EOF as error:
            self.screen = self._plain(self._child.before).strip() or self.screen
            raise self.lost("the session ended", ended=True) from error
        except pexpect.TIMEOUT as error:
            self.screen = self._plain(self._child.before).strip() or self.screen
            raise self.lost(f"no answer within {time.monotonic() - start:.1f} s") from error
        self.answers += 1
        self.screen = self._plain(self._child.before + self._child.after)
        return marks[found], self.screen

    def hung_up(self, deadline):
        """Wait until the PDU has ended the session."""
        return self._child.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=deadline.left) == 0

    def close(self):
        self._child.close(force=True)

    def _plain(self, text):
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]|[^\n\x20-\uffff]", "", text.replace("\r\n", "\n"))
        return text.replace(self._password, "********") if self._password else text

    @property
    def words(self):
        """The last screen, short enough for an error."""
        lines = [line.strip() for line in self.screen.splitlines() if line.strip(" -")]
        return " | ".join(lines[-12:])[-700:]

    def lost(self, what, ended=False):
        seen = f"last seen: {self.words}" if self.words else "it had said nothing"
        return Lost(f"{what}; {seen}", self.name, "look at the PDU, or raise timeout", ended=ended, screen=self.screen)

    def unknown(self, wanted):
        """The error for a screen that is not what was expected."""
        what = f"its screen has no {wanted}: {self.words or 'an empty screen'}"
        return HeteroError(what, self.name, "operate it by hand and report this screen", screen=self.screen)


class Menus:
    """The numbered menus of AOS 2 and 3."""

    name = "menu"

    def __init__(self, line):
        self._line = line
        self._at = line.screen

    def status(self):
        if ROW.search(self._at):
            self._show("")
        else:
            self._down_to_the_list()
        return {number: state.lower() for number, _name, state in ROW.findall(self._at)}

    def switch(self, outlets, state):
        if not ROW.search(self._at):
            self._down_to_the_list()
        rows = {number for number, _name, _state in ROW.findall(self._at)}
        master = self._find((r"master control",))
        if master and len(rows) > 1 and rows == set(outlets):
            self._show(master)
            action = self._action(state)
            if action:
                return dict.fromkeys(outlets, self._act(action))
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
        return self._act(action)

    def _action(self, state):
        """The number of the action, one level down where the outlet's own screen does not have it; None without."""
        titles = (rf"^immediate {state}\b",)
        if not self._find(titles):
            control = self._find((r"\bcontrol\b",))
            if control:
                self._show(control)
        return self._find(titles)

    def _act(self, action):
        """Confirm an action, and go back to the list."""
        self._line.send(action)
        mark, _text = self._line.read("confirm", "menu")
        if mark != "confirm":
            raise self._line.unknown("question for YES")
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
            if ROW.search(self._at):
                return
        raise self._line.unknown("list of outlets")

    def _up_to_the_list(self):
        """Back from an action; a number is never typed into a menu that is not the list."""
        for _level in range(LEVELS):
            if ROW.search(self._at):
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
        while True:
            mark, part = self._line.read("menu", "more", "user")
            self._at += part
            if mark == "user":
                raise self._line.lost("it logged us off")
            if "still initializing" in part:
                raise Busy("is still initializing", self._line.name, "wait until it has started")
            if mark == "menu":
                return self._at
            self._line.send("")

    def _find(self, titles):
        """The number of the item with the first of these titles, or None."""
        items = ITEM.findall(self._at)
        for title in titles:
            for number, text in items:
                if re.search(title, text, re.I):
                    return number
        return None


class CommandLine:
    """The `apc>` command line of AOS 5 and later."""

    name = "cli"

    def __init__(self, line):
        self._line = line

    def status(self):
        rows = CLI_ROW.findall(self._ask("olStatus all"))
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
        text = self._ask(f"ol{state.title()} {','.join(outlets)}")
        words = " ".join(line.strip() for line in text.splitlines()[1:-1] if line.strip())
        return Answer("E000" in words, words)

    def _ask(self, command):
        self._line.send(command)
        mark, text = self._line.read("cli", "user")
        if mark == "user":
            raise self._line.lost("it logged us off")
        return text


DIALECTS = {dialect.name: dialect for dialect in (Menus, CommandLine)}


class Apc(PowerDriver):
    """A session with an APC PDU over telnet."""

    _line = _speak = None

    def login(self):
        user = self.secrets.get("username")
        if not user:
            raise BadInput("no user name is known for it", self.name, "give username, or a credentials file")
        password = self.secrets.get("password") or ""
        self._speak = None
        self._line = Line(self.name, self._argv(), password, self.deadline)
        self._await("user")
        self._line.send(user)
        if self._await("user", "password") == "user":  # the first line may have been eaten by the transport's set-up
            self._line.send(user)
            self._await("password")
        self._line.send(password)
        mark = self._await("menu", "cli", "user", after="the password")
        if mark == "user":
            raise HeteroError(
                f"refuses user '{user}' with the password given", self.name, f"correct the credential of {self.name}"
            )
        self.dialect = mark
        self._speak = DIALECTS[mark](self._line)

    def _argv(self):
        transport, host = self.settings.get("transport") or "telnet", str(self.settings.get("host") or "")
        if transport not in TRANSPORTS:
            raise BadInput(f"no such transport (known: {', '.join(TRANSPORTS)})", self.name, "correct its transport")
        if not host or host.startswith("-"):
            raise BadInput(f"'{host}' is no host", self.name, "give its name or address")
        argv, port = TRANSPORTS[transport]
        return [part.format(host=host, port=self.settings.get("port") or port) for part in argv]

    def _await(self, *marks, after=None):
        """Which mark of the login comes; a PDU that hangs up instead has no place for us, unless it saw a password."""
        try:
            return self._line.read(*marks)[0]
        except Lost as lost:
            raise self._hung_up(lost, after) from lost

    def _hung_up(self, lost, after):
        """What a PDU that hung up during the login has meant by it."""
        screen, words = lost.facts["screen"], self._line.words
        if UNREACHABLE.search(screen):
            return HeteroError(f"cannot be reached: {words}", self.name, "check its host and port")
        if TAKEN.search(screen) or (lost.ended and not after):
            what = f"has no place for us: {words or 'it closed the connection'}"
            return Busy(what, self.name, "wait for its other user", screen=screen)
        if lost.ended:
            remedy = f"check the credential of {self.name}"
            return HeteroError(f"closed the connection after {after}", self.name, remedy, screen=screen)
        return Lost(lost.what, lost.thing, lost.remedy, **lost.facts)

    def status(self):
        return self._speak.status()

    def switch(self, outlets, state):
        return self._speak.switch(list(outlets), state)

    def logout(self):
        if self._line is None:
            return
        farewell = Deadline(max(1.0, min(FAREWELL, self.deadline.left)))
        try:
            if self._speak is not None:
                self._speak.logout(farewell)
                self._line.hung_up(farewell)
        except HeteroError:
            pass  # whatever its screen is now, hanging up is all that is left, and `close` does it
        finally:
            self._line.close()
            self._line = None
