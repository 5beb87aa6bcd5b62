# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A source says of two machines that one outlet feeds them, and that somebody has one of the two. If these fail, the
conflict is no question any more, for the machine in use has lost its PDU: the free one is written down with the outlet,
and reconcile switches that off ("its outlet is on, and nobody has it").

Lost: the power of a user's bare-metal server.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, moved, questions, wiring

IPMI = {"ipmi_address": "10.0.100.20", "ipmi_username": "admin", "ipmi_password": "******"}
WIRE = {"pdu": "bmc-spare", "outlet": 1}


def machine(number, name, **said):
    return {
        "system_id": f"id{number}",
        "hostname": name,
        "architecture": "amd64/generic",
        "cpu_count": 8,
        "memory": 16384,
        "storage": 128035.7,
        "power_type": "apc",
        "boot_interface": {"mac_address": f"02:00:00:00:03:0{number}", "links": [{"ip_address": f"10.0.2.2{number}"}]},
        "status_name": "Ready",
        **said,
    }


def maas(folder, state, **alice):
    machines = [machine(1, "alice", status_name=state), machine(2, "spare")]
    outlet = {"power_address": "10.0.100.5", "node_outlet": "3"}
    exports = [machines, {"id1": outlet, "id2": outlet}]
    return wired(folder, "maas", exports, {"alice": {"disk": "none", **alice}, "spare": {"disk": "none"}})


def ironic(folder, state, alice=None, info=None):
    """Ironic knows no address of a machine, which is answered for the free one."""
    nodes = [node(1, "alice", state, info or IPMI), node(2, "spare", "available", IPMI)]
    ports = [{"Address": f"02:00:00:00:02:0{number}", "Node UUID": f"u{number}"} for number in (1, 2)]
    return wired(folder, "ironic", [nodes, ports], {"alice": alice or {}, "spare": {"ip": "10.0.2.3"}})


def node(number, name, state, info):
    return {
        "UUID": f"u{number}",
        "Name": name,
        "Driver": "ipmi",
        "Driver Info": info,
        "Properties": {"cpu_arch": "x86_64", "cpus": 8, "memory_mb": 16384, "local_gb": 0},
        "Provisioning State": state,
        "Instance UUID": None,
    }


#: How the machine that somebody has is skipped.
SKIPPED = {maas: {"skip": True}, ironic: {"alice": {"skip": True}}}


def by_redfish(folder, at, alice):
    """Somebody has a node whose BMC needs no Id of a system; of a free one the same address may be said."""
    info = {"redfish_address": f"https://{at}", "redfish_username": "admin", "redfish_verify_ca": "False"}
    free = {**info, "redfish_address": "https://10.0.100.20", "redfish_system_id": "/redfish/v1/Systems/1"}
    nodes = [node(1, "alice", "active", info), node(2, "spare", "available", free)]
    ports = [{"Address": f"02:00:00:00:02:0{number}", "Node UUID": f"u{number}"} for number in (1, 2)]
    exports = [[{**one, "Driver": "redfish"} for one in nodes], ports]
    return wired(folder, "ironic", exports, {"alice": alice, "spare": {"ip": "10.0.2.3"}})


def wired(folder, source, exports, boards):
    """(the wires that have an outlet, what is asked)."""
    paths = [folder / f"{number}.json" for number in range(len(exports))]
    for path, export in zip(paths, exports):
        path.write_text(json.dumps(export))
    asked = questions(moved(folder / "site", source, *paths, answers={"proxy": PROXY, "boards": boards}))
    wires = wiring(folder / "site")["tftp_proxy_boards"].values()
    return [wire for wire in wires if "outlet" in wire], asked


@pytest.mark.parametrize("state", ["Ready", "Deployed"])
def test_an_outlet_that_is_said_of_two_machines_is_a_question(tmp_path, state):
    wires, asked = maas(tmp_path, state)
    assert wires == []
    assert "outlet 3 of 10.0.100.5 is said of alice" in asked["spare", "outlet"]


def test_an_answer_for_the_machine_in_use_counts(tmp_path):
    wires, asked = maas(tmp_path, "Deployed", outlet="4")
    assert wires == [{"pdu": "10.0.100.5", "outlet": 3, "disk": "none"}]
    assert ("spare", "outlet") not in asked
    assert ("alice", "pdu") in asked


