# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""LAVA's device dictionaries: templates that set a device's commands (*.jinja2), or the YAML that LAVA makes of them.

They tell what switches a device's power and what its console is; no memory, and an architecture only to who knows its
device type.
"""

from __future__ import annotations

import os
import re
from typing import Any, Mapping

from ...core.errors import BadInput
from ..documents import Asked, library, named, text_of, yaml_of
from ..power_commands import Switch, commands, is_idle, understood
from ..source_site import HERE, Board, Site, address, told

#: A MAC address in a dictionary's value.
MAC = re.compile(r"[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}")
#: Names of variables that hold one of the board's own.
OF_MAC = re.compile(r"(?:^|_)mac(?:_|$)|mac_?addr")
#: Commands by which power is read, most telling first.
POWER = ("power_on_command", "hard_reset_command", "power_off_command")
#: A terminal server's port.
TELNET = re.compile(r"(?:/\S*/)?telnet [A-Za-z0-9][\w.:-]* [0-9]{1,5}", re.ASCII)


def read(asked: Asked) -> Site:
    site = Site()
    for path in asked.files(".jinja2", ".yaml", ".yml"):
        text = text_of(path)
        name = re.sub(r"\.(?:jinja2|ya?ml)\Z", "", os.path.basename(path))
        said = variables(text, path) if path.endswith(".jinja2") else from_yaml(yaml_of(text, path), path)
        add(site, name, said, named(path))
    return site


def variables(text: str, source: str) -> dict[str, Any]:
    """Return what a dictionary sets, by name, and what it extends, as `extends`. What is no plain value is left out."""
    jinja2, nodes = (library(name, "Jinja2", source) for name in ("jinja2", "jinja2.nodes"))
    try:
        tree = jinja2.Environment(autoescape=False).parse(text)
    except (jinja2.TemplateSyntaxError, RecursionError) as error:
        what = f"is no dictionary of LAVA: line {getattr(error, 'lineno', 0)}: {getattr(error, 'message', 'too deep')}"
        raise BadInput(what, source, "give devices/NAME.jinja2, as LAVA takes it") from error
    said: dict[str, Any] = {}
    for node in tree.body:
        try:
            if isinstance(node, nodes.Extends):
                said["extends"] = _plain(node.template, nodes)
            elif isinstance(node, nodes.Assign) and isinstance(node.target, nodes.Name):
                said[node.target.name] = _plain(node.node, nodes)
        except nodes.Impossible:
            continue
    return said


def _plain(node: Any, nodes: Any) -> Any:
    """Return the value of a text, a number, texts put together, or a list or mapping of such.

    Anything else is not computed: `'a' * 10**9` in a file takes the memory of who moves in, and filters may do more.

    :raises nodes.Impossible: it is something else.
    """
    if isinstance(node, nodes.Const):
        return node.value
    if isinstance(node, (nodes.List, nodes.Tuple)):
        return [_plain(one, nodes) for one in node.items]
    if isinstance(node, nodes.Dict):
        return {str(_plain(pair.key, nodes)): _plain(pair.value, nodes) for pair in node.items}
    parts = node.nodes if isinstance(node, nodes.Concat) else ()
    parts = (node.left, node.right) if isinstance(node, nodes.Add) else parts
    texts = [_plain(one, nodes) for one in parts]
    if not texts or not (isinstance(node, nodes.Concat) or all(isinstance(text, str) for text in texts)):
        raise nodes.Impossible
    return "".join(map(str, texts))


def from_yaml(data: Any, source: str) -> dict[str, Any]:
    """Return the same of the YAML that LAVA makes of a dictionary: its `commands` have other names."""
    given = told(data, "commands")
    if not isinstance(given, dict):
        what = "is no device of LAVA: it has no commands"
        raise BadInput(what, source, "give the dictionary, or what LAVA makes of it")
    said = {name: given.get(name.replace("_command", "")) for name in POWER}
    lines = given.get("connections")
    connections = {name: told(one, "connect") for name, one in lines.items()} if isinstance(lines, dict) else {}
    return {**said, "connection_command": given.get("connect"), "connection_commands": connections}


def add(site: Site, name: str, said: Mapping[str, Any], source: str) -> None:
    """Add the board of one dictionary."""
    board = Board(name, source)
    kind = str(said.get("extends") or "").replace(".jinja2", "")
    if kind:
        board.ask("arch", f"{source}: its device type is {kind}")
        board.ask("driver", f"{source}: its device type is {kind}")
    _add_mac(board, said, source)
    if isinstance(said.get("ssh_host"), str):
        board.take("ip", address(said["ssh_host"]).host, f"{source}, ssh_host")
    _add_power(site, board, said, source)
    _add_console(board, said, source)
    site.boards.append(board)


def _add_mac(board: Board, said: Mapping[str, Any], source: str) -> None:
    found = {
        value.lower().replace("-", ":")
        for name, value in said.items()
        if isinstance(value, str) and OF_MAC.search(name) and MAC.fullmatch(value)
    }
    if len(found) == 1:
        board.take("mac", *found)
    elif found:
        board.ask("mac", f"{source}: has several: {', '.join(sorted(found))}")


def _lines(value: Any) -> list[str]:
    """Return the command lines of a variable, which may be a list of such."""
    return [line for line in (value if isinstance(value, list) else [value]) if isinstance(line, str) and line.strip()]


def _add_power(site: Site, board: Board, said: Mapping[str, Any], source: str) -> None:
    found: list[Switch] = []
    for name in POWER:
        for line in (line for line in _lines(said.get(name)) if not is_idle(line)):
            switch = understood(line)
            if switch is None:
                program = next((os.path.basename(words[0]) for words in commands(line)), "?")
                board.ask("pdu", f"{source}: {name} runs {program}, of which no outlet is known")
                return
            found.append(switch)
    if not found:
        board.ask("pdu", f"{source}: has no command for power")
        return
    if len({switch.fed for switch in found}) > 1:
        fed = ", ".join(dict.fromkeys(f"outlet {switch.outlet} of {switch.pdu}" for switch in found))
        board.ask("pdu", f"{source}: its commands for power switch several outlets: {fed}")
        return
    first, pdu = found[0], site.pdu(found[0].pdu, source)
    for key, value in first.said.items():
        pdu.take(key, value)
    pdu.login = pdu.login or any(switch.login for switch in found)
    if first.daemon:
        pdu.ask("driver", f"{source}: {first.daemon} switches it; what kind of PDU it is stands in its configuration")
    board.take("pdu", first.pdu)
    board.take("outlet", first.outlet)


def _add_console(board: Board, said: Mapping[str, Any], source: str) -> None:
    by_name = said.get("connection_commands")
    lines = _lines(list(by_name.values()) if isinstance(by_name, dict) else []) + _lines(said.get("connection_command"))
    if not lines:
        return
    words = next(commands(lines[0]), [])
    if len(lines) == 1 and TELNET.fullmatch(" ".join(words)):
        if words[1] in HERE:
            board.ask("console_from", f"{source}: port {words[2]} of the LAVA worker, by telnet")
        else:
            board.take_port(words[1], words[2], where=source)
        return
    program = os.path.basename(words[0]) if words else "?"
    several = f"{len(lines)} connections, the first" if lines[1:] else "a connection"
    board.ask("console_command", f"{source}: {several} by {program}")
