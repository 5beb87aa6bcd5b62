# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a command line that switches power says of a PDU and an outlet: programs that labs have in their scripts.

The line is never shown nor kept, because it may hold a password. One that is not understood says nothing.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Sequence
from urllib.parse import parse_qs, urlsplit

from ..drivers.power.ipmi import OUTLET
from ..drivers.power.snmp import VERSIONS
from .source_site import Address, address, at_port

#: Words between the commands of a shell's line.
BETWEEN = (";", "&&", "||", "&", "|", "(", ")")
#: Words before a command that are none of it.
BEFORE = ("sudo", "exec", "time", "nohup")
#: Commands that switch nothing.
IDLE = ("sleep", "true", "echo", ":")
#: Columns that outlets are switched by: APC's MasterSwitch and rPDU, and of a first unit Raritan's and Eaton's. The
#: number behind is the outlet.
OUTLET_OID = re.compile(
    r"\.?(?:1\.3\.6\.1\.4\.1|\S*enterprises)\.(?:318\.1\.1\.(?:4\.4\.2\.1\.3|12\.3\.3\.1\.1\.4)"
    r"|13742\.6\.4\.1\.2\.1\.2\.1|534\.6\.6\.7\.6\.6\.1\.[34]\.0)\.([1-9]\d*)"
)
#: Options of ipmitool that choose no machine. By others, such as -t and -b, it is one behind the BMC.
IPMITOOL = ("-I", "-H", "-p", "-U", "-P", "-f", "-E", "-C", "-L", "-N", "-R", "-v")
#: Options of fence agents, short and long, by our words (FenceAgentAPI.md).
FENCE = {
    **dict.fromkeys(("-a", "--ip"), "ip"),
    **dict.fromkeys(("-u", "--ipport"), "port"),
    **dict.fromkeys(("-n", "--plug"), "plug"),
    **dict.fromkeys(("-l", "--username"), "username"),
}
FENCE_SECRETS = ("-p", "--password", "-c", "--community", "-S", "--password-script")
#: Those that choose one machine of several behind an address, and those that say how it is asked, as agent_options.
FENCE_MACHINES = {"-s": "switch", "--switch": "switch", "--systems-uri": "systems_uri", "--target": "target"}
FENCE_WAYS = {
    **dict.fromkeys(("-x", "--ssh"), "ssh"),
    **dict.fromkeys(("-z", "--ssl"), "ssl"),
    **dict.fromkeys(("-P", "--lanplus"), "lanplus"),
    "--ssl-insecure": "ssl_insecure",
    "--ssl-secure": "ssl_secure",
}
FENCE_IDLE = ("-o", "--action", "-q", "--quiet", "-v", "--verbose", "--power-wait", "--power-timeout")
#: A relay's address: path and query of the request → api, and how the outlet is read from it.
RELAY = re.compile(r"/relay/(\d+)")
TASMOTA = re.compile(r"power(\d*)(?:[ +](?:on|off|toggle|0|1|2))?", re.IGNORECASE)


@dataclass
class Switch:
    """What a line says: the PDU by name, what is known of it, and the outlet.

    :param daemon: the program that switches it, where the line only asks that.
    """

    pdu: str
    outlet: str | None = None
    said: dict[str, Any] = field(default_factory=dict)
    login: bool = False
    daemon: str | None = None

    @property
    def fed(self) -> tuple[str, str | None]:
        return self.pdu, self.outlet


def understood(line: str) -> Switch | None:
    """Return what a line of a shell says, where all its commands that switch something say the same; else None."""
    found = []
    for words in commands(line):
        name = os.path.basename(words[0])
        if name in IDLE:
            continue
        if name in ("sh", "bash") and len(words) == 3 and words[1] == "-c":
            found.append(understood(words[2]))
            continue
        reader = next((read for pattern, read in READERS if re.fullmatch(pattern, name)), None)
        found.append(reader(words) if reader else None)
    if not found or found[0] is None:
        return None
    return found[0] if all(one is not None and one.fed == found[0].fed for one in found) else None


def is_idle(line: str) -> bool:
    """Return whether a line switches nothing, such as a pause between two that do."""
    return all(os.path.basename(words[0]) in IDLE for words in commands(line))


def commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each command of a line; nothing of one that no shell would take."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return
    command: list[str] = []
    for word in [*words, ";"]:
        if word not in BETWEEN:
            command.append(word)
        elif command:
            while command and command[0] in BEFORE:
                command = command[1:]
            if command:
                yield command
            command = []


def options(words: Sequence[str]) -> dict[str, str]:
    """Return the options of a command with their values, of `--name=value` and of `--name value`."""
    said: dict[str, str] = {}
    for word, following in zip(words[1:], [*words[2:], ""]):
        if word.startswith("--") and "=" in word:
            name, _equals, value = word.partition("=")
            said[name] = value
        elif word.startswith("-"):
            said[word] = "" if following.startswith("-") else following
    return said


