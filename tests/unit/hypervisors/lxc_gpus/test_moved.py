# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs that were put into other slots. Choosing among those that stay is in test_allocation.py."""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import (
    ATTACHED,
    Allocation,
    GpuRequest,
    follow_the_moved,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus.restoration import restore

HOLDER = "/nowhere/lxc/c1#id1"
OLD, NEW = ("0000:05:00.0", "0000:06:00.0"), ("0000:06:00.0", "0000:41:00.0")


def gpu(number, address):
    node = SimpleNamespace(path=f"/dev/nvidia{number}", number=("c", 195, number))
    return SimpleNamespace(uuid=f"GPU-{number}", address=address, nodes=[node])


def give(store):
    for number, address in enumerate(OLD):
        store.grant(Allocation(address, HOLDER, f"GPU-{number}", False, ATTACHED, 1.0, GpuRequest(2)))


def test_two_that_moved_up_stay_their_holders_and_each_slot_says_whence(tmp_path):
    """Lost: the GPUs of a container whose machine was opened, or the way to tell which is which in its history."""
    with Store(str(tmp_path / "host.db"), "test") as store:
        give(store)
        moved = follow_the_moved(store, [gpu(number, address) for number, address in enumerate(NEW)])
        assert [(row.address, now.address) for row, now in moved] == list(zip(OLD, NEW))
        rows = [(row.uuid, row.address, row.holder, row.nodes) for row in store.allocations()]
        assert rows == [
            (f"GPU-{number}", NEW[number], HOLDER, ((f"/dev/nvidia{number}", "c", 195, number),)) for number in (0, 1)
        ]
        texts = [(event.phase, event.address, event.text) for event in store.events()]
        assert sorted(texts) == [("gpu", now, f"moved here from {old}") for old, now in zip(OLD, NEW)]
        assert follow_the_moved(store, [gpu(number, address) for number, address in enumerate(NEW)]) == []


def test_at_the_hosts_start_those_that_no_file_names_are_followed_too(tmp_path):
    """Lost: a GPU that a container has for one run only, in the slot where it was: the table would give another's."""
    found = SimpleNamespace(gpus=[gpu(number, address) for number, address in enumerate(NEW)])
    with Store(str(tmp_path / "host.db"), "test") as store:
        give(store)
        assert restore(SimpleNamespace(store=store, found=found, lxcpaths=[])) == {}
        assert [row.address for row in store.allocations()] == list(NEW)
