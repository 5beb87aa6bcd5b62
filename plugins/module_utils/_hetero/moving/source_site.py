# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a source tells of a site, in one form for all sources: its boards and PDUs, and what is not known of them.

A value that the product's own readers do not take is no value but a question. Secrets are never kept, only that there
is one.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Mapping, NamedTuple
from urllib.parse import urlsplit

from ..core.errors import HeteroError
from ..core.spelling import instead
from ..core.typed_keys import shown
from ..drivers.boot.registry import DRIVERS as BOOT_DRIVERS
from ..site.boards_file import Board as BoardLine
from ..site.boards_file import BoardsFileError, parse
from ..site.console_lines import COMMAND, CONSOLE_FROM, TELNET
from ..site.proxy_config import PDU

#: Columns of a line of a boards file that is right, in which one value at a time is tried.
_LINE = dict(id="0", ip="10.0.2.1", mac="02:00:00:00:00:01", vcpus="1", memory_mb="1", local_gb="0")
#: Keys without which a board cannot be written down.
NEEDED = ("mac", "ip", "arch", "vcpus", "memory_mb", "local_gb")
#: Keys of cpu_info, of the wiring, and all that is taken of a board.
CPU_INFO = ("vendor", "model", "arch", "features")
WIRING = ("pdu", "outlet", "driver", "disk", "console", "console_command", "console_from")
BOARD_KEYS = ("id", *NEEDED, "vendor", "model", "features", *WIRING)
#: Where a console comes from, and what stands in its place where another program has it: one of both is said.
OWN_CONSOLE, OTHERS_CONSOLE = "console_from", ("console", "console_command")
#: A machine's own name, by which the proxy node would find itself.
HERE = ("localhost", "127.0.0.1", "::1")
#: Those that may be several.
LISTS = ("disk", "features")
#: Columns of which 0 says that nobody wrote it down.
_NEVER_ZERO = ("vcpus", "memory_mb")
#: What is taken of a PDU besides its user name, which is no secret.
PDU_KEYS = tuple(key for key in PDU.keys if key not in ("path", "api_table", "snmp_table"))
#: Words of a command that only a shell understands, and those that begin an option.
SHELL = re.compile(r"[|;&$`<>='\"\\]|:\S*@")
OPTION = re.compile(r"\s-")
#: Programs that attach to consoles and take no password as an option.
NO_PASSWORDS = ("console", "cu", "microcom", "minicom", "picocom", "screen", "ssh", "telnet", "tio")
#: Keys whose values are never shown, for they may hold a password.
UNSHOWN = ("console_command", OWN_CONSOLE, "agent_options", "api_table", "snmp_table")
#: What Ansible would run or a terminal obey, were it written into an inventory.
UNSAFE = re.compile(r"\{[{%#]|[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
#: The architecture of a machine as kernels have it, by what else it is called.
ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64", "i386": "i686"}


@dataclass
class Device:
    """A board or a PDU as a source has it.

    :param name: what the site calls it.
    :param where: its place in the source, for questions.
    :param said: what is known, by the keys of its kind.
    :param asked: {key: why it is not known}, where that is more than that nobody says it.
    """

    name: str
    where: str
    said: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)

    def ask(self, key: str, why: str) -> None:
        """Note why a value is not known, and that none is."""
        self.said.pop(key, None)
        self.asked[key] = why