def _client(words: Sequence[str]) -> Switch | None:
    """Read a line of pdudaemon's pduclient, or of a script that takes the same options."""
    said = options(words)
    pdu = said.get("--hostname") or said.get("--host") or said.get("-host")
    outlet = _number(said.get("--port"))
    if not pdu or outlet is None:
        return None
    return Switch(pdu, outlet, daemon=said.get("--daemon") or os.path.basename(words[0]))


def _snmpset(words: Sequence[str]) -> Switch | None:
    found = [(at, match) for at, match in ((at, OUTLET_OID.fullmatch(word)) for at, word in enumerate(words)) if match]
    # several outlets are no board's, and a context is another device behind the one that is asked
    if len(found) != 1 or found[0][0] < 2 or "-n" in options(words):
        return None
    at, match = found[0]
    where = address(words[at - 1])
    if not where.host:
        return None
    said: dict[str, Any] = {"driver": "snmp", "host": where.host, "port": where.port}
    version = next((word[2:] or options(words).get("-v") for word in words if word.startswith("-v")), None)
    if version in VERSIONS:
        said["snmp_version"] = version
    return Switch(at_port(where.host, where.port), match[1], said, login=True)


def _ipmitool(words: Sequence[str]) -> Switch | None:
    said = options(words)
    host, port = said.get("-H"), said.get("-p")
    if "power" not in words or not host or not {*said} <= {*IPMITOOL}:
        return None
    # only a fence agent speaks IPMI 1.5
    known: dict[str, Any] = {"driver": "fence", "agent": "fence_ipmilan"}
    if said.get("-I") == "lanplus":
        known = {"driver": "ipmi", "cipher_suite": said.get("-C")}
    known.update(host=host, port=port, username=said.get("-U"))
    return Switch(at_port(host, port), OUTLET, known, login=bool({"-P", "-f", "-E"} & set(said)))


def _fence(words: Sequence[str]) -> Switch | None:
    given = options(words)
    said = {FENCE[name]: value for name, value in given.items() if name in FENCE}
    host, agent = said.get("ip"), os.path.basename(words[0])
    known_words = {*FENCE, *FENCE_SECRETS, *FENCE_MACHINES, *FENCE_WAYS, *FENCE_IDLE}
    # what an option means that is none of these, only the agent knows; -P is another's, too
    if not host or not {*given} <= known_words or ("-P" in given and agent != "fence_ipmilan"):
        return None
    machine = {FENCE_MACHINES[name]: value for name, value in given.items() if name in FENCE_MACHINES}
    ways = {FENCE_WAYS[name]: 1 for name in given if name in FENCE_WAYS}
    known: dict[str, Any] = {"driver": "fence", "agent": agent, "host": host}
    known["agent_options"] = {**machine, **ways} or None
    known.update({key: value for key, value in said.items() if key in ("port", "username")})
    name = at_port(host, said.get("port"), *machine.values())
    return Switch(name, said.get("plug"), known, login=bool(set(FENCE_SECRETS) & set(given)))


def _web(words: Sequence[str]) -> Switch | None:
    """Read a line of curl or wget that asks a plug whose interface is known."""
    addresses = [word for word in words[1:] if "://" in word]
    if len(addresses) != 1:
        return None
    at = address(addresses[0])
    try:
        url = urlsplit(addresses[0])
    except ValueError:
        return None
    asked = parse_qs(url.query)
    relay = RELAY.fullmatch(url.path)
    if not at.host:
        return None
    if relay and "turn" in asked:
        return _plug(at, "shelly1", relay[1], words)
    if url.path == "/rpc/Switch.Set" and asked.get("id", [""])[0].isdigit():
        return _plug(at, "shelly2", asked["id"][0], words)
    power = TASMOTA.fullmatch(asked.get("cmnd", [""])[0]) if url.path == "/cm" else None
    return _plug(at, "tasmota", power[1] or "1", words) if power else None


def _plug(at: Address, api: str, outlet: str, words: Sequence[str]) -> Switch:
    said = {"driver": "http", "api": api, "host": at.host, "port": at.port, "username": at.username}
    if at.tls:
        said["tls"] = True
    login = at.login or bool({"-u", "--user"} & set(options(words))) or "password" in str(words)
    return Switch(at_port(str(at.host), at.port), outlet, said, login=login)


def _number(text: str | None) -> str | None:
    """Return the number of an outlet without zeros before it, as programs take `--port 08`."""
    return str(int(text)) if text and re.fullmatch(r"[0-9]{1,4}", text) else None


#: Name of a program → its reader.
READERS: tuple[tuple[str, Callable[[Sequence[str]], Switch | None]], ...] = (
    (r"pduclient|(?:\w+_)?pdu_control(?:\.\w+)?", _client),
    (r"snmpset", _snmpset),
    (r"ipmitool", _ipmitool),
    (r"fence_[\w-]+", _fence),
    (r"curl|wget", _web),
)
