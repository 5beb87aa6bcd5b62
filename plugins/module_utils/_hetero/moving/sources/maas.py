# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MAAS's machines, as its command exports them: `maas PROFILE machines read`, and beside it, where the site wants power
taken over, `maas PROFILE machines power-parameters`.

The second file holds passwords in clear; nothing of them is kept.
"""

from __future__ import annotations

from typing import Any, Mapping

from ...core.errors import BadInput
from ...core.typed_keys import shown
from ..bmcs import bmc, by_ipmi, by_redfish, in_use
from ..documents import Asked, json_of, named, text_of
from ..source_site import Board, Site, address, pdu_at, told

#: MAAS's types of power that a driver here has.
TYPES = ("ipmi", "redfish", "apc", "eaton", "raritan")
#: States in which nobody has a machine, and MAAS does nothing with it.
FREE = ("new", "ready", "broken", "retired", "missing", "failed commissioning", "failed testing")
#: The value of power_driver of IPMI that means its older protocol.
OLDER = "LAN"


def read(asked: Asked) -> Site:
    machines: list[tuple[str, Mapping[str, Any]]] = []
    power: dict[str, Any] = {}
    for path in asked.files(".json"):
        data = json_of(text_of(path), path)
        if isinstance(data, dict) and "system_id" not in data and all(isinstance(one, dict) for one in data.values()):
            power.update(data)
            continue
        for one in data if isinstance(data, list) else [data]:
            if not isinstance(one, dict) or not one.get("system_id"):
                raise BadInput("holds what is no machine of MAAS", path, "export it by maas PROFILE machines read")
            machines.append((named(path), one))
    return site_of(machines, power)


def site_of(machines: list[tuple[str, Mapping[str, Any]]], power: Mapping[str, Any]) -> Site:
    """Return the site of (file, machine).

    :param power: parameters of their power by system_id, as far as they were given.
    """
    site = Site()
    for source, machine in machines:
        name = str(machine.get("hostname") or machine["system_id"])
        board = Board(name, f"{source}, machine {name}")
        board.take("arch", str(machine.get("architecture") or "").partition("/")[0])
        board.take("vcpus", machine.get("cpu_count"))
        board.take("memory_mb", _whole(machine.get("memory")))
        # MAAS counts in MB of 1000², boards files in GiB; of 0 nobody knows whether it ever looked
        storage = machine.get("storage")
        if isinstance(storage, (int, float)) and storage > 0:
            board.take("local_gb", int(storage * 1000**2 // 1024**3))
        mac = told(machine, "boot_interface", "mac_address")
        board.take("mac", mac)
        if not mac:
            board.ask("mac", f"{board.where}: MAAS does not know the interface that it boots from")
        _add_address(board, machine)
        _add_power(site, board, machine, told(power, str(machine["system_id"])))
        owner = machine.get("owner")
        state = str(machine.get("status_name") or ("Allocated" if owner else FREE[0]))
        if owner or state.lower() not in FREE:  # a deployed one whose test failed keeps its owner
            in_use(board, shown(state) + (f" to {shown(owner)}" if owner else ""))
        site.boards.append(board)
    return site


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _add_address(board: Board, machine: Mapping[str, Any]) -> None:
    links = told(machine, "boot_interface", "links")
    links = links if isinstance(links, list) else []
    found = sorted({str(link["ip_address"]) for link in links if told(link, "ip_address")})
    found = [one for one in found if ":" not in one]
    if len(found) == 1:
        board.take("ip", found[0])
    elif found:
        board.ask("ip", f"{board.where}: its boot interface has several: {', '.join(found)}")


def _add_power(site: Site, board: Board, machine: Mapping[str, Any], given: Any) -> None:
    kind = str(machine.get("power_type") or "")
    if kind not in TYPES:
        board.ask("pdu", f"{board.where}: MAAS's type of power {kind or '(none)'} has no counterpart here")
        return
    if not str(told(given, "power_address") or "").strip():
        why = f"its power is of type {kind}; its address is in maas PROFILE machines power-parameters"
        board.ask("pdu", f"{board.where}: {why}")
        return
    at, username = given["power_address"], given.get("power_user")
    if kind == "ipmi":
        pdu = bmc(site, board, at, username)
        by_ipmi(pdu, board, given.get("cipher_suite_id"), given.get("power_driver") == OLDER)
        if given.get("k_g"):
            pdu.ask("driver", f"{board.where}: its BMC wants a key besides the password (k_g)")
    elif kind == "redfish":
        by_redfish(bmc(site, board, at, username), board, at, given.get("node_id"), "node_id")
    else:
        # outlets of one unit are several machines', a BMC is one's own
        place = address(at)
        pdu = pdu_at(site, place.host or str(at), place.port, board.where)
        pdu.take("driver", "snmp")
        pdu.take("snmp_version", "1" if kind == "eaton" else None)
        pdu.login = True
        board.take("pdu", pdu.name)
        board.take("outlet", given.get("node_outlet"))
