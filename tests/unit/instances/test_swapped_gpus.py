# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU that was put into the slot of a broken one: each stays its holder's, and nobody is told to put a copy of the
database in place, in which nothing is wrong.
"""

from __future__ import annotations

import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host import allocation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import (
    gpu_reconciliation,
    restoration,
)
from ansible_collections.hetero.compute.tests.unit.devices.gpus.conftest import FOUR
from ansible_collections.hetero.compute.tests.unit.instances.conftest import ADDRESSES
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL

ONE = dict(SMALL, extra_specs={"hypervisor": "s== LXC", "gpus": "= 1"})


def take_out(site, address):
    shutil.rmtree(site.machine.root / "sys/bus/pci/devices" / address)
    shutil.rmtree(site.machine.nvidia / "gpus" / address)


def put_into(site, old, new):
    _address, device, minor, numa = next(one for one in FOUR if one[0] == old)
    take_out(site, old)
    site.machine.pci(new, 0x10DE, device, driver="nvidia", numa_node=numa)
    site.machine.serve(new, minor)


def claim(site):
    with pytest.raises(HeteroError, match=r"0000:05:00.0 allocated to ml-7 .*06:00.0, \S+ allocated to ml-8"):
        site.claim("ml-9", flavor=ONE)


def restore(site):
    with site.host() as host:
        assert restoration.restore(host.site) == {}


def gpu_reconcile(site):
    with site.host() as host:
        found = gpu_reconciliation.reconcile(host.site, True, Change(False), Deadline(60.0))["findings"]
    assert {one["kind"] for one in found} == {"moved", "lost GPU"}


@pytest.mark.parametrize("verb", [claim, restore, gpu_reconcile])
@pytest.mark.parametrize("owner", ["ml-8", "ml-7"])
def test_the_gpu_in_a_broken_ones_slot_and_the_broken_one_stay_their_holders(claims, verb, owner):
    """Lost: each verb that needs GPUs; or, where both are of one instance, the word that one of them is gone."""
    claims.claim("ml-7")
    claims.claim("ml-8", owner="eve")
    broken, moved = (ADDRESSES[1], ADDRESSES[2]) if owner == "ml-8" else (ADDRESSES[0], ADDRESSES[1])
    with claims.host() as host:
        uuids = {gpu.address: gpu.uuid for gpu in host.gpus}
        before = {row.uuid: row.holder for row in host.store.allocations()}
    take_out(claims, broken)
    put_into(claims, moved, broken)
    if verb is claim and owner == "ml-7":
        with pytest.raises(HeteroError, match="wants small"):
            claims.claim("ml-9", flavor=ONE)
    else:
        verb(claims)
    with claims.host() as host, host.store.transaction():
        allocation.follow_the_moved(host.store, host.gpus)
        rows = {row.uuid: row for row in host.store.allocations()}
        assert {uuid: row.holder for uuid, row in rows.items()} == before
        assert rows[uuids[moved]].address == broken
        assert rows[uuids[broken]].address == uuids[broken]
        holder = rows[uuids[broken]].holder
        with pytest.raises(Refused, match=rf"has GPU {uuids[broken]} .*no more on this host: put it back, or detach"):
            allocation.allocate(host.store, holder, rows[uuids[broken]].wanted, host.gpus, host.site.look)


def test_one_that_comes_back_into_another_slot_is_its_holders_again(claims):
    """Lost: the repaired GPU, to the instance that had it."""
    claims.claim("ml-7")
    claims.claim("ml-8", owner="eve")
    with claims.host() as host:
        one, two, three = host.gpus[1:]
        store = host.store
        swapped = [allocation.replace(two, address=one.address), three]
        allocation.follow_the_moved(store, swapped)
        back = allocation.replace(one, address=two.address)
        allocation.follow_the_moved(store, [back, *swapped])
        rows = {row.uuid: (row.address, row.holder) for row in store.allocations()}
    assert rows[one.uuid] == (two.address, "instance:ml-7")
    assert rows[two.uuid] == (one.address, "instance:ml-8")
