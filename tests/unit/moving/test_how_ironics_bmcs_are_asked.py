# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ironic says of how a BMC or PDU is asked: its cipher suite, who signed its certificate, the version of SNMP.

Lost: what the site had written down, without a word, and a BMC that is then not reached.

Tests moving/questions.py.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, moved, questions, wiring

PROPERTIES = {"cpu_arch": "x86_64", "cpus": 8, "memory_mb": 16384, "local_gb": 0}


def told(tmp_path, driver, **info):
    """(settings of its PDU, wiring of the board, what is asked)."""
    node = {"UUID": "u", "Name": "jackie", "Driver": driver, "Driver Info": info, "Properties": PROPERTIES}
    port = {"Address": "02:00:00:00:02:01", "Node UUID": "u", "PXE boot enabled": True}
    (tmp_path / "nodes.json").write_text(json.dumps([node, port]))
    answers = {"proxy": PROXY, "boards": {"jackie": {"ip": "10.0.2.2"}}}
    result = moved(tmp_path / "site", "ironic", tmp_path / "nodes.json", answers=answers)
    said = wiring(tmp_path / "site")
    (pdu,) = said.get("tftp_proxy_pdus", {}).values() or [{}]
    return pdu, said["tftp_proxy_boards"][0], questions(result)


IPMI = {"ipmi_address": "10.0.100.20", "ipmi_username": "admin"}
REDFISH = {
    "redfish_address": "https://10.0.100.21",
    "redfish_username": "admin",
    "redfish_system_id": "/redfish/v1/Systems/System.Embedded.1",
}


@pytest.mark.parametrize(
    ("more", "settings"),
    [
        ({"ipmi_cipher_suite": "17"}, {"driver": "ipmi", "cipher_suite": 17}),
        ({"ipmi_protocol_version": "1.5"}, {"driver": "fence", "agent": "fence_ipmilan"}),
    ],
)
def test_by_ipmi(tmp_path, more, settings):
    pdu, wire, _asked = told(tmp_path, "ipmi", **IPMI, **more)
    assert pdu == {"host": "10.0.100.20", **settings}
    assert wire["outlet"] == 1


def test_a_key_that_the_driver_does_not_send_is_asked(tmp_path):
    pdu, _wire, asked = told(tmp_path, "ipmi", **IPMI, ipmi_hex_kg_key="******")
    assert pdu == {}
    assert "ipmi_hex_kg_key" in asked["bmc-jackie", "driver"]


@pytest.mark.parametrize("driver", ["redfish", "idrac"])
@pytest.mark.parametrize(("verify", "checked"), [("False", False), (True, True)])
def test_by_redfish(tmp_path, driver, verify, checked):
    pdu, wire, _asked = told(tmp_path, driver, **REDFISH, redfish_verify_ca=verify)
    assert pdu == {"driver": "redfish", "host": "10.0.100.21", "tls": True, "tls_verify": checked}
    assert wire["outlet"] == "System.Embedded.1"


def test_a_file_of_ironics_machine_is_asked(tmp_path):
    pdu, _wire, asked = told(tmp_path, "redfish", **REDFISH, redfish_verify_ca="/etc/ironic/ca.pem")
    assert pdu == {}
    assert "/etc/ironic/ca.pem" in asked["bmc-jackie", "tls_ca"]


@pytest.mark.parametrize("kind", ["apc_rackpdu", "raritan_pdu2", "servertech_sentry4"])
def test_a_pdu_by_snmp(tmp_path, kind):
    info = dict(snmp_address="10.0.100.5", snmp_outlet="7", snmp_driver=kind, snmp_version="2c")
    pdu, wire, _asked = told(tmp_path, "snmp", **info)
    assert pdu == {"driver": "snmp", "host": "10.0.100.5", "snmp_version": "2c"}
    assert wire["outlet"] == 7


def test_a_pdu_of_another_kind_is_asked(tmp_path):
    info = dict(snmp_address="10.0.100.5", snmp_outlet="7", snmp_driver="eatonpower")
    _pdu, _wire, asked = told(tmp_path, "snmp", **info)
    assert "eatonpower" in asked["10.0.100.5", "driver"]
