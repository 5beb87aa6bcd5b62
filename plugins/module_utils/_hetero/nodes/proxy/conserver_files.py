# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the proxy's conserver and its client read: consoles by the boards' wiring, passwords, the key that lets in.

conserver listens at 127.0.0.1 and takes who has the key of its own certificate, so no account of the node but those
that can read that key reaches a console. consoles.py writes the files and starts it.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Callable, Mapping, NamedTuple

from ...core.errors import BadInput
from ...site import console_lines
from ...site.console_lines import FLOWS, ConsoleLine
from ...site.proxy_config import SET_UP, pdu

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ...site.proxy_config import ProxyConfig

#: Characters that conserver's parser takes for more than themselves (conserver.cf(5), PARSER).
SPECIAL = '{};#\\"'
#: Seconds after which ssh gives up a connection on which nothing answers, three times.
ALIVE = 15
#: The character by which ipmitool is left (its -e), for all readers of a console: no keyboard sends this by itself.
ESCAPE = "$(printf '\\037')"
#: conserver's children, each for 16 consoles, have ports from the one behind its own on (its -b). The filter of role
#: tftp_proxy closes these to accounts other than root. No port is behind this one.
LAST_PORT = 65535
#: Files in ProxyConfig.consoles_folder.
CONSERVER, KEY, CERTIFICATE = "conserver.cf", "tls.key", "tls.crt"
#: Ends of the names of the files that a console's command reads.
SECRETS = PASSWORD, KNOWN_HOSTS = ".password", ".known_hosts"
#: Options of all consoles: what went down is tried again each minute, and at once for who attaches.
HEAD = """\
# Written by hetero consoles.
config * {{
    daemonmode no;
    primaryport {port};
    secondaryport {children};
    passwdfile /dev/null;
    redirect no;
    autocomplete no;
    reinitcheck 1;
    sslrequired yes;
    sslreqclientcert yes;
    sslcredentials {key};
    sslcacertificatefile {certificate};
}}
access * {{
    trusted 127.0.0.1;
    admin *;
    limited *;
}}
default * {{
    master localhost;
    rw *;
    logfile {logs}/&.log;
    timestamp 1l;
    options reinitoncc;
}}
"""
CLIENTS = """\
# Written by hetero consoles.
config * {{
    master 127.0.0.1;
    port {port};
    sslrequired yes;
    sslcredentials {key};
    sslcacertificatefile {certificate};
}}
"""


class Secret(NamedTuple):
    """A file that conserver alone may read, by its name below the folder, and its text."""

    name: str
    text: str


class Served(NamedTuple):
    """What is said of one console: keywords of conserver.cf with their values, and the files that its command reads."""

    words: Mapping[str, str]
    files: tuple[Secret, ...] = ()


def quoted(text: str) -> str:
    """Return a value as conserver's parser reads it, whatever it holds."""
    return "".join(f"\\{one}" if one in SPECIAL or one.isspace() else one for one in text)


def serving(config: ProxyConfig, boards: Mapping[int, Board]) -> dict[str, Served]:
    """Return what is served, by the board's name.

    :raises BadInput: a console by IPMI has no BMC.
    """
    found = {}
    for board in boards.values():
        wire = config.boards.get(str(board.id))
        if wire is not None and wire.console_from is not None:
            found[board.name] = TYPES[wire.console_from.type](config, board, wire.console_from)
    return found


def configuration(config: ProxyConfig, served: Mapping[str, Served]) -> str:
    """Return the text of conserver.cf."""
    parts = [
        HEAD.format(
            port=config.console_port,
            children=min(config.console_port + 1, LAST_PORT),
            key=quoted(os.path.join(config.consoles_folder, KEY)),
            certificate=quoted(os.path.join(config.consoles_folder, CERTIFICATE)),
            logs=quoted(config.console_logs),
        )
    ]
    for name, one in served.items():
        words = "".join(f"    {key} {quoted(value)};\n" for key, value in one.words.items())
        parts.append(f"console {name} {{\n{words}}}\n")
    return "".join(parts)


