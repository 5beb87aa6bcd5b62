# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations of labgrid's exporter: groups of resources, each a board with its power port and its console.

Such a file names no MAC, memory or architecture; labgrid leaves these to whoever writes the place.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Mapping

from ...core.errors import BadInput
from ...core.typed_keys import shown
from ...site.console_lines import TCP, TELNET
from ..documents import Asked, named, text_of, yaml_of
from ..source_site import HERE, Board, Site, address, at_port

#: What makes the file a template of Jinja, whose text before YAML only labgrid has: a line that begins with a single
#: "#" and a word of Jinja, and what stands in braces (labgrid's remote/config.py).
TEMPLATE = re.compile(r"\{[{%]|^\s*#\s*(?:for|endfor|if|elif|else|endif|set|include|import|macro)\b", re.MULTILINE)
#: What labgrid-exporter prints of a configuration as it starts; a line of it that goes on begins with a blank.
PRINTED = re.compile(r"^\('loaded',(.*(?:\n .*)*)\)$", re.MULTILINE)
#: Model of NetworkPowerPort → what our driver for the same interface is told. Others are asked for.
MODELS: dict[str, dict[str, str]] = {
    # labgrid asks all of them by SNMPv1 (util/snmp.py)
    **{key: {"driver": "snmp", "snmp_version": "1"} for key in ("apc", "eaton", "poe_mib", "raritan", "sentry")},
    "shelly_gen1": {"driver": "http", "api": "shelly1"},
    "shelly_gen2": {"driver": "http", "api": "shelly2"},
    "digitalloggers_restapi": {"driver": "http", "api": "dli"},
}
#: What is asked, although a driver here may switch it: labgrid asks the device otherwise.
GUDE = "driver snmp switches Gude's Expert Power Control 1104, 1105, 1202, 1292, 8221, 8226 and 8316"
NETIO = "driver http with api netio switches what has NETIO's JSON API"
OTHERWISE = {
    **dict.fromkeys(("gude", "gude24", "gude8031", "gude8225", "gude8316"), GUDE),
    **dict.fromkeys(("netio", "netio_kshell"), NETIO),
    "USBPowerPort": "driver uhubctl switches hubs of the proxy node: their outlets are HUB:PORT as uhubctl lists them",
    "TasmotaPowerPort": "driver http with api tasmota switches it by its own address",
}
#: Models whose ports are counted from 0 where our driver counts from 1, as the device's labels do.
FROM_ZERO = ("digitalloggers_restapi",)
#: Outlets of an infeed, as labgrid's model sentry counts them through (driver/power/sentry.py).
OF_INFEED = 8
#: labgrid's protocols of a NetworkSerialPort (its default first) → types of console_from: RFC 2217 is telnet's.
RFC2217 = "rfc2217"
CONSOLES = {RFC2217: TELNET, "raw": TCP}
#: What switches power, and what makes a group a board.
POWER = ("PowerPort", "PDUDaemonPort", "PowerOutlet")
SIGNS = (*POWER, "SerialPort", "EthernetPort", "NetworkService")


def read(asked: Asked) -> Site:
    site = Site()
    for path in asked.files(".yaml", ".yml"):
        text = text_of(path)
        printed = PRINTED.search(text)
        if not printed and TEMPLATE.search(text):
            what = "is a template, of which only labgrid makes YAML"
            raise BadInput(what, path, "give what labgrid-exporter prints of it as it starts, in a file")
        add(site, _loaded(printed[1], path) if printed else yaml_of(text, path), named(path))
    return site


def _loaded(text: str, source: str) -> Any:
    """Return the configuration that labgrid-exporter printed, as Python has it."""
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        what = "is not the whole of what labgrid-exporter prints as it starts"
        raise BadInput(what, source, "give it up to its end") from error