@pytest.mark.parametrize(
    ("state", "alice"), [("available", {"ip": "10.0.2.2"}), ("active", {"ip": "10.0.2.2"}), ("active", {})]
)
def test_a_bmc_that_is_said_of_two_nodes_is_a_question(tmp_path, state, alice):
    """Also where the one in use cannot be written down yet."""
    wires, asked = ironic(tmp_path, state, alice)
    assert wires == []
    assert "alice (outlet 1 of bmc-alice)" in asked["spare", "outlet"]


def test_a_bmc_whose_driver_is_asked_is_compared_too(tmp_path):
    wires, asked = ironic(tmp_path, "active", info={**IPMI, "ipmi_hex_kg_key": "******"})
    assert wires == []
    assert "alice" in asked["spare", "outlet"]


@pytest.mark.parametrize("skipped", [{}, {"skip": True}])
@pytest.mark.parametrize("at", ["10.0.100.20", "10.0.100.21"])
def test_a_bmc_whose_machine_needs_no_id_by_redfish_has_one(tmp_path, at, skipped):
    """By Redfish Ironic and MAAS need no Id of a system where a BMC has one."""
    wires, asked = by_redfish(tmp_path, at, skipped)
    assert wires == ([] if at == "10.0.100.20" else [WIRE])
    assert ("alice (by bmc-alice)" in asked.get(("spare", "outlet"), "")) == (at == "10.0.100.20")


def test_an_id_that_is_answered_for_it_counts(tmp_path):
    assert by_redfish(tmp_path, "10.0.100.20", {"outlet": "2"})[0] == [WIRE]


def test_a_bmc_without_an_address_is_asked_and_compared_with_none(tmp_path):
    machines = [machine(1, "alice", power_type="redfish", status_name="Deployed"), machine(2, "spare")]
    power = {"id1": {"power_address": "://"}, "id2": {"power_address": "10.0.100.5", "node_outlet": "3"}}
    wires, asked = wired(tmp_path, "maas", [machines, power], {"alice": {"disk": "none"}, "spare": {"disk": "none"}})
    assert wires == [{"pdu": "10.0.100.5", "outlet": 3, "disk": "none"}]
    assert ("alice", "pdu") in asked


@pytest.mark.parametrize("source", [maas, ironic])
def test_a_machine_that_is_skipped_has_its_outlet_all_the_same(tmp_path, source):
    """To skip it is what one does with a machine that somebody is to keep."""
    wires, asked = source(tmp_path, "Deployed" if source == maas else "active", **SKIPPED[source])
    assert wires == []
    assert "alice" in asked["spare", "outlet"]


def table(folder, answers, mac="02:00:00:00:00:01"):
    """A server and a board, of a table that says one outlet of both: (the wires that have an outlet, what is asked)."""
    rows = ["name,mac,ip,arch,vcpus,memory_mb,local_gb,pdu,outlet,pdu_driver,pdu_host"]
    rows += [f"server,{mac},10.0.2.2,x86_64,1,1024,0,pdu-a,3,apc,10.0.100.5"]
    rows += ["spare,02:00:00:00:00:02,10.0.2.3,x86_64,1,1024,0,pdu-a,3,apc,10.0.100.5"]
    (folder / "boards.csv").write_text("\n".join(rows))
    asked = questions(moved(folder / "site", "csv", folder / "boards.csv", answers={"proxy": PROXY, "boards": answers}))
    wires = wiring(folder / "site")["tftp_proxy_boards"].values()
    return [wire for wire in wires if "outlet" in wire], asked


def test_so_has_one_of_a_source_that_knows_of_no_users(tmp_path):
    wires, asked = table(tmp_path, {"server": {"skip": True}})
    assert wires == []
    assert "server (boards.csv:2, which is skipped)" in asked["spare", "outlet"]


@pytest.mark.parametrize(
    ("spare", "server", "mac"),
    [({"outlet": 3}, {}, "01"), ({}, {"outlet": 4}, "01"), ({}, {}, "02")],
    ids=["answered", "answered of the other", "the same machine"],
)
def test_what_people_say_of_it_counts_and_another_entry_of_a_board_does_not(tmp_path, spare, server, mac):
    wires, asked = table(tmp_path, {"server": {"skip": True, **server}, "spare": spare}, f"02:00:00:00:00:{mac}")
    assert wires == [{"pdu": "pdu-a", "outlet": 3}]
    assert ("spare", "outlet") not in asked


def test_machines_with_bmcs_of_their_own_are_asked_nothing(tmp_path):
    wires, asked = ironic(tmp_path, "active", info={**IPMI, "ipmi_address": "10.0.100.21"})
    assert wires == [WIRE]
    assert ("spare", "outlet") not in asked
