# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A conversation with a PDU through a program with a terminal (telnet, ssh): what is sent, and the screens that come.

The dialects know what the screens mean. A screen ends with a prompt after which nothing comes, and nothing is typed
before that. If the PDU echoes, a screen begins after the echo of what was typed. No screen that is kept holds the
password.
"""

from __future__ import annotations

import re
import time
import tty
from contextlib import suppress
from typing import Any, Iterable, Mapping, cast

try:
    import pexpect
except ImportError:
    pexpect = None

from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, Lost
from ...core.this_node import THIS_NODE
from .driver import CUT_OFF, HOST
from .masking import Mask

#: Seconds to wait for an answer; a real unit needs up to a few for a screen.
ANSWER = 10.0
ENTER, ESC, CTRL_C = "\r", "\x1b", "\x03"

#: What ends a screen, with nothing after it. A menu's prompt belongs to a screen with a title or an item.
MARKS = {
    "user": re.compile(r"(?:^|\n) *(?:user ?name|login) *: *\Z", re.I),
    # ssh asks for "apc@10.0.100.1's password: " or "(apc@10.0.100.1) Password: "
    "password": re.compile(r"(?:^|\n) *(?:\S+'s|\(\S+\))? *password *: *\Z", re.I),
    "menu": re.compile(r"(?:(?:^|\n) *(?:\d+- |-{3})|still initializing).*\n *> *\Z", re.I | re.S),
    "cli": re.compile(r"(?:^|\n) *([\w.@:/()-]{1,40}>) *(?:\1 *)*\Z"),
    # without text above it, it is the last page's, drawn again: a second ENTER would draw the next screen twice
    "more": re.compile(r"(?:^|\n) *(?!press <enter>)[^ \n].*\n *press <enter> to continue[. ]*\Z", re.I | re.S),
    "confirm": re.compile(r"(?:^|\n) *enter 'yes' to continue[^:\n]*: *\Z", re.I),
}
#: Seconds of silence after which a prompt ends a screen: a banner may have one in its middle.
SILENCE = 0.05
#: The same if what was typed was not echoed, so that the prompt may be older.
NO_ECHO = 0.5
#: Ends that need no silence: a line that no banner has, and the keys below a menu.
ENDS = re.compile(r"<esc>- .*\n\s*> *\Z|press <enter> to continue[. ]*\Z|enter 'yes' to continue[^:\n]*: *\Z", re.I)
#: Control sequences of terminals: titles (OSC), cursor and colours (CSI), character sets and keypads; other controls.
CONTROLS = re.compile(
    r"\x1b\][^\x07\x1b\r\n]{0,300}(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][0-9A-Z]|\x1b[=>78DEHMc]"
    r"|[^\n\x20-\x7e\xa0-\U0010ffff]"
)
#: Characters that are read at once.
CHUNK = 4096

TELNET = ("telnet", "-E", "{host}", "{port}")
#: Without the user's settings and keys, so that it does not matter who runs the play, and with nothing left open.
#: Without -t ssh asks for a terminal all the same, because it has one, and goes on if the card has none to give.
SSH = (
    *("ssh", "-F", "/dev/null", "-e", "none", "-p", "{port}", "-l", "{user}"),
    *("-o", "ControlPath=none", "-o", "ConnectTimeout=10"),
    *("-o", "CheckHostIP=no"),
    *("-o", "PubkeyAuthentication=no", "-o", "PreferredAuthentications=password,keyboard-interactive"),
    *("-o", "NumberOfPasswordPrompts=1"),  # three bad logins close a PDU for two minutes
)
#: A pinned key is the only one that is accepted. Otherwise the first key that the PDU shows is accepted and kept.
PINNED = ("-o", "StrictHostKeyChecking=yes", "-o", "GlobalKnownHostsFile=/dev/null")
FIRST_SEEN = ("-o", "StrictHostKeyChecking=accept-new")
#: Algorithms of network cards from before 2014, which OpenSSH offers no longer by default. `ssh-?s?` is ssh-rsa and
#: ssh-dss; OpenSSH 10 has lost the second, and refuses an unknown name but not a pattern.
LEGACY = (
    *("-o", "KexAlgorithms=+diffie-hellman-group-exchange-sha1,diffie-hellman-group14-sha1,diffie-hellman-group1-sha1"),
    *("-o", "HostKeyAlgorithms=+ssh-?s?", "-o", "Ciphers=+aes256-cbc,aes192-cbc,aes128-cbc,3des-cbc"),
    *("-o", "MACs=+hmac-sha1,hmac-sha1-96,hmac-md5,hmac-md5-96"),
    *("-o", "IgnoreUnknown=RequiredRSASize", "-o", "RequiredRSASize=1024"),
)
#: Characters that may come before the expected screen; a screen of 24 outlets has 2,000.
MOST = 1 << 18
#: Pages of the longest list; more than the largest PDU has. Without a limit a broken PDU would hang its play.
PAGES = 32
#: Seconds to wait for a program that was killed. A busy kernel needs some time to end one with a network.
KILLED = 5.0
#: A public key in the form of sshd(8), SSH_KNOWN_HOSTS FILE FORMAT, after the host.
PUBLIC_KEY = re.compile(r"(ssh|ecdsa)-[\w.@-]+ AAAA[\w+/=]+( |$)")
TRANSPORTS = {"telnet": (TELNET, 23), "ssh": (SSH, 22)}


def argv(name: str, settings: Mapping[str, Any], user: str) -> list[str]:
    """Return the argument list that opens a session; raise BadInput if the settings allow none."""
    transport, host = settings.get("transport") or "telnet", str(settings.get("host") or "")
    if transport not in TRANSPORTS:
        raise BadInput(f"no such transport (known: {', '.join(TRANSPORTS)})", name, "correct its transport")
    if not HOST.fullmatch(host):
        raise BadInput(f"'{host}' is no host", name, "give its name or address")
    parts, port = TRANSPORTS[transport]
    words = [part.format(host=host, port=settings.get("port") or port, user=user) for part in parts]
    if transport == "ssh":
        words += PINNED if settings.get("host_key") else FIRST_SEEN
        if settings.get("known_hosts"):
            words += ["-o", f'UserKnownHostsFile="{settings["known_hosts"]}"']
        words += [*(LEGACY if settings.get("legacy_ssh") else ()), "--", host]
    return words


def known_hosts(name: str, settings: Mapping[str, Any]) -> str:
    """Return the text of a known_hosts file with the PDU's pinned keys; raise BadInput if they are no keys."""
    host, port = settings["host"], settings.get("port") or TRANSPORTS["ssh"][1]
    where = host if port == TRANSPORTS["ssh"][1] else f"[{host}]:{port}"
    lines = str(settings["host_key"]).strip().splitlines()
    if not all(PUBLIC_KEY.match(line) for line in lines):
        remedy = "give host_key as ssh-keyscan prints it behind the address: ssh-rsa AAAA…"
        raise BadInput("its host_key is no public key", name, remedy)
    return "".join(f"{where} {line}\n" for line in lines)


