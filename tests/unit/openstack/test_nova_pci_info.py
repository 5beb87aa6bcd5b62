# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the linter tells a person. If these fail, an instance that Nova will not place is looked for in the wrong file.

That its verdicts are Nova's is shown in tests/unit/parity.

Tests openstack/lint.py.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.openstack import lint as lint_module
from ansible_collections.hetero.compute.plugins.modules.nova_pci_info import work

A1 = {"name": "a1", "vendor_id": "10de", "product_id": "11bf"}
RULE = {"vendor_id": "10de", "product_id": "11bf"}
FLAVORS = {"gpu.k2": {"extra_specs": {"pci_passthrough:alias": "a1:1"}}}
CONF = f"""\
[pci]
alias = {json.dumps(A1)}
device_spec = {json.dumps(RULE)}
[filter_scheduler]
enabled_filters = ComputeFilter,PciPassthroughFilter
"""


def device(address, vendor="10de", product="11bf", kind="type-PCI", state="available", **more):
    """As pci_info returns it."""
    shown = dict(
        address=address, vendor_id=vendor, product_id=product, type=kind, numa_node=0, state=state, parent=None
    )
    return dict(shown, **more)


def lint(root=None, text=CONF, kinds=("api", "compute", "scheduler"), devices=(), flavors=None, **more):
    if root:
        (root / "etc/nova").mkdir(parents=True, exist_ok=True)
        (root / "etc/nova/nova.conf").write_text(text)
        (root / "etc/nova/api-paste.ini").write_text("")
    services = [dict(kind=kind, command=f"nova-{kind}", wsgi=False, environment=None, home=None) for kind in kinds]
    params = dict(services=services if root else [], name="all1", devices=list(devices), nodes=[])
    params.update(flavors=FLAVORS if flavors is None else flavors)
    return work(dict(params, release="34", root=str(root), **more), False)


def verdict(found, flavor="gpu.k2"):
    (one,) = found["flavors"][flavor]["hosts"].values()
    return one


def said(found):
    return [finding["what"] for finding in found["findings"]]


def test_one_machine_that_is_everything(tmp_path):
    """A sound configuration has no findings, and the flavor comes with the command that makes it."""
    found = lint(tmp_path, devices=[device("0000:85:00.0", state="allocated"), device("0000:86:00.0")])
    assert found["findings"] == []
    assert verdict(found) == dict(fits=True, stage=None, why="")
    assert found["flavors"]["gpu.k2"]["command"] == (
        'openstack flavor set gpu.k2 --property "pci_passthrough:alias"="a1:1"'
    )
    assert [one["kind"] for one in found["nodes"]] == ["api", "compute", "scheduler"]
    assert found["nodes"][1]["numa_nodes"], "this machine has NUMA nodes"


def test_nodes_that_were_read_elsewhere(tmp_path):
    """What a run on each node returned is looked at together on the controller."""
    nodes = lint(tmp_path / "ctl", kinds=["api", "scheduler"], name="ctl")["nodes"]
    nodes += lint(tmp_path / "kvm1", kinds=["compute"], name="kvm1", devices=[device("0000:85:00.0")])["nodes"]
    nodes += lint(tmp_path / "kvm2", kinds=["compute"], name="kvm2")["nodes"]
    found = lint(nodes=nodes)
    assert found["findings"] == []
    hosts = found["flavors"]["gpu.k2"]["hosts"]
    assert {name: one["fits"] for name, one in hosts.items()} == {"kvm1": True, "kvm2": False}
    assert hosts["kvm2"]["stage"] == "device_spec"


@pytest.mark.parametrize(
    ("devices", "stage", "why"),
    [
        ([device("0000:85:00.0", "1002", "6929")], "device_spec", "device_spec matches none of its 1 devices"),
        ([device("0000:85:00.0", state="claimed")], "free", "all devices that device_spec matches are in use"),
        ([device("0000:85:00.0", state="removed")], "device_spec", "device_spec matches none of its 0 devices"),
        ([device("0000:85:00.0", kind="type-PF")], "pf", 'alias a1 has no "device_type": "type-PF", and all devices'),
        ([device("0000:85:00.0")], "count", "2 of alias a1 wanted, 1 there"),
    ],
)
def test_the_stage_that_leaves_no_device(tmp_path, devices, stage, why):
    flavors = {"gpu.k2": {"extra_specs": {"pci_passthrough:alias": "a1:2" if stage == "count" else "a1:1"}}}
    one = verdict(lint(tmp_path, devices=devices, flavors=flavors))
    assert (one["fits"], one["stage"]) == (False, stage)
    assert one["why"].startswith(why)


def test_an_alias_of_other_devices_and_devices_far_away(tmp_path):
    text = CONF.replace(f"device_spec = {json.dumps(RULE)}", "device_spec = {}")
    found = lint(tmp_path, text, devices=[device("0000:85:00.0", "8086", "1520")])
    assert verdict(found)["stage"] == "alias"
    assert verdict(found)["why"] == "alias a1 is 10de:11bf, and free are 8086:1520 type-PCI"
    flavors = {"f": {"extra_specs": {"pci_passthrough:alias": "a1:1", "hw:numa_nodes": "1",
                                     "hw:pci_numa_affinity_policy": "required"}}}  # fmt: skip
    far = [device("0000:85:00.0", numa_node=7)]
    found = lint(tmp_path, devices=far, flavors=flavors)
    assert verdict(found, "f")["stage"] == "numa"
    assert "NUMA nodes have enough devices near them for a1 (required)" in verdict(found, "f")["why"]
    flavors["f"]["extra_specs"]["hw:pci_numa_affinity_policy"] = "preferred"
    assert verdict(lint(tmp_path, devices=far, flavors=flavors), "f")["fits"]


