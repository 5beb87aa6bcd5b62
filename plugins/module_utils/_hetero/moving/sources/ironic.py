# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ironic's nodes and ports, as its command exports them: `openstack baremetal node list --long -f json`, or that of
`node show`, and beside it `openstack baremetal port list --long -f json`.

A node's BMC is a PDU of one outlet. Ironic itself hides passwords in what it exports.
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from ...core.errors import BadInput
from ..documents import Asked, json_of, named, text_of
from ..found import Board, Site, address, told

#: Our key → that of a node's properties.
PROPERTIES = {"arch": "cpu_arch", "vcpus": "cpus", "memory_mb": "memory_mb", "local_gb": "local_gb"}
#: Ironic's driver → fence agent, and the key of driver_info with the BMC's address.
BMCS = {"ipmi": ("fence_ipmilan", "ipmi"), "redfish": ("fence_redfish", "redfish")}
#: The outlet of a BMC, which has only that.
ONLY = "1"


def read(asked: Asked) -> Site:
    objects = []
    for path in asked.files(".json"):
        data = json_of(text_of(path), path)
        objects += [(named(path), one) for one in (data if isinstance(data, list) else [data])]
    return site_of(objects)


def site_of(objects: list[tuple[str, Any]]) -> Site:
    """Return the site of (file, node or port) of Ironic."""
    site, macs, nodes = Site(), {}, []
    for source, given in objects:
        if not isinstance(given, dict):
            raise BadInput("holds what is no node and no port", source, "export it with -f json")
        one = {_word(key): value for key, value in given.items()}
        if "address" in one and "driver" not in one:
            if not one.get("pxe_enabled", one.get("pxe_boot_enabled", True)):
                continue
            macs.setdefault(one.get("node_uuid"), []).append(str(one["address"]))
        elif "driver" in one and "uuid" in one:
            nodes.append((source, one))
        else:
            raise BadInput("holds what is no node and no port", source, "export nodes and ports with --long -f json")
    for source, node in nodes:
        site.boards.append(_board(site, node, macs.get(node["uuid"], []), source))
    return site


def _word(key: object) -> str:
    """Return a key as the API has it; the command's lists have titles (`Driver Info`)."""
    return str(key).strip().lower().replace(" ", "_")


def _board(site: Site, node: Mapping[str, Any], macs: list[str], source: str) -> Board:
    name = str(node.get("name") or node["uuid"])
    board = Board(name, f"{source}, node {name}")
    for key, word in PROPERTIES.items():
        board.take(key, told(node, "properties", word))
    if len(macs) == 1:
        board.take("mac", macs[0])
    elif macs:
        board.ask("mac", f"{board.where}: which of its ports boots: {', '.join(sorted(macs))}")
    else:
        board.ask("mac", f"{board.where}: no port of it was given (openstack baremetal port list --long -f json)")
    info = node.get("driver_info")
    if not isinstance(info, dict):
        board.ask("pdu", f"{board.where}: its driver_info was not exported (node list --long)")
        return board
    _add_bmc(site, board, str(node["driver"]), info)
    return board


def _add_bmc(site: Site, board: Board, driver: str, info: Mapping[str, Any]) -> None:
    agent, prefix = BMCS.get(driver, (None, ""))
    at = address(info.get(f"{prefix}_address") or "")
    if agent is None or not at.host:
        why = f"Ironic's driver {driver} has no counterpart here" if agent is None else "its BMC's address is missing"
        board.ask("pdu", f"{board.where}: {why}")
        return
    pdu = site.pdu(f"bmc-{board.name}", board.where)
    said = {"driver": "fence", "agent": agent, "host": at.host, "username": info.get(f"{prefix}_username")}
    for key, value in {**said, "agent_options": dict(_agent_options(driver, info)) or None}.items():
        pdu.take(key, value)
    port = str(info.get(f"{prefix}_port") or at.port or "")
    pdu.take("port", int(port) if port.isdigit() else None)
    pdu.login = True
    if driver == "redfish" and str(info.get("redfish_address")).startswith("http://"):
        pdu.ask("agent_options", f"{board.where}: its BMC is asked without TLS: what {agent} needs for that")
    board.take("pdu", pdu.name)
    board.take("outlet", ONLY)


def _agent_options(driver: str, info: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield options of the fence agent that say what Ironic says, or does where nobody says otherwise."""
    if driver == "ipmi" and str(info.get("ipmi_protocol_version") or "2.0") == "2.0":
        yield "lanplus", 1
    if driver == "redfish" and info.get("redfish_system_id"):
        yield "systems_uri", str(info["redfish_system_id"])