def add(site: Site, data: Any, source: str) -> None:
    """Add the boards of one exporter's configuration."""
    if not isinstance(data, dict) or not all(isinstance(group, dict) for group in data.values()):
        what = "is no exporter's configuration: groups of resources by name"
        raise BadInput(what, source, "give the exporter's file")
    for name, group in data.items():
        where = f"{source}, group {name}"
        resources = list(_resources(group))
        if not any(kind.endswith(SIGNS) for kind, _params in resources):
            site.notes.append(f"{where}: has no power port, console or network: it is taken for no board")
            continue
        board = Board(str(name), where)
        several = [kind for kind, _params in resources if kind.endswith(POWER)]
        for kind, params in resources:
            if not several[1:] or kind not in several:
                _add_resource(site, board, kind, params)
        if several[1:]:
            board.ask("pdu", f"{where}: has several outlets ({', '.join(several)}), and one is switched")
        site.boards.append(board)


def _resources(group: Mapping[str, Any]) -> Any:
    """Yield (class, parameters) of each resource; `location` and its like are none."""
    for name, params in group.items():
        if isinstance(params, dict):
            yield str(params.get("cls") or name), params


def _add_resource(site: Site, board: Board, kind: str, params: Mapping[str, Any]) -> None:
    where = f"{board.where}, {kind}"
    if kind == "NetworkPowerPort":
        _network_power(site, board, params, where)
    elif kind == "PDUDaemonPort":
        pdu = site.pdu(str(params.get("pdu") or f"{board.name}-power"), where)
        pdu.ask("driver", f"{where}: pdudaemon switches it, which does not tell whether an outlet is on")
        board.take("pdu", pdu.name)
        board.take("outlet", params.get("index"))
    elif kind.endswith(("PowerPort", "PowerOutlet")):
        board.ask("pdu", f"{where}: {OTHERWISE.get(kind, 'power of this kind has no driver here')}")
    elif kind == "NetworkService":
        board.take("ip", address(params.get("address")).host, where)
    elif kind == "NetworkSerialPort":
        _network_console(board, params, where)
    elif kind.endswith("SerialPort"):
        device = params.get("port") or "/dev/…"
        where_it_is = "where that is the proxy node or the device moves there"
        as_said = f"{{type: serial, device: {device}}}"
        board.ask("console_from", f"{where}: it is a serial port of the exporter: {where_it_is}, give {as_said}")
    elif kind == "EthernetPort":
        at = f"{params.get('switch')}, port {params.get('interface')}"
        board.ask("mac", f"{where}: it is at switch {at}, whose table of addresses has it")


def _network_console(board: Board, params: Mapping[str, Any], where: str) -> None:
    host, port, protocol = params.get("host"), params.get("port"), params.get("protocol") or RFC2217
    if host in HERE or protocol not in CONSOLES or not (host and port):
        board.ask("console_from", f"{where}: it is at {host}:{port} ({protocol}) of the exporter's machine")
    else:
        board.take_port(host, port, CONSOLES[protocol], where)


def _network_power(site: Site, board: Board, params: Mapping[str, Any], where: str) -> None:
    model, index = str(params.get("model") or ""), params.get("index")
    at = address(params.get("host"))
    if not at.host:
        board.ask("pdu", f"{where}: names no host")
        return
    pdu = site.pdu(at_port(at.host, at.port), where)
    pdu.take_address(params.get("host"))
    if model in MODELS:
        for key, value in MODELS[model].items():
            pdu.take(key, value)
    else:
        pdu.take("driver", "http" if "://" in str(params.get("host")) else None)
        other = OTHERWISE.get(model)
        pdu.ask(
            "driver", f"{where}: model {shown(model)} of labgrid{f': {other}' if other else ' has no counterpart here'}"
        )
    board.take("pdu", pdu.name)
    board.take("outlet", _outlet(model, index))


def _outlet(model: str, index: Any) -> Any:
    """Return the outlet of a port as our driver for its model counts it."""
    if not str(index).isdigit():
        return index
    if model in FROM_ZERO:
        return int(index) + 1
    if model == "sentry" and int(index):
        infeed, outlet = divmod(int(index) - 1, OF_INFEED)
        return f"1.{infeed + 1}:{outlet + 1}" if infeed else outlet + 1
    return index
