# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""APC's switched PDUs over telnet or ssh: log in, recognise by the prompt how the PDU speaks, log out.

The dialects (apc_menus.py, apc_cli.py) know what is said in between. Others read back whether an outlet switched.
"""

from __future__ import annotations

import os
import re
import tempfile
from typing import TYPE_CHECKING, Any, Callable

from ...core.deadline import Deadline
from ...core.errors import BadInput, Busy, HeteroError, Lost
from ...core.this_node import THIS_NODE
from . import terminal
from .apc_cli import CommandLine
from .apc_menus import Menus
from .driver import NAMELESS, PowerDriver
from .known_dialect import KnownDialect

if TYPE_CHECKING:
    from .driver import Answer

#: Longest wait for the log-out in seconds. A session that is left open locks everybody out until it times out.
FAREWELL = 3.0
#: Words of a PDU that serves somebody else. They are not documented; these are likely ones.
TAKEN = re.compile(r"another user|some(?:one|body) else|already logged|in use|still initializing|try again later", re.I)
#: The client's own words on its way to the PDU. A screen with only these has no word of the PDU.
ON_THE_WAY = re.compile(r"^ *(?:Trying |Connected to |Escape character |Warning: Permanently added ).*$", re.M)
#: A name server that does not answer may come back. The words are the C library's (EAI_AGAIN), for any client.
NO_NAME_YET = re.compile(r"temporary failure in name resolution", re.I)
NO_SSH = "update its firmware, or use telnet or SNMP"
#: Words of the transport after which asking again does not help: (words, what is wrong, what to do).
HOPELESS = (
    (
        re.compile(r"could not resolve|unknown host|not known|no route|network is unreachable", re.I),
        "cannot be reached",
        "{way}",
    ),
    (
        re.compile(r"host identification has changed|host key verification failed", re.I),
        "shows another ssh host key than {before}",
        "find out why; if it was replaced, {mend}",
    ),
    (
        re.compile(r"protocol major versions differ", re.I),
        "knows only version 1 of ssh",
        NO_SSH,
    ),
    (
        re.compile(r"invalid key length", re.I),
        "shows an ssh host key that is too short to prove anything",
        "give it one of 1024 bits or more, or use telnet or SNMP",
    ),
    (
        re.compile(r"unable to negotiate|no matching", re.I),
        "offers only ssh algorithms that {lack}",
        "{allow}",
    ),
)
DENIED = re.compile(r"permission denied|too many authentication failures", re.I)
#: Words above a command line whose prompt is not `apc>`, by which it is known to be APC's.
OURS = re.compile(r"\bapc\b|American Power Conversion|Schneider|Network Management Card|Rack PDU", re.I)
#: A last line that waits for input.
PROMPT = re.compile(r"[>#$%:?] *$")
DIALECTS = {dialect.name: dialect for dialect in (Menus, CommandLine)}
#: The firmware with a command line beside its menus, as it calls itself above the main menu.
TWO_DIALECTS = re.compile(r"\bAOS\s+v3\.")


class Apc(PowerDriver):
    """A session with an APC PDU.

    Settings: host, port, transport (telnet, ssh), legacy_ssh, host_key (its public ssh keys, one on each line; no other
    is accepted), known_hosts (without host_key: the file in which the first key that it shows is kept), command_line
    (AOS 3: whether to use the command line that it has beside its slow menus; if it is not set, the command line is
    used by telnet for several outlets, and only if it shows the same outlets as the menus; from then on, for all).
    """

    _line: Any = None  # terminal.Line, from login to logout
    _speak: Any = None  # the dialect that it was recognised to speak
    #: Whether the firmware has both dialects, whether the menus were left for the command line, and the outlets that
    #: must be seen there.
    _both = _went_over = False
    _listed: Any = None
    _folder: Any = None  # holds its pinned key during a session

    def login(self) -> None:
        known = self._known
        seen = known.outlets if known else None
        self._listed = self._listed or seen
        if self._listed:
            try:
                self._log_in(command_line=True)
                if set(self.status()) == self._listed:
                    if known and self._listed != seen:
                        known.note(self._listed)
                    return
            except Busy:
                raise
            except HeteroError:
                pass  # whatever is wrong with it, the menus have been seen to work
            self.logout()
            self._listed, self._went_over = None, True
            if known:
                known.forget()
        self._log_in(command_line=self.settings.get("command_line"))
        self._both = self._is_free and self.dialect == Menus.name and bool(TWO_DIALECTS.search(self._line.screen))

    @property
    def _is_free(self) -> bool:
        """Whether the settings leave the dialect to this driver."""
        return self.settings.get("command_line") is None and self.settings.get("transport") in (None, "telnet")

    @property
    def _known(self) -> KnownDialect | None:
        """What earlier sessions found out; None where nothing is kept."""
        if self.run_folder is None or not self._is_free:
            return None
        place = {word: str(self.settings.get(word) or "") for word in ("host", "port")}
        return KnownDialect(self.run_folder, self.name, dict(place, username=self.secrets.get("username") or ""))

    def _log_in(self, command_line: bool | None) -> None:
        user = self.secrets.get("username")
        if not user:
            raise BadInput("no user name is known for it", self.name, "give username, or a credentials file")
        if user.startswith("-"):
            raise BadInput(f"'{user}' is no user name", self.name, "correct username")
        password = self.secrets.get("password") or ""
        self._speak = None
        argv = terminal.argv(self.name, self._with_key(), user)
        again = "password" if argv[0] == "ssh" else "user"
        self._line = terminal.Line(self.name, argv, password, self.deadline)
        if again == "password":
            self._await("password")
        else:
            self._await("user")
            self._line.send(user)
            if self._await("user", "password") == "user":  # the first line may have been lost at the start
                self._line.send(user)
                self._await("password")
        # APC's manual of the command line, page 5
        self._line.send(f"{password} -c" if command_line else password, secret=True)
        mark = self._await("menu", "cli", again, after="the password", read=self._line.read_pages)
        if mark == again:
            raise self._refused()
        if mark == "cli" and not OURS.search(self._line.screen):
            raise self._line.unknown("command line of an APC")
        self.dialect = mark
        self._speak = DIALECTS[mark](self._line)

    def _with_key(self) -> dict[str, Any]:
        """Return the settings, with a file for its host keys if one is needed."""
        if self.settings.get("transport") != "ssh":
            return self.settings
        if not self.settings.get("host_key"):
            self._keep_host_keys()
            return self.settings
        text = terminal.known_hosts(self.name, self.settings)
        self._folder = tempfile.TemporaryDirectory(prefix="hetero-pdu-")
        path = os.path.join(self._folder.name, "known_hosts")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return dict(self.settings, known_hosts=path)

    def _keep_host_keys(self) -> None:
        """Make the file for its host keys, without which ssh would accept any key each time."""
        path = self.settings.get("known_hosts")
        try:
            if path:
                os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
                with open(path, "a", encoding="utf-8"):
                    pass
        except OSError as error:
            raise HeteroError(f"cannot keep its ssh host key ({error})", self.name, f"make {path} writable") from error

    def _await(self, *marks: str, after: str | None = None, read: Callable[..., tuple[str, str]] | None = None) -> str:
        """Wait for a mark of the login; return which came. A PDU that hangs up before it saw a password is in use."""
        try:
            return (read or self._line.read)(*marks)[0]
        except Lost as lost:
            raise self._hung_up(lost, after) from lost

    def _hung_up(self, lost: Lost, after: str | None) -> HeteroError:
        """Return what it means that a PDU hung up during the login."""
        screen, words, kept = self._line.screen, self._line.words, lost.facts["screen"]
        if NO_NAME_YET.search(screen):
            return Lost(f"cannot be reached: {words}", self.name, NAMELESS, screen=kept)
        if not (lost.ended or after or ON_THE_WAY.sub("", screen).strip()):
            return self._unreached(lost)
        for sign, what, remedy in HOPELESS:
            if sign.search(screen):
                pinned = self.settings.get("host_key")
                mend = f"remove its lines from {self.settings.get('known_hosts') or 'known_hosts'}"
                legacy = self.settings.get("legacy_ssh")
                named = dict(
                    way=self.way,
                    before="the one pinned" if pinned else "before",
                    mend="correct its host_key in tftp_proxy_pdus" if pinned else mend,
                    lack=f"the ssh of {THIS_NODE} does not have" if legacy else "are off by default",
                    allow=NO_SSH if legacy else "set its legacy_ssh, or update its firmware",
                )
                return HeteroError(f"{what.format(**named)}: {words}", self.name, remedy.format(**named), screen=kept)
        if DENIED.search(screen) and self.settings.get("transport") == "ssh" and not after:
            remedy = "let its account log in by password, or use telnet or SNMP"
            return HeteroError(f"takes no password by ssh: {words}", self.name, remedy, screen=kept)
        if DENIED.search(screen):
            return self._refused()
        if TAKEN.search(screen) or (lost.ended and not after):
            what = f"has no place for us: {words or 'it closed the connection'}"
            return Busy(what, self.name, "wait for its other user", screen=kept)
        if lost.ended:
            others = "see that nobody else has its one session, and that it is not busy"
            remedy = f"{others}; else check the credential of {self.name}"
            return HeteroError(f"closed the connection after {after}", self.name, remedy, screen=kept)
        if after and PROMPT.search(self._line.heard):
            return self._line.unknown("menu or command line of an APC")
        return Lost(lost.what, lost.thing, lost.remedy, **lost.facts)

    def _unreached(self, lost: Lost) -> Lost:
        """Return the error if the PDU itself said nothing: it tells how far the connection got."""
        screen = self._line.screen
        if "Connected to" in screen:
            why = "it took the connection and asks for no login"
            remedy = "look at the PDU and its name server, or raise timeout"
        elif "Trying" in screen or not self.nameless:
            why, remedy = "nobody took the connection", f"{self.way}, and whether it has power"
        else:
            why, remedy = self.nameless, NAMELESS
        return Lost(f"cannot be reached: {why} ({lost.what})", self.name, remedy, **lost.facts)

    def _refused(self) -> HeteroError:
        remedy = self.credential
        if self.settings.get("command_line"):
            remedy += "; or unset its command_line, which not every firmware knows"
        return HeteroError(f"refuses user '{self.secrets['username']}' with the password given", self.name, remedy)

    def status(self) -> dict[str, str]:
        return self._speak.status()

    def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
        outlets = list(outlets)
        if self._both and not self._went_over and len(outlets) > 1 and not self._speak.together(outlets):
            self._go_over()
        return self._speak.switch(outlets, state)

    def _go_over(self) -> None:
        """Change from the menus, which draw seven screens for each outlet, to the command line, which takes a list.

        This is tried once: firmware that refuses it has counted a bad login, and three in a row lock it for two
        minutes.
        """
        self._went_over = True
        self._listed = self._speak.listed
        self.logout()
        self.login()

    def logout(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()
        line, self._line = self._line, None
        if line is None:
            return
        farewell = Deadline(max(1.0, min(FAREWELL, self.deadline.left)))
        try:
            if self._speak is not None:
                self._speak.logout(farewell)
                line.hung_up(farewell)
        except HeteroError:
            pass  # whatever its screen is now, only hanging up is left, which `close` does
        finally:
            line.close()
