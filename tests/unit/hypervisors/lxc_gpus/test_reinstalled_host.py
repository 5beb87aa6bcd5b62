# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host is installed anew: its database is lost and its machine-id is another; the folder of containers and the GPUs
are those of before. Lost: the GPUs of containers that are off, to the next one that asks.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import persistence
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES, MINORS
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_lost_table import lose
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_reconciling import repaired
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_uuid_in_own_file import begin_anew, restore


@pytest.fixture
def box(host):
    """A container that is off, which had a GPU before."""
    box = host.boxes.make(name="a", start=False)
    host.attach(box, gpus=ADDRESSES[2:3])
    lose(host)
    (host.folder / "machine-id").write_text("f" * 32 + "\n")
    host.here = replace(host.here, machine=str(host.folder / "machine-id"))
    return box


@pytest.mark.parametrize("by", [begin_anew, restore, repaired, lambda host: None], ids=["begun", "boot", "repair", "-"])
def test_its_gpu_is_given_to_nobody_else(host, box, by):
    by(host)
    with pytest.raises(NoneFree, match=rf"3 free: {ADDRESSES[2]} (allocated to|container) a"):
        host.attach(host.boxes.make(name="b", start=False), count=4)
    assert restore(host) == {"a": None}
    assert host.table() == {ADDRESSES[2]: ["a"]}
    assert persistence.read(box, host.here).gpus[0]["address"] == ADDRESSES[2]


def test_the_gpus_of_another_machine_are_not_meant(host, box):
    """Lost: a start of a container that was moved to another host with its disk, by addresses of GPUs."""
    for number, address in enumerate(ADDRESSES):
        host.machine.serve(address, MINORS[address], f"GPU-f000000{number}-1111-2222-3333-444444444444")
    assert begin_anew(host).written == {}
    other = host.boxes.make(name="b", start=False)
    host.attach(other, gpus=ADDRESSES[2:3])
    assert restore(host) == {"a": None, "b": None}
    assert persistence.read(box, host.here).gpus[0]["address"] != ADDRESSES[2]