def test_requests_of_one_flavor_that_take_from_each_other(tmp_path):
    flavors = {"f": {"extra_specs": {"pci_passthrough:alias": "a1:1, a1:1"}}}
    found = lint(tmp_path, devices=[device("0000:85:00.0")], flavors=flavors)
    assert verdict(found, "f")["why"] == "1 of alias a1 wanted, 0 of 1 left by the flavor's other requests"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (CONF.replace(",PciPassthroughFilter", ""), "nova-scheduler of all1 has no PciPassthroughFilter"),
        (CONF.replace("ComputeFilter", "RamFilter"), "does not start with RamFilter: gone since Nova 20"),
        (CONF.replace("[filter", f"device_spec = {json.dumps(RULE)}\n[filter"), "in device_spec 2 times"),
        (CONF.replace(f"device_spec = {json.dumps(RULE)}\n", ""), "has no device_spec: it gives away nothing"),
        (CONF + "pci_in_placement = true\n", "Placement chooses devices first"),
        (CONF.replace('"name": "a1"', '"name": 1'), "name of an alias is 1"),
        (CONF.replace("[pci]", f"[DEFAULT]\npci_alias = {json.dumps(A1)}\n[pci]"), "half migrated: alias is given by"),
        (CONF + "[DEFAULT]\nscheduler_default_filters = A\n", "does not read scheduler_default_filters"),
    ],
)  # fmt: skip
def test_findings(tmp_path, text, what):
    found = lint(tmp_path, text, devices=[device("0000:85:00.0")])
    assert any(what in line for line in said(found)), said(found)
    assert bool(found["patch"]) == ("DEFAULT" in text or "RamFilter" in text)


def test_aliases_that_differ_between_nodes():
    """Nova asks for the alias again on the compute node when it moves an instance."""
    rule = json.dumps(RULE)
    api = dict(name="ctl", kind="api", effective=dict(alias=[json.dumps(A1)]))
    kvm1 = dict(
        name="kvm1", kind="compute", effective=dict(alias=None, device_spec=[rule]), devices=[device("0000:85:00.0")]
    )
    kvm2 = dict(
        kvm1, name="kvm2", effective=dict(alias=[json.dumps(dict(A1, numa_policy="socket"))], device_spec=[rule])
    )
    findings, flavors = lint_module.lint([api, kvm1, kvm2], FLAVORS, "34")
    whats = [finding["what"] for finding in findings]
    assert "nova-compute of kvm1 has no alias a1: an instance with it cannot be moved there" in whats
    assert "nova-compute of kvm2 has another alias a1 than the others" in whats
    assert any("no scheduler node" in what for what in whats)
    assert all(one["fits"] for one in flavors["gpu.k2"]["hosts"].values())


def test_remote_managed_at_the_address_of_a_physical_function():
    """Nova 34 looks for its ids in a file that sysfs does not have, and stops."""
    rule = dict(address="0000:85:00.0", remote_managed="true")
    effective = dict(alias=[json.dumps(A1)], device_spec=[json.dumps(rule)])
    host = dict(name="kvm1", kind="compute", effective=effective, devices=[device("0000:85:00.0", kind="type-PF")])
    findings, _flavors = lint_module.lint([host], FLAVORS, "34")
    assert any("does not start with remote_managed" in finding["what"] for finding in findings)


@pytest.mark.parametrize(
    ("extra_specs", "error"),
    [
        ({"pci_passthrough:alias": "a1"}, "flavor f: pci_passthrough:alias is 'a1': write name:count"),
        ({"pci_passthrough:alias": "a1:0"}, "flavor f: asks for 0 of alias a1"),
        ({"pci_passthrough:alias": "a2:1"}, "flavor f: no alias 'a2' on the API node (it has a1)"),
        ({"pci_passthrough:alias": 1}, "flavor f: pci_passthrough:alias is 1"),
        ({"pci_passthrough:alias": "a1:1", "hw:numa_nodes": "0"}, "flavor f: hw:numa_nodes is '0'"),
        (
            {"pci_passthrough:alias": "a1:1", "hw:pci_numa_affinity_policy": "near"},
            "flavor f: hw:pci_numa_affinity_policy",
        ),
        ({}, "flavor f asks for no PCI device"),
    ],
)
def test_a_flavor_that_is_wrong_itself(tmp_path, extra_specs, error):
    found = lint(tmp_path, devices=[device("0000:85:00.0")], flavors={"f": {"extra_specs": extra_specs}})
    assert found["flavors"]["f"]["error"].startswith(error)
    assert found["flavors"]["f"]["hosts"] == {}


def test_what_is_no_node_and_no_device():
    with pytest.raises(BadInput, match="nodes: unknown key 'host'"):
        lint_module.node(dict(host="x"))
    with pytest.raises(BadInput, match="device without product_id"):
        lint_module.node(
            dict(name="x", kind="compute", effective={}, devices=[dict(address="0000:85:00.0", vendor_id="10de")])
        )


def test_numa_nodes_of_this_machine(tmp_path):
    for number, socket in ((0, "0"), (1, "1")):
        node = tmp_path / f"devices/system/node/node{number}"
        topology = tmp_path / f"devices/system/cpu/cpu{number * 4}/topology"
        node.mkdir(parents=True)
        topology.mkdir(parents=True)
        (node / "cpulist").write_text(f"{number * 4}-{number * 4 + 3}\n")
        (topology / "physical_package_id").write_text(f"{socket}\n")
    (tmp_path / "devices/system/node/node2").mkdir()
    (tmp_path / "devices/system/node/node2/cpulist").write_text("\n")
    assert lint_module.numa_nodes(str(tmp_path)) == [
        dict(id=0, socket=0), dict(id=1, socket=1), dict(id=2, socket=None),
    ]  # fmt: skip
