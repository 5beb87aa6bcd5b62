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
REDFISH = {"redfish_address": "https://10.0.100.21:8443", "redfish_system_id": "1", "redfish_username": "admin"}
NAME = "bmc-jackie"


def answered(folder, kind, info, **pdu):
    """(the BMC's settings, what is asked of its port) once the answers say these of it."""
    node = {"UUID": "u", "Name": "jackie", "Driver": kind, "Driver Info": info, "Properties": PROPERTIES}
    port = {"Address": "02:00:00:00:02:01", "Node UUID": "u", "PXE boot enabled": True}
    (folder / "nodes.json").write_text(json.dumps([node, port]))
    answers = {"proxy": PROXY, "pdus": {NAME: pdu}, "boards": {"jackie": {"ip": "10.0.2.2", "outlet": "1"}}}
    result = moved(folder / "site", "ironic", folder / "nodes.json", answers=answers, replace=True)
    return wiring(folder / "site").get("tftp_proxy_pdus", {}).get(NAME), questions(result).get((NAME, "port"))


@pytest.mark.parametrize(
    ("driver", "info", "now", "words"),
    [
        ("ipmi", IPMI, "redfish", "6230 is that of driver ipmi: give the one of redfish"),
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


def test_one_that_was_never_named_is_not_asked(tmp_path):
    pdu, asked = answered(tmp_path, "ipmi", {**IPMI, "ipmi_port": None}, driver="redfish")
    assert (pdu["driver"], asked) == ("redfish", None)
