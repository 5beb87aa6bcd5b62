# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exports of Ironic and MAAS. If these fail, a server is cut by another one's BMC."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.tests.unit.moving.moves import (
    MARKER,
    PROXY,
    SAMPLES,
    files,
    moved,
    questions,
    wiring,
)

NODES, PORTS = "ironic-nodes.json", "ironic-ports.json"
MACHINES, POWER = "maas-machines.json", "maas-power.json"


def test_ironics_nodes_and_ports(tmp_path):
    asked = questions(moved(tmp_path / "first", "ironic", NODES, PORTS))
    unnamed = "3be26c0b-03f2-4d2e-ae87-c02d7f33c783"
    assert {key for about, key in asked if about == "jackie"} == {"ip", "disk"}, "its second port boots nothing"
    assert "02:00:00:00:02:03, 02:00:00:00:02:04" in asked["bob", "mac"]
    assert "driver fake-hardware has no counterpart" in asked[unnamed, "pdu"]
    assert "no port of it was given" in asked[unnamed, "mac"]
    bob = dict(mac="02:00:00:00:02:03", ip="10.0.2.3", vcpus=8, memory_mb=4096, local_gb=0, driver="pxe")
    boards = {"jackie": {"ip": "10.0.2.2", "disk": "none"}, "bob": bob, unnamed: {"skip": True}}
    result = moved(tmp_path, "ironic", NODES, PORTS, answers={"proxy": PROXY, "boards": boards})
    assert result["questions"] == []
    said = wiring(tmp_path)
    assert said["tftp_proxy_pdus"]["bmc-jackie"] == {"driver": "ipmi", "host": "10.0.100.20", "port": 6230}
    bob = {"driver": "redfish", "host": "10.0.100.21", "tls": True, "tls_verify": True}
    assert said["tftp_proxy_pdus"]["bmc-bob"] == bob
    assert said["tftp_proxy_boards"][1]["outlet"] == 1
    assert said["tftp_proxy_pdu_credentials"]["bmc-bob"] == {
        "username": "root",
        "password": "{{ vaulted_bmc_bob_password }}",
    }
    assert said["tftp_proxy_boards"][0] == {"pdu": "bmc-jackie", "outlet": 1, "disk": "none"}


def test_a_node_as_it_is_shown(tmp_path):
    """`node show -f json` has the keys of the API, and one object."""
    (node, *_rest) = json.loads((SAMPLES / NODES).read_text())
    shown = {key.lower().replace(" ", "_"): value for key, value in node.items()}
    (tmp_path / "node.json").write_text(json.dumps(shown))
    asked = questions(moved(tmp_path / "site", "ironic", tmp_path / "node.json", PORTS))
    assert {key for about, key in asked if about == "jackie"} == {"ip", "disk"}


def test_maass_machines(tmp_path):
    asked = questions(moved(tmp_path / "first", "maas", MACHINES, POWER))
    assert {key for about, key in asked if about == "jackie"} == {"disk"}
    assert "MAAS does not know the interface" in asked["carol", "mac"]
    assert ("bob", "local_gb") in asked, "0 may be a disk that nobody looked for"
    assert "memory_mb is 0" in asked["carol", "memory_mb"], "a machine that was never looked at"
    boards = {"jackie": {"disk": "/dev/sda"}, "bob": {"ip": "10.0.2.22", "driver": "pxe", "local_gb": 0}}
    boards["bob"]["pdu"] = "10.0.100.1"  # which is deployed, and may go off
    boards["carol"] = {"skip": True}
    result = moved(tmp_path, "maas", MACHINES, POWER, answers={"proxy": PROXY, "boards": boards})
    said = wiring(tmp_path)
    assert said["tftp_proxy_boards"] == {
        0: {"pdu": "bmc-jackie", "outlet": 1, "disk": "/dev/sda"},
        1: {"pdu": "10.0.100.1", "outlet": 5, "driver": "pxe"},
    }
    assert said["tftp_proxy_pdus"]["10.0.100.1"] == {"driver": "snmp", "host": "10.0.100.1"}
    assert " 16384 99 " in (tmp_path / "files" / "boards").read_text(), "MB of a disk are not GiB"
    assert any("RAM image for x86_64" in note for note in result["notes"])
    assert MARKER not in str(files(tmp_path)) + str(result)


@pytest.mark.parametrize(("kind", "version"), [("apc", None), ("raritan", None), ("eaton", "1")])
def test_outlets_of_pdus_of_maas(tmp_path, kind, version):
    machine = dict(system_id="a", hostname="jackie", power_type=kind)
    (tmp_path / "machines.json").write_text(json.dumps([machine]))
    (tmp_path / "power.json").write_text(json.dumps({"a": {"power_address": "10.0.0.1", "node_outlet": "5"}}))
    board = dict(ip="10.0.2.1", mac="02:00:00:00:01:01", arch="x86_64", vcpus=1, memory_mb=512, local_gb=0)
    answers = {"proxy": PROXY, "boards": {"jackie": board}}
    moved(tmp_path / "site", "maas", tmp_path / "machines.json", tmp_path / "power.json", answers=answers)
    said = wiring(tmp_path / "site")
    assert said["tftp_proxy_boards"][0] == {"pdu": "10.0.0.1", "outlet": 5}
    more = {"snmp_version": version} if version else {}
    assert said["tftp_proxy_pdus"] == {"10.0.0.1": {"driver": "snmp", **more, "host": "10.0.0.1"}}


def test_power_that_was_not_exported_is_asked(tmp_path):
    asked = questions(moved(tmp_path, "maas", MACHINES))
    assert "machines power-parameters" in asked["jackie", "pdu"]


@pytest.mark.parametrize("source", ["ironic", "maas"])
@pytest.mark.parametrize("text", ["[1]", '[{"a": 1}]', '[{"system_id": ', "NaN"])
def test_what_is_no_export_is_said(tmp_path, source, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(BadInput):
        moved(tmp_path / "site", source, tmp_path / "x.json")
