# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A conversation with a PDU through a program with a terminal (telnet, ssh): what is sent, and the screens that come.

What the screens mean is left to the dialects; the password is in no screen that is kept.
"""

from __future__ import annotations

import re
import time

try:
    import pexpect
except ImportError:
    pexpect = None

from ..errors import BadInput, HeteroError, Lost

#: Longest wait for one answer (seconds); a real unit needs up to a few seconds for a screen.
ANSWER = 10.0
ENTER, ESC, CTRL_C = "\r", "\x1b", "\x03"

#: What ends a screen.
MARKS = {
    "user": re.compile(r"(?:^|[\r\n])\s*(?:user name|login|username)\s*:", re.I),
    # ssh asks for "apc@10.0.100.1's password: " or "(apc@10.0.100.1) Password: "
    "password": re.compile(r"(?:^|[\r\n])(?:\S+'s|\(\S+\))?\s*password\s*:", re.I),
    "menu": re.compile(r"[\r\n]>"),
    "cli": re.compile(r"[\r\n][\w.@-]*apc>", re.I),
    "more": re.compile(r"press <enter> to continue", re.I),
    "confirm": re.compile(r"enter 'yes' to continue[^:]*:", re.I),
}

TELNET = ("telnet", "-E", "{host}", "{port}")
#: No setting of the user's and no other key: who runs the play must not matter. Nothing stays open behind us.
SSH = (
    *("ssh", "-F", "/dev/null", "-tt", "-e", "none", "-p", "{port}", "-l", "{user}"),
    *("-o", "ControlPath=none", "-o", "ConnectTimeout=10"),
    *("-o", "CheckHostIP=no"),
    *("-o", "PubkeyAuthentication=no", "-o", "PreferredAuthentications=password,keyboard-interactive"),
    *("-o", "NumberOfPasswordPrompts=1"),  # three bad logins close a PDU for two minutes
)
#: A key that is pinned is the only one; without, the first one that the PDU shows is taken and kept.
PINNED = ("-o", "StrictHostKeyChecking=yes", "-o", "GlobalKnownHostsFile=/dev/null")
FIRST_SEEN = ("-o", "StrictHostKeyChecking=accept-new")
#: What network cards of before 2014 offer, and OpenSSH no longer does by itself.
LEGACY = (
    *("-o", "KexAlgorithms=+diffie-hellman-group14-sha1,diffie-hellman-group1-sha1"),
    *("-o", "HostKeyAlgorithms=+ssh-rsa", "-o", "Ciphers=+aes256-cbc,aes128-cbc,3des-cbc", "-o", "MACs=+hmac-sha1"),
    *("-o", "IgnoreUnknown=RequiredRSASize", "-o", "RequiredRSASize=1024"),
)
#: Characters that may come before the screen that is waited for; one of 24 outlets has 2,000.
MOST = 1 << 18
#: A public key, as sshd(8) has it in SSH_KNOWN_HOSTS FILE FORMAT behind the host.
PUBLIC_KEY = re.compile(r"(ssh|ecdsa)-[\w.@-]+ AAAA[\w+/=]+( |$)")
TRANSPORTS = {"telnet": (TELNET, 23), "ssh": (SSH, 22)}


def argv(name, settings, user):
    """How a session is opened, as an argument list. :raises BadInput: the settings allow none."""
    transport, host = settings.get("transport") or "telnet", str(settings.get("host") or "")
    if transport not in TRANSPORTS:
        raise BadInput(f"no such transport (known: {', '.join(TRANSPORTS)})", name, "correct its transport")
    if not host or host.startswith("-"):
        raise BadInput(f"'{host}' is no host", name, "give its name or address")
    parts, port = TRANSPORTS[transport]
    words = [part.format(host=host, port=settings.get("port") or port, user=user) for part in parts]
    if transport == "ssh":
        words += PINNED if settings.get("host_key") else FIRST_SEEN
        if settings.get("known_hosts"):
            words += ["-o", f'UserKnownHostsFile="{settings["known_hosts"]}"']
        words += [*(LEGACY if settings.get("legacy_ssh") else ()), "--", host]
    return words


def known_hosts(name, settings):
    """The text of a known_hosts file with the PDU's pinned keys. :raises BadInput: they are none."""
    host, port = settings["host"], settings.get("port") or TRANSPORTS["ssh"][1]
    where = host if port == TRANSPORTS["ssh"][1] else f"[{host}]:{port}"
    lines = str(settings["host_key"]).strip().splitlines()
    if not all(PUBLIC_KEY.match(line) for line in lines):
        remedy = "give host_key as ssh-keyscan prints it behind the address: ssh-rsa AAAA…"
        raise BadInput("its host_key is no public key", name, remedy)
    return "".join(f"{where} {line}\n" for line in lines)


class Line:
    """The conversation: what is sent, what is read up to a mark, and the last screen, without the password."""

    def __init__(self, name, argv, password, deadline):
        if pexpect is None:
            raise HeteroError("Python library pexpect is missing", name, "install python3-pexpect on this node")
        self.name, self._password, self._deadline = name, password, deadline
        self.screen = ""
        self.answers = 0
        self._came = 0
        try:
            self._child = pexpect.spawn(argv[0], argv[1:], encoding="utf-8", codec_errors="replace", echo=False)
        except pexpect.ExceptionPexpect as error:
            raise HeteroError(f"program {argv[0]} is not installed", name, f"install {argv[0]}") from error
        self._child.delaybeforesend = None
        self._child.logfile_read = self  # pexpect hands it all that it reads
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
        start, self._came = time.monotonic(), 0
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

    def write(self, text):
        """What came, counted. :raises HeteroError: too much for a screen."""
        self._came += len(text)
        if self._came > MOST:
            what = f"says more than {MOST} characters and no screen that is known"
            raise HeteroError(what, self.name, "see what answers at its address", screen=self._plain(text)[-2000:])

    def flush(self):
        """Nothing is kept here; pexpect asks for it."""

    def hung_up(self, deadline):
        """Wait until the PDU has ended the session."""
        self._came = 0
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