def client(config: ProxyConfig) -> str:
    """Return the text of the file by which conserver's client, console, finds conserver (its -C)."""
    key, certificate = (quoted(os.path.join(config.consoles_folder, name)) for name in (KEY, CERTIFICATE))
    return CLIENTS.format(port=config.console_port, key=key, certificate=certificate)


def _serial(_config: ProxyConfig, _board: Board, line: ConsoleLine) -> Served:
    said = line.options
    words = dict(type="device", device=said["device"], baud=str(said["baud"]), parity=said["parity"])
    return Served(dict(words, options=FLOWS[said["flow"]]))


def _port(protocol: str) -> Callable[[ProxyConfig, Board, ConsoleLine], Served]:
    def served(_config: ProxyConfig, _board: Board, line: ConsoleLine) -> Served:
        return Served(dict(type="host", host=line.options["host"], port=str(line.options["port"]), protocol=protocol))

    return served


def _ssh(config: ProxyConfig, board: Board, line: ConsoleLine) -> Served:
    said, files = line.options, []
    # The first key that is shown is taken and kept, beside the logs, where conserver may write.
    known, check = os.path.join(config.console_logs, "known_hosts"), "accept-new"
    if said.get("host_key"):
        name = f"{board.name}{KNOWN_HOSTS}"
        known, check = os.path.join(config.consoles_folder, name), "yes"
        place = said["host"] if said.get("port", 22) == 22 else f"[{said['host']}]:{said['port']}"
        files.append(Secret(name, f"{place} {line.host_key or said['host_key']}\n"))
    options = dict(BatchMode="yes", ServerAliveInterval=ALIVE, StrictHostKeyChecking=check, UserKnownHostsFile=known)
    # What ssh itself says goes to the journal (-y). In the console's log it would look as if the board spoke. So would
    # its warning of a key that is not there, which it gives where that is named by -i.
    key = said["key"].replace("%", "%%")
    argv = ["ssh", "-y", "-tt", "-e", "none", "-F", "none", "-p", str(said.get("port", 22))]
    argv += ["-o", f'IdentityFile="{key}"']
    argv += [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    argv += [f"{said['user']}@{said['host']}", *([said["command"]] if said.get("command") else [])]
    return Served(dict(type="exec", exec=f"exec {shlex.join(argv)}"), tuple(files))


def _ipmi(config: ProxyConfig, board: Board, line: ConsoleLine) -> Served:
    name = line.options.get("pdu") or config.boards[str(board.id)].pdu
    if not name:
        raise BadInput("its console is by IPMI, and it has no PDU that is a BMC", board.name, f"name it, then {SET_UP}")
    settings, secrets = pdu(config, name)
    file = os.path.join(config.consoles_folder, f"{board.name}{PASSWORD}")
    argv = ["ipmitool", "-I", "lanplus", "-L", "OPERATOR", "-f", file]
    for option, value in (
        ("-H", settings.get("host")),
        ("-p", settings.get("port") if settings.get("driver") == "ipmi" else None),
        ("-C", settings.get("cipher_suite")),
        ("-U", secrets.get("username")),
    ):
        argv += [option, str(value)] if value else []
    words = shlex.join(argv)
    # One that was cut off keeps the BMC's only session.
    command = f'{words} sol deactivate >/dev/null 2>&1 || :; exec {words} -e "{ESCAPE}" sol activate'
    return Served(dict(type="exec", exec=command), (Secret(f"{board.name}{PASSWORD}", secrets.get("password", "")),))


def _socket(_config: ProxyConfig, _board: Board, line: ConsoleLine) -> Served:
    return Served(dict(type="uds", uds=line.options["path"]))


def _command(_config: ProxyConfig, _board: Board, line: ConsoleLine) -> Served:
    return Served(dict(type="exec", exec=line.options["command"]))


#: `type` of a console → what conserver is told of it.
TYPES = {
    console_lines.SERIAL: _serial,
    console_lines.TELNET: _port("telnet"),
    console_lines.TCP: _port("raw"),
    console_lines.SSH: _ssh,
    console_lines.IPMI: _ipmi,
    console_lines.SOCKET: _socket,
    console_lines.COMMAND: _command,
}