@dataclass
class Board(Device):
    """A board; what is known of it is by BOARD_KEYS.

    :param before: what the boards file that is there has for its MAC.
    :param held: the PDU that the source has for a machine that somebody has there: no other board gets its outlet.
    """

    before: BoardLine | None = None
    held: str | None = None

    @property
    def fed(self) -> tuple[str, str] | None:
        """The PDU and the outlet that feed it as far as is known, also where somebody has it; None where one is not."""
        pdu, outlet = self.said.get("pdu", self.held), self.said.get("outlet")
        return (pdu, str(outlet)) if pdu and outlet else None

    def take(self, key: str, value: Any, where: str | None = None) -> None:
        """Take a value, in place of an earlier one; None and "" say nothing. One that is none becomes a question."""
        if value is None or value == "":
            return
        taken, why = _board_value(key, value)
        self.said.pop(key, None)
        self.asked.pop(key, None)
        if why:
            self.asked[key] = f"{where or self.where}: {why}"
            return
        self.said[key] = taken
        instead_of = OTHERS_CONSOLE if key == OWN_CONSOLE else (OWN_CONSOLE,) if key in OTHERS_CONSOLE else ()
        for other in instead_of:
            self.said.pop(other, None)
            self.asked.pop(other, None)

    @property
    def console_place(self) -> str | None:
        """What only one console can be at, in words; None where nobody knows."""
        line = CONSOLE_FROM.read(self.said[OWN_CONSOLE], "", []) if OWN_CONSOLE in self.said else None
        return line.place if line else None

    def take_port(self, host: object, port: object, type_of: str = TELNET, where: str | None = None) -> None:
        """Take a console at a port of a terminal server."""
        number = int(str(port)) if str(port).isascii() and str(port).isdigit() else port
        self.take(OWN_CONSOLE, {"type": type_of, "host": str(host), "port": number}, where)

    def take_field(self, key: str, value: Any) -> None:
        """Take what a source has for a key of ours. A command for the console that may hold a password is asked."""
        if key == "console_command" and may_hold_password(value):
            self.ask(key, f"{self.where}: it is not taken, for it may hold a password: write it without one")
        else:
            self.take(key, value)


@dataclass
class Pdu(Device):
    """A PDU, or BMC; what is known of it is by PDU_KEYS, and `username`.

    :param login: whether the source has a password for it, which is not kept.
    :param answered: whether people say what speaks to it: it is written down although no board names it.
    :param meant: the driver that the source's other values are for, where the driver is asked.
    """

    login: bool = False
    answered: bool = False
    meant: str = ""

    def ask(self, key: str, why: str) -> None:
        if key == "driver":
            self.meant = self.said.get("driver", self.meant)
        super().ask(key, why)

    def take(self, key: str, value: Any, where: str | None = None) -> None:
        """Take a value; None and "" say nothing. Two that differ become a question. A host may be a web address.

        :param where: the place of a value that replaces an earlier one.
        """
        if value is None or value == "":
            return
        if key == "host" and re.search("[/@]", str(value)):
            self.take_address(value, where)
            return
        taken, why = _pdu_value(key, value)
        if why is None and where is None and self.said.get(key, taken) != taken:
            why = f"says {_seen(key, taken)}, and says {_seen(key, self.said[key])} elsewhere"
        if why:
            self.ask(key, f"{where or self.where}: {why}")
        elif where is not None or key not in self.asked:
            self.said[key] = taken
            self.asked.pop(key, None)

    def take_address(self, value: Any, where: str | None = None) -> None:
        """Take host, port and user of an address of the web; of its password only that there is one."""
        at = address(value)
        if not at.host:
            self.ask("host", f"{where or self.where}: its address is none")
        for key, part in (("host", at.host), ("port", at.port), ("username", at.username), ("tls", at.tls or None)):
            self.take(key, part, where)
        self.login = self.login or at.login


@dataclass
class Site:
    """All that a source tells. `notes` are what it has and what is not taken.

    :param others: machines that are none of ours, and have their outlets all the same.
    """

    boards: list[Board] = field(default_factory=list)
    pdus: dict[str, Pdu] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    others: list[Board] = field(default_factory=list)

    def pdu(self, name: str, where: str) -> Pdu:
        """Return the PDU of a name, made where it is new."""
        return self.pdus.setdefault(name, Pdu(name, where))

    def used(self) -> list[str]:
        """Return the names of the PDUs that are written down."""
        answered = {name for name, pdu in self.pdus.items() if pdu.answered}
        return sorted(answered | {str(board.said["pdu"]) for board in self.boards if "pdu" in board.said})


def may_hold_password(command: Any) -> bool:
    """Return whether a command for a console has an option or a shell's words that may be a password."""
    text = str(command or "").strip()
    private = OPTION.search(text) and os.path.basename(text.partition(" ")[0]) not in NO_PASSWORDS
    return bool(private or SHELL.search(text))


def pdu_at(site: Site, host: str | None, port: Any, where: str) -> Pdu:
    """Return the PDU at an address, by which it is called: at another port of one host may be another device."""
    pdu = site.pdu(at_port(str(host), port), where)
    pdu.take("host", host)
    pdu.take("port", port)
    return pdu