def plain(text: str) -> str:
    """Return a text as a person sees it: without control sequences. A carriage return alone ends a line too."""
    return CONTROLS.sub("", re.sub(r"\r+\n?", "\n", text.replace("\t", " ")))


def _raw() -> None:
    """Make this terminal obey no key. ssh does that itself, but not for a PDU that gives no terminal."""
    tty.setraw(0)


class Line:
    """The conversation: what is sent, what is read up to a mark, and the last screen.

    :param marks: what ends a screen (MARKS); a dialect may replace some.
    """

    def __init__(self, name: str, argv: list[str], password: str, deadline: Deadline) -> None:
        if pexpect is None:
            raise HeteroError("Python library pexpect is missing", name, f"install python3-pexpect on {THIS_NODE}")
        self.name, self._password, self._deadline = name, password, deadline
        self.marks = dict(MARKS)
        self.screen = ""  #: the last screen as it came; what is kept or told of it is `masked`
        self.heard = ""  #: what came since a screen was asked for
        self._echoes = False  # whether the PDU has echoed what was typed
        self._typed: str | None = None  # what was typed last, if an echo would show it
        try:
            # with poll(2): select(2) takes no descriptor above 1023, and the locks of a thousand boards have those
            # below
            self._child = pexpect.spawn(
                argv[0],
                argv[1:],
                encoding="utf-8",
                codec_errors="replace",
                echo=False,
                use_poll=True,
                preexec_fn=_raw if argv[0] == "ssh" else None,
            )
        except pexpect.ExceptionPexpect as error:
            raise HeteroError(f"program {argv[0]} is not installed", name, f"install {argv[0]}") from error
        self._child.delaybeforesend = None
        # A session ends when the PDU hangs up, after which no patience is needed.
        self._child.ptyproc.delayafterclose = self._child.ptyproc.delayafterterminate = 0.02

    def send(self, text: str, end: str = ENTER, secret: bool = False) -> None:
        self._typed = None if secret or not text or end != ENTER else text
        try:
            self._child.send(text + end)
        except OSError as error:
            raise self.lost("the session ended", ended=True) from error

    def read(self, *marks: str, within: Deadline | None = None) -> tuple[str, str]:
        """Read until all that came ends with one of the marks; return (mark, text with it).

        :raises Lost: no mark came in time, or the session ended.
        """
        deadline = (within or self._deadline).within(ANSWER)
        raw, text, found, wait, self.heard = "", "", None, deadline.left, ""
        while True:
            try:
                raw += self._child.read_nonblocking(CHUNK, wait)
            except pexpect.EOF as error:
                raise self.lost("the session ended", ended=True) from error
            except pexpect.TIMEOUT as error:
                if found:
                    break
                raise self._no_answer(deadline) from error
            text = self.heard = plain(raw)
            self.screen = text.strip() or self.screen
            if len(raw) > MOST:
                what = f"says more than {MOST} characters and no screen that is known"
                raise HeteroError(what, self.name, "see what answers at its address", screen=self.masked(text)[-2000:])
            fresh = self._fresh(text)
            found = self._ending(text if fresh is None else fresh, marks)
            if deadline.passed and not found:  # one that always has another byte would not let a wait end
                raise self._no_answer(deadline)
            if deadline.passed:
                break
            wait = min(self._silence(text, fresh, found), deadline.left) if found else deadline.left
        self._typed, self._echoes = None, self._echoes or fresh is not None
        self.screen = text if fresh is None else fresh
        return cast(str, found), self.screen

    def read_pages(self, *marks: str) -> tuple[str, str]:
        """Read a screen that stops with "Press <ENTER>" if it is long; return (mark, the text of all pages)."""
        shown = ""
        for _page in range(PAGES):
            mark, text = self.read(*marks, "more", "user")
            shown += text
            if mark == "user" and mark not in marks:
                raise self.lost("it logged us off")
            if mark != "more":
                self.screen = shown
                return mark, shown
            self.send("")
        raise self.unknown(f"end after {PAGES} pages")

    def _ending(self, text: str, marks: Iterable[str]) -> str | None:
        return next((mark for mark in marks if self.marks[mark].search(text)), None)

    def _fresh(self, text: str) -> str | None:
        """Return what came after the echo of what was typed, or None if no echo came."""
        if self._typed is None:
            return None
        echoes = list(re.finditer(rf"(?:\A\s*|\n *[^\s>]*> *){re.escape(self._typed)} *(?=\n|\Z)", text))
        return text[echoes[-1].end() :] if echoes else None

    def _silence(self, text: str, fresh: str | None, found: str | None) -> float:
        """Return the seconds for which nothing more must come after a mark."""
        if fresh is None and self._typed is not None and (self._echoes or found == "user"):
            return NO_ECHO
        return 0 if ENDS.search(text) or (fresh is not None and found == "cli") else SILENCE

    def hung_up(self, deadline: Deadline) -> None:
        """Wait until the PDU has ended the session."""
        came = 0
        with suppress(pexpect.EOF, pexpect.TIMEOUT):
            while came < MOST and not deadline.passed:
                came += len(self._child.read_nonblocking(CHUNK, deadline.left))

    def close(self) -> None:
        """End the session's program. On a busy machine it is waited for after it was killed."""
        try:
            self._child.close(force=True)
        except pexpect.ExceptionPexpect:
            ended = Deadline(KILLED)
            while self._child.isalive() and not ended.passed:
                time.sleep(0.02)

    def masked(self, text: str) -> str:
        """Return a text of the PDU without the password."""
        return Mask([self._password])(text)

    @property
    def words(self) -> str:
        """The last screen, short enough for an error."""
        lines = [line.strip() for line in self.masked(self.screen).splitlines() if line.strip(" -")]
        return " | ".join(lines[-12:])[-700:]

    def _no_answer(self, deadline: Deadline) -> Lost:
        """Return the error for no answer. If the deadline came before anything could, that is said instead."""
        if deadline.seconds < CUT_OFF:
            return self.lost("its time was up before it could answer")
        return self.lost(f"no answer within {deadline.spent:.1f} s")

    def lost(self, what: str, ended: bool = False) -> Lost:
        seen = f"last seen: {self.words}" if self.words else "it had said nothing"
        screen = self.masked(self.screen)
        return Lost(f"{what}; {seen}", self.name, "look at the PDU, or raise timeout", ended=ended, screen=screen)

    def unknown(self, wanted: str) -> HeteroError:
        """Return the error for a screen that is not the expected one."""
        return self.odd(f"its screen has no {wanted}")

    def odd(self, what: str) -> HeteroError:
        """Return the error for a screen on which something is wrong."""
        remedy, screen = "operate it by hand and report this screen", self.masked(self.screen)
        return HeteroError(f"{what}: {self.words or 'an empty screen'}", self.name, remedy, screen=screen)
