# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU that a container has and the table, which is older (a copy was put back), gives to nobody: lxc_gpu_attach
refuses it to others in each of these cases, and so do libvirt_hostdev and pci_driver: also where the container has it
for this run alone (persistent: false), which only the kernel tells, and where the copy is older than the first GPU that
was ever given here, and so names no folder of containers. Lost otherwise: the GPU, which is taken off its driver under
the container, and goes to a guest.
"""

from __future__ import annotations

import json
import os
import shutil
from functools import partial

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.gpu_site import gpus_of_containers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.binding_change import change_driver
from ansible_collections.hetero.compute.tests.unit.devices.gpus.conftest import bare, four
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import OTHER
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc.conftest import boxes
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES, MINORS
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import Host as Containers

__all__ = ["bare", "boxes", "four"]
GPU = ADDRESSES[0]


@pytest.fixture
def kvm(virt, four, boxes, in_use):
    """The host with the GPU, of whose numbers its driver tells."""
    in_use.append(boxes.lxcpath)
    virt.add(GPU, "nvidia", group=9)
    proc = virt.root / "proc"
    proc.mkdir()
    for name in ("self", "swaps", "net", "sys"):
        (proc / name).symlink_to(f"/proc/{name}")
    for name in ("driver", "devices"):
        (proc / name).symlink_to(four.root / "proc" / name)
    virt.paths = virt.paths._replace(proc=str(proc))
    return virt


@pytest.fixture(params=["without the row", "older than all marks"])
def older(request, kvm, tmp_path, four, boxes):
    """A function that gives the GPU to a container that runs, and puts an older table back."""
    ours = Containers(tmp_path, four, boxes)
    ours.state_db = kvm.paths.state_db
    folder, copy = os.path.dirname(ours.state_db), str(tmp_path / "copy")

    def given(persistent):
        box, other = boxes.make(name="box"), boxes.make(name="other", start=False)
        if request.param == "without the row":
            ours.attach(box, gpus=[GPU], persistent=persistent)
            with Store(ours.state_db) as store, store.transaction():
                for row in store.allocations():
                    store.free(row)
        else:
            with Store(ours.state_db) as store:
                store.event(None, "host", "set up")
            shutil.copytree(folder, copy)
            ours.attach(box, gpus=[GPU], persistent=persistent)
            shutil.rmtree(folder)
            shutil.copytree(copy, folder)
        with pytest.raises(NoneFree, match="container box can open it"):
            ours.attach(other, gpus=[GPU])
        assert ours.can_open(box) == [GPU]

    return given


def bound(kvm, *addresses):
    """What module pci_driver would do."""
    asked = dict(devices=addresses or [GPU], driver="vfio-pci", persistent=True, force=False)
    with Store(kvm.paths.state_db, create=False) as store:
        of_containers = partial(gpus_of_containers, store, kvm.paths)
        return change_driver(asked, Change(True), Deadline(20), kvm.paths, of_containers)


@pytest.mark.parametrize("persistent", [True, False])
def test_no_domain_gets_it(kvm, older, persistent):
    older(persistent)
    with pytest.raises(Refused, match=f"{GPU} cannot go to it: container box"):
        kvm.attach(kvm.define("win"), GPU)
    assert kvm.table() == {}


@pytest.mark.parametrize("persistent", [True, False])
def test_it_stays_on_its_driver(kvm, older, persistent):
    older(persistent)
    with pytest.raises(Refused, match="container box"):
        bound(kvm)
    assert kvm.host.driver(GPU) == "nvidia"
    assert bound(kvm, OTHER)["devices"][0]["after"] == "vfio-pci"


def test_nor_is_one_taken_that_a_container_has_by_its_operators_own_rule(kvm, boxes):
    """The table is not older here, and never had that one."""
    rules = [f"lxc.{key}.devices.allow = c 195:{MINORS[GPU]} rw" for key in ("cgroup", "cgroup2")]
    boxes.make("\n".join(rules), name="box")
    with pytest.raises(Refused, match=f"{GPU} cannot go to it: container box can open it"):
        kvm.attach(kvm.define("win"), GPU)
    with pytest.raises(Refused, match=f"{GPU}: container box can open it"):
        bound(kvm)


def test_nor_is_that_of_one_that_is_down_in_the_hosts_own_folder(kvm, tmp_path, four, boxes):
    """The table names no folder at all; the host's configuration does."""
    ours = Containers(tmp_path, four, boxes)
    ours.attach(boxes.make(name="box", start=False), gpus=[GPU])
    config = tmp_path / "host.json"
    config.write_text(json.dumps({"lxcpath": str(boxes.lxcpath)}))
    with kvm.store() as store:
        said = gpus_of_containers(store, kvm.paths, [GPU], str(config))
    assert said[GPU].startswith("container box has it by its own file")


def test_one_that_may_open_all_devices_and_has_no_node_keeps_none(kvm, tmp_path, four, boxes):
    boxes.make(name="wild", rules=False)
    assert bound(kvm)["devices"][0]["after"] == "vfio-pci"
