# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exports of Ironic and MAAS say which machines somebody has: a node with an instance, a machine that is deployed. If
these fail they become free boards with a BMC, without a word; reconcile then switches each off ("its outlet is on, and
nobody has it"), and a request may get it.

Lost: the power, and later the disk, of a user's bare-metal server.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, moved, questions, wiring

INSTANCE = "5b9f7a4e-9f5d-4e0f-8a0f-3c1d2b7c9f10"
WIRE = {"pdu": "bmc-jackie", "outlet": 1}


def ironic(folder, boards=None, **said):
    """The wiring, and why its PDU is asked, of one node."""
    node = {
        "UUID": "u1",
        "Name": "jackie",
        "Driver": "ipmi",
        "Driver Info": {"ipmi_address": "10.0.100.20", "ipmi_username": "admin", "ipmi_password": "******"},
        "Properties": {"cpu_arch": "x86_64", "cpus": 8, "memory_mb": 16384, "local_gb": 0},
        **said,
    }
    port = {"Address": "02:00:00:00:02:01", "Node UUID": "u1", "PXE boot enabled": True}
    return one(folder, "ironic", [[node], [port]], {"ip": "10.0.2.2", **(boards or {})})


def maas(folder, boards=None, **said):
    machine = {
        "system_id": "4y3h7n",
        "hostname": "jackie",
        "architecture": "amd64/generic",
        "cpu_count": 8,
        "memory": 16384,
        "storage": 128035.7,
        "power_type": "ipmi",
        "boot_interface": {"mac_address": "02:00:00:00:03:01", "links": [{"ip_address": "10.0.2.21"}]},
        **said,
    }
    power = {"4y3h7n": {"power_driver": "LAN_2_0", "power_address": "10.0.100.30", "power_user": "maas"}}
    return one(folder, "maas", [[machine], power], {"disk": "none", **(boards or {})})


def one(folder, source, exports, board):
    paths = [folder / f"{number}.json" for number in range(len(exports))]
    for path, export in zip(paths, exports):
        path.write_text(json.dumps(export))
    answers = {"proxy": PROXY, "boards": {"jackie": board}}
    asked = questions(moved(folder / "site", source, *paths, answers=answers))
    wire = wiring(folder / "site")["tftp_proxy_boards"][0]
    wire.pop("disk", None)
    return wire, asked.get(("jackie", "pdu"))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"Provisioning State": "active", "Instance UUID": INSTANCE}, f'it is "active" with instance "{INSTANCE}"'),
        ({"provision_state": "deploying", "instance_uuid": None}, 'it is "deploying", and may be at work'),
        ({"Provisioning State": "clean wait"}, 'it is "clean wait", and may be at work'),
        ({"Provisioning State": "available", "Instance UUID": INSTANCE}, INSTANCE),
        ({"provision_state": "available", "maintenance": True}, "it is in maintenance, and may be at work"),
        ({"Maintenance": "True", "Maintenance Reason": "new disk"}, 'it is in maintenance ("new disk"), and may be'),
    ],
)
def test_a_node_of_ironic_with_an_instance_has_no_outlet_by_itself(tmp_path, said, words):
    wire, why = ironic(tmp_path, **said)
    assert wire == {}
    assert words in why
    assert "answer bmc-jackie where it may go off all the same" in why


@pytest.mark.parametrize("state", ["available", "manageable", "enroll", None, "clean failed"])
def test_a_node_that_nobody_has_has_its_own(tmp_path, state):
    said = {"Provisioning State": state, "Instance UUID": None, "Maintenance": False}
    assert ironic(tmp_path, **said) == (WIRE, None)


def test_an_answer_counts(tmp_path):
    assert ironic(tmp_path, {"pdu": "bmc-jackie"}, **{"Provisioning State": "active"}) == (WIRE, None)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"status_name": "Deployed", "owner": "alice"}, 'it is "Deployed" to "alice", and may be at work'),
        ({"status_name": "Rescue mode"}, 'it is "Rescue mode", and may be at work'),
        ({"owner": "alice"}, 'it is "Allocated" to "alice"'),
        ({"status_name": "Failed testing", "owner": "alice"}, 'it is "Failed testing" to "alice"'),
    ],
)
def test_a_machine_of_maas_that_somebody_has_has_no_outlet_by_itself(tmp_path, said, words):
    wire, why = maas(tmp_path, **said)
    assert wire == {}
    assert words in why


@pytest.mark.parametrize("said", [{"status_name": "Ready", "owner": ""}, {"status_name": "New"}, {}])
def test_a_machine_that_nobody_has_has_its_own(tmp_path, said):
    assert maas(tmp_path, **said) == (WIRE, None)


def test_what_else_is_to_be_answered_is_said_too(tmp_path):
    _wire, why = maas(tmp_path, status_name="Deployed", power_type="lxd")
    assert "may be at work" in why
    assert "MAAS's type of power lxd has no counterpart here" in why
