# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ironic's nodes and ports, as its command exports them: `openstack baremetal node list --long -f json`, or that of
`node show`, and beside it `openstack baremetal port list --long -f json`.

A node's BMC is a PDU of its own. Ironic itself hides passwords in what it exports.
"""

from __future__ import annotations

from typing import Any, Mapping

from ...core.errors import BadInput
from ...core.typed_keys import shown
from ..bmcs import bmc, by_ipmi, by_redfish, in_use
from ..documents import Asked, json_of, named, text_of
from ..source_site import Board, Pdu, Site, address, pdu_at, told

#: Our key → that of a node's properties.
PROPERTIES = {"arch": "cpu_arch", "vcpus": "cpus", "memory_mb": "memory_mb", "local_gb": "local_gb"}
#: Ironic's driver → how the keys begin that driver_info has for it.
DRIVERS = {"ipmi": "ipmi", "redfish": "redfish", "idrac": "redfish", "snmp": "snmp"}
#: Kinds of PDUs of Ironic's driver snmp whose tables our driver snmp reads by the same number of an outlet, that of the
#: first unit. Others are asked for: cyberpower is read from a newer table where a PDU has that.
READ = ("apc", "apc_masterswitch", "apc_rackpdu", "raritan_pdu2", "servertech_sentry3", "servertech_sentry4")
#: Ironic's words for what driver snmp calls as net-snmp does, in capitals.
PROTOCOLS = ("md5", "sha", "des", "aes")
#: States of provisioning in which nobody has a node, and Ironic does nothing with it. None is what it once called them.
FREE = ("enroll", "manageable", "available", "inspect failed", "clean failed", "none")
YES, NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


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
            macs.setdefault(str(one.get("node_uuid")), []).append(str(one["address"]))
        elif "driver" in one and "uuid" in one:
            nodes.append((source, one))
        else:
            raise BadInput("holds what is no node and no port", source, "export nodes and ports with --long -f json")
    for source, node in nodes:
        site.boards.append(_board(site, node, macs.get(str(node["uuid"]), []), source))
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
    else:
        _add_bmc(site, board, str(node["driver"]), info)
    state = str(node.get("provision_state") or node.get("provisioning_state"))
    instance = node.get("instance_uuid")
    if instance or state.lower() not in FREE:
        in_use(board, shown(state) + (f" with instance {shown(instance)}" if instance else ""))
    elif str(node.get("maintenance")).lower() in YES:  # somebody may have it open, or be at its disks
        why = node.get("maintenance_reason")
        in_use(board, "in maintenance" + (f" ({shown(why)})" if why else ""))
    return board


def _add_bmc(site: Site, board: Board, driver: str, info: Mapping[str, Any]) -> None:
    prefix = DRIVERS.get(driver, "")
    at = info.get(f"{prefix}_address") or ""
    bridged = prefix == "ipmi" and str(info.get("ipmi_bridging") or "no") != "no"
    if not prefix or not address(at).host or bridged:
        why = "its BMC's address is missing" if prefix else f"Ironic's driver {driver} has no counterpart here"
        why = "its BMC is behind another one (ipmi_bridging), which no driver here reaches" if bridged else why
        board.ask("pdu", f"{board.where}: {why}")
    elif prefix == "snmp":
        _add_snmp(site, board, info)
    elif prefix == "ipmi":
        pdu = bmc(site, board, at, info.get("ipmi_username"))
        pdu.take("port", info.get("ipmi_port"))
        by_ipmi(pdu, board, info.get("ipmi_cipher_suite"), str(info.get("ipmi_protocol_version") or "2.0") == "1.5")
        if info.get("ipmi_hex_kg_key"):
            pdu.ask("driver", f"{board.where}: its BMC wants a key besides the password (ipmi_hex_kg_key)")
    else:
        pdu = bmc(site, board, at, info.get("redfish_username"))
        by_redfish(pdu, board, at, info.get("redfish_system_id"), "redfish_system_id")
        _add_authority(pdu, str(info.get("redfish_verify_ca", True)).strip())


def _add_authority(pdu: Pdu, verify: str) -> None:
    """Take whether a BMC's certificate is checked; a file with who signed it is one of Ironic's machine."""
    if pdu.said.get("tls") is False:
        return
    if verify.lower() in (*YES, *NO):
        pdu.take("tls_verify", verify.lower() in YES)
    else:
        why = f"Ironic has the authority that signed its certificate in {verify}: name its file on the proxy node"
        pdu.ask("tls_ca", f"{pdu.where}: {why}")


def _add_snmp(site: Site, board: Board, info: Mapping[str, Any]) -> None:
    """Take the outlet of a PDU that several nodes may have."""
    kind, at = str(info.get("snmp_driver") or "apc").lower(), address(info["snmp_address"])
    pdu = pdu_at(site, at.host, info.get("snmp_port") or at.port, board.where)
    pdu.take("driver", "snmp")
    if kind not in READ or info.get("snmp_context_name"):
        pdu.ask("driver", f"{board.where}: Ironic's snmp_driver is {shown(kind)}, perhaps with a context of its own")
    pdu.take("snmp_version", info.get("snmp_version") or info.get("snmp_protocol"))
    pdu.take("username", info.get("snmp_user"))
    for key, word in {"auth_protocol": "snmp_auth_protocol", "privacy_protocol": "snmp_priv_protocol"}.items():
        given = str(info.get(word) or "none").lower()
        if given in PROTOCOLS:
            pdu.take(key, given.upper())
        elif given != "none":
            pdu.ask(key, f"{board.where}: Ironic's {word} is {shown(given)}")
    pdu.login = True
    board.take("pdu", pdu.name)
    board.take("outlet", info.get("snmp_outlet"))
