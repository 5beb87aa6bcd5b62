# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines of MAAS that are systems of one Redfish service (power.json says which by `node_id`).

Lost: another sled of the same chassis, which is not even one of this collection's, is cut off, or switched on.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.tests.unit.drivers.power.http_devices import certificate
from ansible_collections.hetero.compute.tests.unit.drivers.power.redfish_bmc import RedfishBmc
from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, moved, questions, wiring


def written(tmp_path, address, *numbers, **more):
    """The wiring of some sleds, of which nothing that is needed is asked."""
    machines, power_of = [], {}
    for number in numbers:
        links = [{"mode": "static", "ip_address": f"10.0.2.2{number}"}]
        machine = {"system_id": f"a{number}", "hostname": f"sled{number}", "architecture": "amd64/generic"}
        machine.update(cpu_count=8, memory=16384, storage=128035.7, power_type="redfish")
        machine["boot_interface"] = {"mac_address": f"02:00:00:00:03:0{number}", "links": links}
        machines.append(machine)
        power = {"power_address": address, "power_user": "maas", "power_pass": "x", "node_id": f"Sled{number}"}
        power_of[f"a{number}"] = {**power, **more}
    (tmp_path / "machines.json").write_text(json.dumps(machines))
    (tmp_path / "power.json").write_text(json.dumps(power_of))
    answers = {"proxy": PROXY, "boards": {f"sled{number}": {"disk": "none"} for number in numbers}}
    result = moved(tmp_path / "site", "maas", tmp_path / "machines.json", tmp_path / "power.json", answers=answers)
    assert [one for one in result["questions"] if one["needed"]] == []
    return wiring(tmp_path / "site"), questions(result)


def test_the_system_that_maas_names_is_the_outlet(tmp_path):
    said, _asked = written(tmp_path, "10.0.100.33", 1)
    assert said["tftp_proxy_pdus"]["bmc-sled1"] == {"driver": "redfish", "host": "10.0.100.33"}
    assert said["tftp_proxy_boards"][0] == {"pdu": "bmc-sled1", "outlet": "Sled1", "disk": "none"}


def test_a_system_that_maas_does_not_name_is_asked(tmp_path):
    said, asked = written(tmp_path, "10.0.100.33", 1, node_id="")
    assert "node_id" in asked["sled1", "outlet"]
    assert said["tftp_proxy_boards"][0] == {"disk": "none"}


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://10.0.100.33:8000/redfish/v1", {"host": "10.0.100.33", "port": 8000, "tls": False}),
        ("10.0.100.33:8443", {"host": "10.0.100.33", "port": 8443}),
        ("fd00::33", {"host": "fd00::33"}),
    ],
)
def test_the_address_of_a_bmc_in_each_spelling(tmp_path, address, expected):
    said, _asked = written(tmp_path, address, 1)
    assert said["tftp_proxy_pdus"]["bmc-sled1"] == {"driver": "redfish", **expected}


@pytest.mark.dear
@pytest.mark.parametrize("numbers", [(1,), (1, 2)])
def test_the_other_sled_keeps_its_power(tmp_path, numbers):
    """The wiring as it is written, with the certificate taken as it is, and an off of the first board's outlet."""
    bmc = RedfishBmc({"Sled1": "On", "Sled2": "On"}, certificate=certificate(tmp_path))
    try:
        said, _asked = written(tmp_path, f"127.0.0.1:{bmc.server_address[1]}", *numbers)
        outlet = said["tftp_proxy_boards"][0]["outlet"]
        settings = {**said["tftp_proxy_pdus"]["bmc-sled1"], "tls_verify": False, "outlets": [outlet]}
        deadline = Deadline(100.0)
        with power.session("bmc-sled1", settings, bmc.secrets, deadline, str(tmp_path)) as session:
            power.set_outlets(session, {outlet: "off"}, deadline)
        assert [name for name, _kind in bmc.resets] == ["Sled1"]
    finally:
        bmc.close()
