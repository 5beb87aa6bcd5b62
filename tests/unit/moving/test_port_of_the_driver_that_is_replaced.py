# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ironic names the port of IPMI; the answers say driver redfish, as the guide to the first board advises for a BMC that
has both. If this fails, the password of the BMC is offered by HTTPS to whatever answers at the number of IPMI's port:
with virtual BMCs, where each has a port of one host, that is another machine's.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, moved, questions, wiring

PROPERTIES = {"cpu_arch": "x86_64", "cpus": 8, "memory_mb": 16384, "local_gb": 0}
IPMI = {"ipmi_address": "10.0.100.21", "ipmi_port": 6230, "ipmi_username": "admin"}
#: A BMC that wants a key besides its password, which no driver for IPMI here has: the driver is asked.
KEYED = {**IPMI, "ipmi_hex_kg_key": "******"}
SNMP = {"snmp_driver": "eatonpower", "snmp_address": "10.0.100.40", "snmp_port": 1161, "snmp_outlet": 3}
REDFISH = {"redfish_address": "https://10.0.100.21:8443", "redfish_system_id": "1", "redfish_username": "admin"}
NAME = "bmc-jackie"


def answered(folder, kind, info, name=NAME, **pdu):
    """(the PDU's settings, what is asked of its port) once the answers say these of it."""
    node = {"UUID": "u", "Name": "jackie", "Driver": kind, "Driver Info": info, "Properties": PROPERTIES}
    port = {"Address": "02:00:00:00:02:01", "Node UUID": "u", "PXE boot enabled": True}
    (folder / "nodes.json").write_text(json.dumps([node, port]))
    answers = {"proxy": PROXY, "pdus": {name: pdu}, "boards": {"jackie": {"ip": "10.0.2.2", "outlet": "1"}}}
    result = moved(folder / "site", "ironic", folder / "nodes.json", answers=answers, replace=True)
    return wiring(folder / "site").get("tftp_proxy_pdus", {}).get(name), questions(result).get((name, "port"))


@pytest.mark.parametrize(
    ("driver", "info", "now", "words"),
    [
        ("ipmi", IPMI, "redfish", "6230 is that of driver ipmi: give the one of redfish"),
        ("ipmi", KEYED, "redfish", "6230 is that of driver ipmi: give the one of redfish"),
        ("redfish", REDFISH, "ipmi", "8443 is that of driver redfish: give the one of ipmi"),
    ],
)
def test_the_port_goes_with_its_driver(tmp_path, driver, info, now, words):
    """It is asked, and what is answered counts."""
    pdu, asked = answered(tmp_path, driver, info, driver=now)
    assert pdu is None
    assert words in asked
    pdu, asked = answered(tmp_path, driver, info, driver=now, port=7000)
    assert (pdu["driver"], pdu["port"], asked) == (now, 7000, None)


def test_another_program_for_the_same_protocol_keeps_it(tmp_path):
    """Lost: which of the virtual BMCs it is."""
    pdu, asked = answered(tmp_path, "ipmi", {**IPMI, "ipmi_protocol_version": "1.5"}, driver="ipmi")
    assert (pdu["driver"], pdu["port"], asked) == ("ipmi", 6230, None)


@pytest.mark.parametrize("now", ["ipmi", "fence"])
def test_an_answer_with_the_same_protocol_keeps_it(tmp_path, now):
    pdu, asked = answered(tmp_path, "ipmi", KEYED, driver=now, **({"agent": "fence_ipmilan"} if now == "fence" else {}))
    assert (pdu["driver"], pdu["port"], asked) == (now, 6230, None)


@pytest.mark.parametrize(("now", "port"), [("snmp", 1161), ("http", None)])
def test_the_port_of_a_pdu_whose_kind_is_asked_goes_with_snmp(tmp_path, now, port):
    api = {"api": "dli"} if now == "http" else {}
    pdu, asked = answered(tmp_path, "snmp", SNMP, name="10.0.100.40-1161", driver=now, **api)
    assert (pdu and pdu["port"]) == port
    assert bool(asked) == (port is None)


@pytest.mark.parametrize(("now", "port"), [({"driver": "http", "api": "netio"}, 8080), ({"driver": "snmp"}, None)])
def test_the_port_of_a_web_address_in_labgrids_file_goes_with_http(tmp_path, now, port):
    power = {"model": "netio", "host": "http://10.0.100.31:8080", "index": 1}
    (tmp_path / "exporter.yaml").write_text(json.dumps({"jackie": {"NetworkPowerPort": power}}))
    board = {"mac": "02:00:00:00:02:01", "ip": "10.0.2.2", "arch": "x86_64", "vcpus": 8, "memory_mb": 1, "local_gb": 0}
    name = "10.0.100.31-8080"
    answers = {"proxy": PROXY, "pdus": {name: now}, "boards": {"jackie": board}}
    result = moved(tmp_path / "site", "labgrid", tmp_path / "exporter.yaml", answers=answers)
    pdu = wiring(tmp_path / "site").get("tftp_proxy_pdus", {}).get(name)
    assert (pdu and pdu["port"]) == port
    assert ((name, "port") in questions(result)) == (port is None)


def test_one_that_was_never_named_is_not_asked(tmp_path):
    pdu, asked = answered(tmp_path, "ipmi", {**IPMI, "ipmi_port": None}, driver="redfish")
    assert (pdu["driver"], asked) == ("redfish", None)
