# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the proxy's conserver reaches a board's console: `console_from` of its wiring, read with one line per mistake.

nodes/proxy/conserver_files.py makes conserver's configuration of it.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, NamedTuple

from ..core.errors import BadInput, HeteroError
from ..core.spelling import instead
from ..core.typed_keys import LONG_TEXT, PATH, TEXT, Key, Kind, Record, shown, text, whole

#: Speeds that conserver takes (conserver.cf(5), baud; its util.c, baud table), and what stands for parity there.
BAUDS = (300, 600, 1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200, 230400, 460800, 921600, 1500000, 3000000)
PARITIES = ("none", "even", "odd", "mark", "space")
#: Flow control in words → options of conserver.
FLOWS = {"none": "!ixon,!ixoff,!crtscts", "rts": "!ixon,!ixoff,crtscts", "xon": "ixon,ixoff,!crtscts"}
#: `type` of each that there is.
SERIAL, TELNET, TCP, SSH, IPMI, SOCKET, COMMAND = "serial", "telnet", "tcp", "ssh", "ipmi", "socket", "command"

#: Of a line of ssh-keyscan, of known_hosts, or of a file *.pub: the kind of a public key, and the key.
PUBLIC_KEY = re.compile(r"(?<!\S)((?:sk-)?(?:ssh|ecdsa)-[\w.@-]+)\s+(AAAA[\w+/=]*)(?!\S)")


def _one_of(words: tuple[Any, ...]) -> Kind:
    return Kind(f"one of {', '.join(map(str, words))}", lambda value: value if value in words else None)


def _baud(value: Any) -> int | None:
    digits = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    return digits if isinstance(digits, int) and not isinstance(digits, bool) and digits in BAUDS else None


def _is_line(value: str) -> bool:
    """Return whether a text is one line that a shell and conserver read as it is written."""
    return value.isprintable() and value.strip() == value


#: A host or a user goes to ssh and ipmitool as a word of its own, so that it is no option.
_WORD = text("a name without blanks, which begins with no dash", 255, lambda value: _is_line(value) and value[0] != "-")
_LINE = text("one line", 1000, _is_line)
_PORT = Key(whole(1, 65535))
_SPEED = Key(Kind(f"one of {', '.join(map(str, BAUDS))}", _baud), 115200)
#: Type → its keys, and those of them that it cannot do without.
TYPES: dict[str, tuple[dict[str, Key], tuple[str, ...]]] = {
    SERIAL: (
        {
            "device": Key(PATH),
            "baud": _SPEED,
            "parity": Key(_one_of(PARITIES), "none"),
            "flow": Key(_one_of(tuple(FLOWS)), "none"),
        },
        ("device",),
    ),
    TELNET: ({"host": Key(_WORD), "port": _PORT}, ("host", "port")),
    TCP: ({"host": Key(_WORD), "port": _PORT}, ("host", "port")),
    SSH: (
        {
            "host": Key(_WORD),
            "user": Key(_WORD),
            "key": Key(PATH),
            "port": _PORT,
            "host_key": Key(LONG_TEXT),
            "command": Key(_LINE),
        },
        ("host", "user", "key"),
    ),
    IPMI: ({"pdu": Key(TEXT)}, ()),
    SOCKET: ({"path": Key(PATH)}, ("path",)),
    COMMAND: ({"command": Key(_LINE)}, ("command",)),
}


class ConsoleLine(NamedTuple):
    """How a console is reached: a key of TYPES, and its options with their defaults; what is not said is missing."""

    type: str
    options: Mapping[str, Any]

    @property
    def as_said(self) -> dict[str, Any]:
        """What the wiring says, with the defaults."""
        return {"type": self.type, **self.options}

    @property
    def place(self) -> str | None:
        """What only one console can be at, in words; None where nobody knows."""
        said = self.options
        if self.type in (TELNET, TCP):
            return f"port {said['port']} of {said['host'].lower()}"
        if self.type == SSH:
            at = f"{said['user']}@{said['host'].lower()} port {said.get('port', 22)}"
            return f"{at}, {said['command']}" if said.get("command") else at
        return said.get("device") or said.get("path")

    @property
    def host_key(self) -> str | None:
        """The public key by which an ssh server is known, without what stands before and behind it; None for none."""
        found = PUBLIC_KEY.search(self.options.get("host_key") or "")
        return " ".join(found.groups()) if found else None


class ConsoleKind(Kind):
    """The kind of `console_from`: a table with its `type`, and the keys of that type and no others."""

    def __init__(self) -> None:
        wanted = f"a table with a type ({', '.join(TYPES)})"
        super().__init__(wanted, lambda value: value if isinstance(value, dict) and value.get("type") else None)

    def read(self, value: Any, place: str, mistakes: list[HeteroError]) -> ConsoleLine | None:
        given = super().read(value, place, mistakes)
        if given is None:
            return None
        name = given["type"]
        if not isinstance(name, str) or name not in TYPES:
            mistakes.append(BadInput(f"no such type {shown(name)}", f"{place}.type", instead(str(name), TYPES)))
            return None
        (keys, needed), before = TYPES[name], len(mistakes)
        known = {key: one for key, one in given.items() if key in keys}
        for key in given:
            if key not in ("type", *keys):
                remedy = f"use {', '.join(keys)}"
                mistakes.append(BadInput(f"is no key of type {name}", f"{place}.{key}", remedy))
        said = Record(keys).read(known, place, mistakes)
        for key in needed:
            if given.get(key) in (None, ""):
                mistakes.append(BadInput(f"type {name} needs it", f"{place}.{key}", "name it"))
        for key, one in said.items():
            if isinstance(one, str) and not one.strip().isprintable():
                mistakes.append(BadInput(f"is {shown(one)}", f"{place}.{key}", "give one line"))
        defaults = {key: one.default for key, one in keys.items() if one.default is not None}
        return ConsoleLine(name, {**defaults, **said}) if len(mistakes) == before else None


CONSOLE_FROM = ConsoleKind()
