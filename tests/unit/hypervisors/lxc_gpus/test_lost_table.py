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

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import persistence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import restoration
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES, MINORS
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_attachment import BLUEPRINT
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_reconciling import repaired

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


@pytest.mark.parametrize("rules", [True, False], ids=["rule", "node"])
def test_what_a_container_of_another_folder_has_is_not_free(host, in_use, rules):
    """Lost: a GPU that somebody works on, to the next who asks, as he is in a folder that the table does not know."""
    theirs = host.boxes.lxcpath
    box = host.boxes.make(rules=rules)
    host.boxes.lxcpath = f"{host.boxes.top}/ours"
    other = host.boxes.make(start=False)
    in_use.append(theirs)
    assert host.attach(other, gpus=[SECOND])["changed"], "to run beside is no reason yet"
    if rules:
        box.allow(f"c 195:{MINORS[FIRST]} rw")
    else:
        os.mknod(f"/proc/{box.init_pid}/root/dev/nvidia{MINORS[FIRST]}", 0o20666, os.makedev(195, MINORS[FIRST]))
    with pytest.raises(NoneFree, match=f"container {box.name} can open it"):
        host.attach(other, gpus=[FIRST])
    assert host.reconcile(repair=True)["findings"] == [], "what is not ours is closed by nobody"
    assert host.attach(other, gpus=[ADDRESSES[2]])["changed"]


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
    with Store(host.state_db, "test") as store:
        assert FIRST not in restoration.begin_anew(host.site(store)).written
        assert not any(row.share for row in store.allocations())
    assert host.can_open(box) == [FIRST]
    assert persistence.read(box) == there


@pytest.mark.parametrize("persistent", [True, False])
def test_a_table_that_begins_anew_knows_what_is_open(host, persistent):
    """Lost: a GPU that was given until the next restart: only the kernel knows of it."""
    box, other = host.boxes.make(), host.boxes.make()
    host.attach(box, gpus=[FIRST], persistent=persistent)
    lose(host)
    with Store(host.state_db, "test") as store:
        assert restoration.begin_anew(host.site(store), dry=True) == ({FIRST: [box.name]}, [])
        assert restoration.begin_anew(host.site(store)) == ({FIRST: [box.name]}, [])
        assert restoration.begin_anew(host.site(store)) == ({}, [])
        (row,) = store.allocations()
    assert (row.persistent, row.share) == (persistent, False)
    assert host.found() == set()
    with pytest.raises(NoneFree, match=f"allocated to {box.name}"):
        host.attach(other, gpus=[FIRST], share=True)


@pytest.mark.parametrize("lasting", [(True, True), (True, False), (False, True), (False, False)])
def test_a_table_that_begins_anew_takes_no_shared_gpu_from_anybody(host, lasting):
    """Lost: a GPU under running programs of all who shared it but one: a repair found it not allocated to them."""
    boxes = [host.boxes.make(), host.boxes.make()]
    for box, persistent in zip(boxes, lasting):
        host.attach(box, gpus=[FIRST], share=True, persistent=persistent)
    lose(host)
    with Store(host.state_db, "test") as store:
        restoration.begin_anew(host.site(store))
        assert [(row.address, row.share) for row in store.allocations()] == [(FIRST, True)] * 2
    assert host.found() == set()
    assert not host.reconcile(repair=True)["changed"]
    assert [host.can_open(box) for box in boxes] == [[FIRST], [FIRST]]
    with pytest.raises(NoneFree, match="shared by"):
        host.attach(host.boxes.make(), gpus=[FIRST])


@pytest.mark.parametrize("persistent", [True, False])
def test_a_container_made_by_hand_that_may_open_all_takes_no_gpu_from_others(host, persistent):
    """Lost: a container's GPU, as another one's own configuration opens every GPU."""
    box = host.boxes.make()
    host.attach(box, gpus=[FIRST], persistent=persistent)
    host.boxes.make(BLUEPRINT)
    lose(host)
    with Store(host.state_db, "test") as store:
        assert restoration.begin_anew(host.site(store)).written == {FIRST: [box.name]}
    host.reconcile(repair=True)
    assert host.can_open(box) == [FIRST]
    assert host.table() == {FIRST: [box.name]}


def test_a_container_of_ours_that_may_open_all_keeps_what_it_has_a_node_of(host):
    """Lost: the GPU of a container that was given it, and opens all of them by its own configuration."""
    box = host.boxes.make()
    host.attach(box, gpus=[FIRST], persistent=False)
    box.allow("c 195:* rwm")
    lose(host)
    with Store(host.state_db, "test") as store:
        assert restoration.begin_anew(host.site(store)).written == {FIRST: [box.name]}
    host.reconcile(repair=True)
    assert host.can_open(box) == [FIRST]


def test_the_file_of_a_container_is_not_rewritten_without_gpus_that_the_table_does_not_know(host):
    """Lost: GPUs after the next restart, by a request for another one after the table was lost."""
    box = host.boxes.make(start=False)
    host.attach(box, gpus=[FIRST, SECOND])
    lose(host)
    before = persistence.read(box)
    for ask in (lambda: host.attach(box, 1), lambda: host.detach(box, FIRST)):
        with pytest.raises(Refused, match="by its own file, and not by the table") as refused:
            ask()
        assert "hetero.compute.reconcile" in str(refused.value)
    assert persistence.read(box) == before
    assert host.table() == {}
    host.reconcile(repair=True)
    host.detach(box, FIRST)
    assert [gpu["address"] for gpu in persistence.read(box).gpus] == [SECOND]
    lose(host)
    host.detach(box)
    assert persistence.read(box) is None


def test_what_was_not_written_down_is_said(host, monkeypatch):
    """Lost: a GPU whose row is not in the table, although nobody saw an error."""
    box = host.boxes.make(start=False)
    host.attach(box, gpus=[FIRST])
    lose(host)
    monkeypatch.setattr(restoration, "write_again", lambda *_given: True)
    with Store(host.state_db, "test") as store:
        (said,) = restoration.begin_anew(host.site(store)).left
    assert box.name in said
    assert FIRST in said