def at_port(host: str, *more: object) -> str:
    """Return what a PDU is called that is known by its host, and by what else tells it from others there."""
    return "-".join([host, *(re.sub(r"[^\w.]+", "-", str(one)).strip("-") for one in more if one)])


def _board_value(key: str, value: Any) -> tuple[Any, str | None]:
    """Return (value, None), or (None, what is wrong with it)."""
    if key not in BOARD_KEYS:
        return None, f"{shown(key)} is no word for a board: {instead(key, BOARD_KEYS)}"
    if key == OWN_CONSOLE:
        return _console_value(value)
    if isinstance(value, (dict, bool)) or (isinstance(value, list) and key not in LISTS):
        return None, f"{key} is {_seen(key, value)}"
    if UNSAFE.search(str(value)):
        return None, f"{key} is {_seen(key, value)}, which no inventory may hold"
    if key in _LINE:
        return _column(key, str(value).strip())
    if key == "driver" and value not in BOOT_DRIVERS:
        return None, f"no such driver: {shown(value)}"
    if key == "features" and not isinstance(value, list):
        value = re.split(r"[\s,]+", str(value).strip())
    if isinstance(value, list):
        return [str(one).strip() for one in value], None
    text = str(value).strip()
    return (ARCHITECTURES.get(text.lower(), text) if key == "arch" else text), None


def _console_value(value: Any) -> tuple[Any, str | None]:
    """Return (a table of console_from, None), or (None, what is wrong with it). A cell or field has it as JSON."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = json.loads(value)
    if UNSAFE.search(str(value)):
        return None, f"{OWN_CONSOLE} is what is not shown, which no inventory may hold"
    mistakes: list[HeteroError] = []
    line = CONSOLE_FROM.read(value, OWN_CONSOLE, mistakes)
    if line is None:
        one = mistakes[0]
        return None, f"{one.thing} is wrong: {one.remedy}"
    if line.type == COMMAND and may_hold_password(line.options["command"]):
        return None, "it is not taken, for its command may hold a password: write it without one"
    return value, None


def _seen(key: str, value: Any) -> str:
    return "what is not shown" if key in UNSHOWN else shown(value)


def _column(key: str, text: str) -> tuple[Any, str | None]:
    """Return what the reader of boards files makes of a value."""
    if key in _NEVER_ZERO and text == "0":
        return None, f"{key} is 0"
    line = " ".join([*{**_LINE, key: text}.values(), "0 0 none 1 {}"])
    try:
        boards = parse(line)
    except BoardsFileError as error:
        reason = error.defects[0][3]
        return None, reason if reason.startswith(key) else f"{key} is {shown(text)}"
    return (getattr(boards[0], key), None) if len(boards) == 1 else (None, f"{key} is {shown(text)}")


def _pdu_value(key: str, value: Any) -> tuple[Any, str | None]:
    if key != "username" and key not in PDU_KEYS:
        return None, f"{shown(key)} is no word for a PDU: {instead(key, (*PDU_KEYS, 'username'))}"
    if UNSAFE.search(str(value)):
        return None, f"{key} is {_seen(key, value)}, which no inventory may hold"
    if key in UNSHOWN and not isinstance(value, dict):
        return None, f"{key} are none here: write keys and values, and passwords in a vault"
    if key == "username":
        return str(value), None
    mistakes: list[HeteroError] = []
    taken = PDU.keys[key].kind.read(value, key, mistakes)
    return (None, f"{mistakes[0].thing} {mistakes[0].what}: {mistakes[0].remedy}") if mistakes else (taken, None)


class Address(NamedTuple):
    """Where a device is asked, as an address of the web says it."""

    host: str | None
    port: int | None
    tls: bool
    username: str | None
    login: bool


def address(text: object) -> Address:
    """Return the parts of `HOST`, `HOST:PORT` or `http://USER:PASSWORD@HOST:PORT/…`; the password is not kept."""
    given = "" if text is None else str(text).strip()
    with suppress(ValueError):
        return Address(str(ipaddress.IPv6Address(given)), None, False, None, False)
    try:
        url = urlsplit(given if "://" in given else f"//{given}")
        return Address(url.hostname, url.port, url.scheme == "https", url.username, url.password is not None)
    except ValueError:
        return Address(None, None, False, None, False)


def told(value: Any, *path: str) -> Any:
    """Return what lies at a path of keys in a document, None where nothing does."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
