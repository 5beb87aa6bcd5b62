# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exports with odd values in them, drawn at random. If these fail, a site of a thousand machines is not moved in for
one of them, with a traceback that names none; or a machine that somebody has there counts as free here.

Tests moving/sources/csv_file.py, moving/sources/ironic.py, moving/sources/maas.py.
"""

from __future__ import annotations

import copy
import json
import random

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.source_site import Site
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.sources import csv_file, ironic, maas

MAC = "00:1a:ca:00:58:92"
MACHINE = {
    "system_id": "abc",
    "hostname": "n1",
    "architecture": "amd64/generic",
    "cpu_count": 4,
    "memory": 8192,
    "storage": 120000.5,
    "boot_interface": {"mac_address": MAC, "links": [{"ip_address": "10.0.2.5"}]},
    "power_type": "ipmi",
    "owner": "ann",
    "status_name": "Deployed",
}
POWER = {"power_address": "10.0.1.5", "power_user": "root", "cipher_suite_id": "3", "node_id": "1", "node_outlet": "4"}
NODE = {
    "uuid": "u1",
    "name": "n1",
    "driver": "ipmi",
    "properties": {"cpu_arch": "x86_64", "cpus": "4", "memory_mb": "8192", "local_gb": "100"},
    "driver_info": {
        "ipmi_address": "10.0.1.5",
        "redfish_address": "https://10.0.1.6:8443",
        "redfish_system_id": "/redfish/v1/Systems/1",
        "redfish_verify_ca": "/etc/ca.pem",
        "snmp_address": "10.0.1.9",
        "snmp_outlet": 4,
        "snmp_auth_protocol": "sha",
    },
    "provision_state": "active",
    "instance_uuid": "i1",
}
PORT = {"address": MAC, "node_uuid": "u1", "pxe_enabled": True}
#: What a value may be instead: of another type, empty, too large, no address, or with bytes that no file takes.
ODD = [None, "", " ", 0, -1, 1e300, 10**30, True, [], {}, [1], [None], {"a": 1}, "x" * 300, "\x00", "\u202e", "http://"]
ODD += ["http://[::1", "[::1]:x", "10.0.0.1:99999", "https://u:p@h:port/x", "1e9", [{"ip_address": None}]]


def spoiled(by, *values):
    """Copies of values, in each of which up to three parts are odd."""
    made = []
    for value in values:
        whole = copy.deepcopy(value)
        for _part in range(by.randint(0, 3)):
            at = whole
            key = by.choice(list(at))
            while isinstance(at[key], dict) and at[key] and by.random() < 0.7:
                at = at[key]
                key = by.choice(list(at))
            at[key] = copy.deepcopy(by.choice(ODD))
        made.append(whole)
    return made


@pytest.mark.parametrize("kind", ["ipmi", "redfish", "apc", "eaton", "raritan", "none"])
def test_no_value_of_maas_ends_in_a_traceback(kind):
    by = random.Random(kind)
    for _draw in range(500):
        status = by.choice(("Deployed", "Failed testing"))
        machine, power = spoiled(by, {**MACHINE, "power_type": kind, "status_name": status}, {"abc": POWER})
        try:
            (board,) = maas.site_of([("f", machine)], power).boards
        except HeteroError:
            continue
        used = machine["owner"] or machine["status_name"] == "Deployed"
        assert not (used and "pdu" in board.said), json.dumps([machine, power])


@pytest.mark.parametrize("kind", ["ipmi", "redfish", "idrac", "snmp", "none"])
def test_no_value_of_ironic_ends_in_a_traceback(kind):
    by = random.Random(kind)
    for _draw in range(500):
        node, port = spoiled(by, {**NODE, "driver": kind}, PORT)
        try:
            boards = ironic.site_of([("f", node), ("f", port)]).boards
        except HeteroError:
            continue
        used = node.get("instance_uuid") or node.get("provision_state") == "active"
        assert not (used and any("pdu" in board.said for board in boards)), json.dumps([node, port])


@pytest.mark.parametrize("address", [None, "", " ", "\t"])
def test_a_machine_in_use_whose_pdu_has_no_address_is_asked_for(address):
    """Lost: the export of a whole site, for one machine of MAAS whose PDU's address is blank."""
    machine = {**MACHINE, "power_type": "apc"}
    (board,) = maas.site_of([("f", machine)], {"abc": {**POWER, "power_address": address}}).boards
    assert 'it is "Deployed" to "ann", and may be at work' in board.asked["pdu"]
    assert "its address is in maas PROFILE machines power-parameters" in board.asked["pdu"]


CELLS = ["name", "mac", "ip", "id", "pdu", "outlet", "pdu_host", "pdu_banks", "cores", MAC, "10.0.2.1", "5", "", "\x00"]
CELLS += ['"a', '"a,b"', '"a\nb"', "\u00fc", "1;2", "-", "'", "1e3", "\ufeffname", "http://x:y@z/1", "yes", "[1]"]


def test_no_table_ends_in_a_traceback():
    by = random.Random("table")
    for draw in range(1000):
        mark = by.choice(csv_file.DELIMITERS)
        rows = [mark.join(by.choices(CELLS, k=by.randint(1, 6))) for _row in range(by.randint(0, 4))]
        head = [mark.join(["name", "mac", "ip", "pdu", "pdu_host", "outlet"])] if draw % 4 else []
        try:
            csv_file.add(Site(), by.choice(("\n", "\r\n")).join([*head, *rows]), "f")
        except HeteroError:
            continue
