# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container's GPU that was put into the slot of a guest's card, on a host of containers and guests."""

from __future__ import annotations

import re

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import (
    ATTACHED,
    Allocation,
    GpuRequest,
    allocate,
    follow_the_moved,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.tests.unit.devices.gpus.four import C1, FOUR, Seen

GUEST, SLOT, BEFORE = "domain:a", FOUR[0].address, "0000:41:00.0"
ONE = GpuRequest(count=1)


@pytest.fixture(params=["vfio-pci", "libvirt", "libvirt:pci-stub"])
def store(request, tmp_path):
    """A table in which C1 has FOUR[0] in another slot than it is in now, where a guest's card is to be."""
    with Store(str(tmp_path / "host.db"), "tests") as opened:
        wanted = GpuRequest(arch="10de:11bf", gpus=(SLOT,))
        opened.grant(Allocation(SLOT, GUEST, None, False, ATTACHED, 1.0, wanted, method=request.param))
        opened.grant(Allocation(BEFORE, C1, FOUR[0].uuid, False, ATTACHED, 1.0, ONE))
        yield opened


def rows(store):
    return {row.address: row.holder for row in store.allocations()}


def test_the_card_stays_the_guests_in_its_slot_and_the_gpu_the_containers(store):
    """Lost: the guest, whose card would have no slot any more, so that it neither starts nor ends."""
    before = rows(store)
    with store.transaction():
        assert follow_the_moved(store, FOUR) == []
    assert rows(store) == before == {SLOT: GUEST, BEFORE: C1}


def test_the_container_gets_no_other_in_its_place_and_is_told_who_has_the_slot(store):
    """Lost: a second GPU, to a container that has the first one again once the guest is gone."""
    said = re.escape(f"has GPU {SLOT}: allocated to a since")
    with pytest.raises(Refused, match=f"{said}.*: end what else has it, then run this again"), store.transaction():
        allocate(store, C1, ONE, FOUR, lambda: Seen(there=(C1, GUEST)))
    assert rows(store) == {SLOT: GUEST, BEFORE: C1}


def test_it_follows_its_gpu_once_the_guest_is_gone(store):
    """Lost: the GPU, although the way that was told was gone."""
    [guests] = store.allocations(GUEST)
    store.free(guests)
    with store.transaction():
        [given] = allocate(store, C1, ONE, FOUR, lambda: Seen(there=(C1,)))
    assert (given.address, rows(store)) == (SLOT, {SLOT: C1})
