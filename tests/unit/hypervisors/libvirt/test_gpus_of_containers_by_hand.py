# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU that a container has by its own file, and can open while it runs, and that an older table does not know (a copy
was put back). A request of another container leaves it alone, and so is a guest's card of which only its folder tells;
module libvirt_hostdev gives the GPU of a container to a domain. Lost: the GPU, which libvirt takes off its driver under
the container at the domain's start; both have it.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree, Refused
from ansible_collections.hetero.compute.tests.unit.devices.gpus.conftest import bare, four
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc.conftest import boxes
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import Host as Containers

__all__ = ["bare", "boxes", "four"]


@pytest.mark.parametrize("runs", [True, False])
def test_it_is_given_to_no_domain(virt, tmp_path, four, boxes, runs):
    gpu = ADDRESSES[0]
    virt.add(gpu, "nvidia", group=9)
    ours = Containers(tmp_path, four, boxes)
    ours.state_db = virt.paths.state_db
    box, other = boxes.make(name="box", start=runs), boxes.make(name="other", start=False)
    ours.attach(box, gpus=[gpu])
    with Store(ours.state_db) as store, store.transaction():
        for row in store.allocations():
            store.free(row)
    with pytest.raises(NoneFree, match="container box can open it"):
        ours.attach(other, gpus=[gpu])
    assert not runs or ours.can_open(box) == [gpu]
    with pytest.raises(Refused, match=f"{gpu} cannot go to it: container box has it by its own file"):
        virt.attach(virt.define("win"), gpu)
    assert virt.table() == {}
    assert virt.attach(virt.domain("win"), CARD)["changed"]


def test_what_a_container_has_no_more_is_given(virt, tmp_path, four, boxes):
    gpu = ADDRESSES[0]
    virt.add(gpu, "nvidia", group=9)
    ours = Containers(tmp_path, four, boxes)
    ours.state_db = virt.paths.state_db
    box = boxes.make(name="box", start=False)
    ours.attach(box, gpus=ADDRESSES[:2])
    ours.detach(box, gpu)
    assert virt.attach(virt.define("win"), gpu)["changed"]
