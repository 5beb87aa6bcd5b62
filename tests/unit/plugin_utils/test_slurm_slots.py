# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's nodes and partitions, made of flavors. If these fail, slurmctld does not start, or gives jobs nodes that
there are none for.

Tests plugin_utils/filters/flavors.py, plugin_utils/filters/slurm_slots.py.
"""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.flavors import flavors
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.slurm_slots import slurm_slots
from ansible_collections.hetero.compute.tests.unit.plugin_utils.test_request_steps import claim, node

BIG = dict(arch="TILEPro64", vcpus=64, memory_mb=16384, local_gb=900)
CPU = {"arch": "TILEPro64", "features": ["8x8Grid"], "topology": {"cores": "64"}}
OURS = {"kg1.large": dict(memory_mb=1024, vcpus=2, local_gb=0, extra_specs={"hypervisor": "s== KVM"})}
OURS["kg1.large"]["extra_specs"]["pci_passthrough:alias"] = "a1:1, nic:2"


def boards(*names, free=2, claims=()):
    found = [node(name, free, claims) for name in names]
    for one in found:
        one["boards"] = [dict(board, **BIG, cpu_info=CPU) for board in one["boards"]]
    return found


def host():
    gpu = dict(model="Tesla", arch="fermi", healthy=True, why_unhealthy=None, unsupported=None, holder=None)
    gpus = [dict(gpu, instance=None, address=f"0000:0{card}:00.0") for card in range(4)]
    capacity = {key: {"total": 65536, "free": 65536} for key in ("memory_mb", "vcpus", "local_gb")}
    more = dict(claims=[], hypervisor="LXC", hypervisors=["LXC"], cpu_arch="x86_64", unsupported=None, devices=[])
    return dict(item="gpu1", gpus=gpus, instances=[], capacity=capacity, **more)


def made(results, partitions=None, slots=None, own=None):
    return slurm_slots(flavors(None, own), results, partitions, slots)


def test_as_many_slots_as_the_owners_could_have():
    """Lost: boards that others have today, which no job gets tomorrow."""
    wanted = {"boards": {"flavors": ["tp64.8x8"], "default": True}}
    found = made(boards("p1", "p2", claims=[claim("jackie", 0)]), wanted)
    line = "NodeName=tp64-[1-6] CPUs=1 RealMemory=16384 State=CLOUD Feature=tp64.8x8,tilepro64,8x8"
    assert found["nodes"] == [line]
    line = "PartitionName=boards Nodes=tp64-[1-6] OverSubscribe=EXCLUSIVE State=UP Default=YES"
    assert found["partitions"] == [line]
    assert found["pools"] == [dict(name="tp64", flavor="tp64.8x8", count=6, image="", new_root=True, slurmd=True)]
    assert found["new_root"] == ["boards"]


def test_one_partition_of_all_that_there_is():
    """Lost: a first try without a line of configuration."""
    found = made([*boards("p1"), host()])
    assert [pool["name"] for pool in found["pools"]] == ["tp64", "cg1"]
    nodes = "PartitionName=hetero Nodes=tp64-[1-2],cg1-[1-2] OverSubscribe=EXCLUSIVE State=UP Default=YES"
    assert found["partitions"] == [nodes]


def test_gpus_and_cards_are_generic_resources():
    """Lost: jobs that ask for GPUs (--gres=gpu:fermi:1)."""
    wanted = {"gpus": {"flavors": ["cg1.xlarge", "kg1.large"], "root": "kept"}}
    found = made([host()], wanted, {"kg1.large": {"count": 2, "image": "debian-12"}}, OURS)
    assert "Gres=gpu:fermi:2" in found["nodes"][0]
    assert "Feature=cg1.xlarge,fermi" in found["nodes"][0]
    assert "Gres=pci:a1:1,pci:nic:2" in found["nodes"][1]
    assert found["gres_types"] == ["gpu", "pci"]
    assert found["gres"] == [
        "NodeName=cg1-[1-2] Name=gpu Type=fermi Count=2",
        "NodeName=kg1-[1-2] Name=pci Type=a1 Count=1",
        "NodeName=kg1-[1-2] Name=pci Type=nic Count=2",
    ]
    assert (found["new_root"], found["pools"][1]["image"]) == ([], "debian-12")


def test_flavors_that_begin_alike_have_slots_of_other_names():
    """Lost: a configuration with two nodes of one name."""
    found = made([], {"big": {"flavors": ["tgx.8x8", "tp64.8x8"]}}, {"tgx.8x8": {"count": 3}, "tp64.8x8": {"count": 0}})
    assert [pool["name"] for pool in found["pools"]] == ["tgx-8x8"]
    assert "Nodes=tgx-8x8-[1-3] " in found["partitions"][0]


def test_what_a_partition_and_slots_say_of_themselves():
    """Lost: limits, priorities and preemption, which are why a site has Slurm."""
    one = {"flavors": ["tp64.8x8"], "max_time": "1:00:00", "priority": 10, "idle": 600, "root": "kept"}
    one["options"] = {"PreemptMode": "REQUEUE", "AllowAccounts": "a,b"}
    found = made(boards("p1"), {"fast": one}, {"tp64.8x8": {"name": "tp", "options": {"Weight": 5}}})
    ends = "Default=NO MaxTime=1:00:00 PriorityTier=10 SuspendTime=600 PreemptMode=REQUEUE AllowAccounts=a,b"
    assert found["partitions"][0].endswith(ends)
    assert found["nodes"][0].startswith("NodeName=tp-[1-2] ")
    assert found["nodes"][0].endswith(" Weight=5")


def test_slots_without_slurmd_have_a_port_each():
    """Lost: two slurmds on the controller that want the same port."""
    of = {
        "tp64.8x8": {"slurmd": False, "count": 2},
        "tgx.8x8": {"slurmd": False, "count": 3},
        "cg1.xlarge": {"count": 1},
    }
    found = made([], {"all": {"flavors": ["tp64.8x8", "cg1.xlarge", "tgx.8x8"]}}, of)
    assert [line.partition(" Port=")[2] for line in found["nodes"]] == ["[17001-17002]", "", "[17003-17005]"]
    assert [pool["slurmd"] for pool in found["pools"]] == [False, True, False]


@pytest.mark.parametrize(
    ("partitions", "slots", "why"),
    [
        ({"a": {"flavors": ["tp64.8x9"]}}, {}, "partition a: there is no flavor tp64.8x9: write tp64.8x8"),
        ({"a": {"flavors": "tp64.8x8"}}, {}, "partition a: flavors is tp64.8x8: give a list"),
        ({"a": {}}, {}, "partition a: flavors is not there: give a list"),
        ({"a b": {"flavors": ["tp64.8x8"]}}, {}, "partition a b: give a name of letters"),
        ({"a": {"flavors": ["tp64.8x8"], "rot": "new"}}, {}, "partition a: rot is no option: write root"),
        ({"a": {"flavors": ["tp64.8x8"], "root": "old"}}, {}, "root is old: give new (each job finds a new one)"),
        ({"a": {"flavors": ["tp64.8x8"], "max_time": "1\nNodeName=x"}}, {}, "max_time is 1\nNodeName=x: give one word"),
        ({"a": {"flavors": ["tp64.8x8"], "options": {"X": "1\n2"}}}, {}, "options has X: give words of slurm.conf"),
        (["a"], {}, "slurm_partitions is no mapping"),
        (None, {"tp64": {}}, "slurm_slots, flavor tp64: there is no flavor tp64"),
        (None, {"tp64.8x8": {"count": -1}}, "count is -1: give a whole number from 0 to 10000"),
        (None, {"tp64.8x8": {"name": "TP_64"}}, "name is TP_64: give 1 to 57 of a-z"),
        (None, {"tp64.8x8": {"slurmd": "proxy"}}, "slurmd is proxy: give true, or false where"),
        (
            {"a": {"flavors": ["tp64.8x8"], "root": "kept"}},
            {"tp64.8x8": {"slurmd": False}},
            "partition a: tp64.8x8 has no slurmd, so each job needs a new root",
        ),
        ({"a": {"flavors": ["tp64.8x8", "t64.8x8"]}}, {"t64.8x8": {"name": "tp64"}}, "are both called tp64"),
        (
            {"a": {"flavors": ["tp64.8x8", "t64.8x8"]}},
            {"t64.8x8": {"name": "tp64-2"}},
            "slots of t64.8x8 are called tp64-2, as a slot of tp64 is",
        ),
        (
            {"a": {"flavors": ["tp64.8x8"]}, "b": {"flavors": ["tp64.8x8"], "root": "kept"}},
            {},
            "the slots of tp64.8x8 are in a, whose roots are new, and in b, whose roots are kept",
        ),
    ],
)
def test_what_is_wrong_is_said_all(partitions, slots, why):
    """Lost: an evening with slurmctld's own messages, or a job in a root that another one has used."""
    with pytest.raises(AnsibleFilterError) as caught:
        made(boards("p1"), partitions, slots)
    assert why in str(caught.value)


def test_an_owner_that_was_not_asked_takes_no_slots_away():
    """Lost: the running jobs of a proxy node that was down for a minute, when the playbook was run."""
    with pytest.raises(AnsibleFilterError, match="p2 cannot be asked, and their slots would be taken from Slurm"):
        made([*boards("p1"), dict(item="p2", unreachable=True, msg="no route")])
