# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A table that was lost, or put back from before its containers had their GPUs. If these fail, a repair takes them away
from who runs on them, or gives them to the next one.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.accelerator_host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils.errors import NoneFree
from ansible_collections.hetero.compute.plugins.module_utils.gpus import restoring
from ansible_collections.hetero.compute.plugins.module_utils.lxc import persistence
from ansible_collections.hetero.compute.tests.unit.attaching.conftest import ADDRESSES
from ansible_collections.hetero.compute.tests.unit.attaching.test_reconciling import repaired

FIRST, SECOND = ADDRESSES[:2]


def lose(host):
    for tail in ("", "-wal", "-shm"):
        if os.path.exists(host.state_db + tail):
            os.unlink(host.state_db + tail)


@pytest.mark.parametrize("runs", [True, False])
def test_a_repair_writes_down_what_a_container_has_by_its_own_file(host, runs):
    """Lost: a running container's GPU to a repair; a stopped one's to the next who asks."""
    box, other = host.boxes.make(start=runs), host.boxes.make()
    host.attach(box, gpus=[FIRST])
    before = persistence.read(box)
    lose(host)
    assert host.found() == {("not written down", box.name, FIRST)}
    assert repaired(host) == {"not written down": "written down"}
    assert host.table() == {FIRST: [box.name]}
    assert persistence.read(box) == before
    if runs:
        assert host.can_open(box) == [FIRST]
    with pytest.raises(NoneFree, match=f"allocated to {box.name}"):
        host.attach(other, gpus=[FIRST])


def test_what_the_table_gives_to_another_since_is_said_and_left(host):
    """Lost: who has it in truth, by a guess: both the table and the container's own file name it."""
    box, other = host.boxes.make(), host.boxes.make(start=False)
    host.attach(box, gpus=[FIRST])
    lose(host)
    host.attach(other, gpus=[SECOND])
    with Store(host.state_db) as store:
        (row,) = store.allocations()
        store.free(row)
        store.grant(replace(row, address=FIRST, uuid=None))
    there = persistence.read(box)
    done = host.reconcile(repair=True)
    (said,) = [one for one in done["findings"] if one["container"] == box.name]
    assert (said["kind"], said["address"], said["done"]) == ("not written down", FIRST, None)
    assert f"allocated to {other.name}" in said["found"]
    assert host.can_open(box) == [FIRST]
    assert persistence.read(box) == there


@pytest.mark.parametrize("persistent", [True, False])
def test_a_table_that_begins_anew_knows_what_is_open(host, persistent):
    """Lost: a GPU that was given until the next restart: only the kernel knows of it."""
    box, other = host.boxes.make(), host.boxes.make()
    host.attach(box, gpus=[FIRST], persistent=persistent)
    lose(host)
    with Store(host.state_db, "test") as store:
        assert restoring.begin_anew(host.site(store)) == {FIRST: box.name}
        assert restoring.begin_anew(host.site(store)) == {}
        (row,) = store.allocations()
    assert (row.persistent, row.share) == (persistent, False)
    assert host.found() == set()
    with pytest.raises(NoneFree, match=f"allocated to {box.name}"):
        host.attach(other, gpus=[FIRST], share=True)
