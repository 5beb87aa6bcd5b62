# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words of a command line, or of an export, that choose one machine of several behind one address.

If these fail, playbook move_in leaves them out without a word, and writes a wiring whose outlet is another machine: the
BMC of the host on which virtual BMCs run, outlet 3 of the first unit of a chain in place of the second one's, the first
system of a chassis. The set-up takes that; the first start or end cuts a machine that is nobody's of this collection.

Tests moving/power_commands.py.
"""

from __future__ import annotations

import json

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.power_commands import understood
from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, moved, questions, wiring

#: {line: what must be in what is known of the PDU; else the line is to be understood as nothing, and asked}
LINES = {
    "virtual bmc": ("ipmitool -I lanplus -H 10.0.0.9 -p 6231 -U admin -P s chassis power off", "6231"),
    "virtual bmc by fence": ("fence_ipmilan -a 10.0.0.9 -l admin -p s -P --ipport=6231 -n 1 -o off", "6231"),
    "short ipport": ("fence_ipmilan -a 10.0.0.9 -u 6231 -l admin -p s -P -n 1 -o off", "6231"),
    "bridged": ("ipmitool -I lanplus -H 10.0.0.9 -t 0x82 -b 7 -U admin -P s chassis power off", "0x82"),
    "second unit of a chain": ("fence_apc -a 10.0.0.1 -l apc -p s -s 2 -n 3 -o off", "2"),
    "second unit, long": ("fence_apc --ip=10.0.0.1 --switch=2 --plug=3 -o off", "2"),
    "second system": ("fence_redfish -a 10.0.0.9 -n 1 --systems-uri=/redfish/v1/Systems/2 -o off", "Systems/2"),
}


@pytest.mark.parametrize("name", LINES)
def test_what_chooses_a_machine_is_kept_or_asked(name):
    """Lost: the power of another machine."""
    line, word = LINES[name]
    switch = understood(line)
    assert switch is None or word in str({key: one for key, one in switch.said.items() if key != "host"}), switch


def test_two_outlets_of_one_command_are_asked():
    """A machine with two power supplies is not off by one of its outlets."""
    oid = "1.3.6.1.4.1.318.1.1.12.3.3.1.1.4"
    assert understood(f"snmpset -v 2c -c s 10.0.0.1 {oid}.5 i 2 {oid}.6 i 2") is None


def test_two_power_ports_of_one_place_are_asked(tmp_path):
    """labgrid: the board's own power, and that of what hangs on it (a relay, a hub): the last one is no more right."""
    port = {"cls": "NetworkPowerPort", "model": "apc", "host": "10.0.0.1"}
    group = {"jackie": {"power": {**port, "index": 3}, "relay": {**port, "index": 7}}}
    path = tmp_path / "exporter.yaml"
    path.write_text(yaml.safe_dump(group))
    asked = questions(moved(tmp_path / "out", "labgrid", path))
    assert ("jackie", "outlet") in asked or ("jackie", "pdu") in asked, asked


BOARD = dict(arch="x86_64", vcpus=4, memory_mb=2048, local_gb=0, mac="02:00:00:00:01:01", ip="10.0.2.1")


def test_a_node_of_a_chassis_by_maas(tmp_path):
    """MAAS's power parameter node_id is the system of a Redfish service."""
    machine = {"system_id": "a", "hostname": "jackie", "power_type": "redfish"}
    power = {"a": {"power_address": "10.0.0.9", "power_user": "u", "power_pass": "s", "node_id": "Blade-2"}}
    for name, what in (("machines", [machine]), ("power", power)):
        (tmp_path / f"{name}.json").write_text(json.dumps(what))
    answers = {"proxy": PROXY, "boards": {"jackie": BOARD}}
    out = tmp_path / "out"
    result = moved(out, "maas", tmp_path / "machines.json", tmp_path / "power.json", answers=answers)
    said = wiring(out)
    assert "Blade-2" in str(said) or questions(result), (said["tftp_proxy_pdus"], said["tftp_proxy_boards"])


def test_a_bridged_bmc_of_ironic(tmp_path):
    """Ironic's ipmi_target_address is the BMC behind the one that is asked."""
    info = {"ipmi_address": "10.0.0.9", "ipmi_username": "u", "ipmi_password": "******"}
    info.update(ipmi_bridging="single", ipmi_target_address="0x82", ipmi_target_channel="7")
    node = {"uuid": "u1", "name": "jackie", "driver": "ipmi", "driver_info": info, "properties": {}}
    (tmp_path / "nodes.json").write_text(json.dumps([node]))
    answers = {"proxy": PROXY, "boards": {"jackie": BOARD}}
    out = tmp_path / "out"
    result = moved(out, "ironic", tmp_path / "nodes.json", answers=answers)
    said = wiring(out)
    assert "0x82" in str(said) or questions(result), (said["tftp_proxy_pdus"], said["tftp_proxy_boards"])
