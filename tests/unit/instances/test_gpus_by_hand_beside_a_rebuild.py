# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module lxc_gpu_attach works on an instance's container while its tenant has it rebuilt, or ended.

Lost: the host's whole database, which its operator was told to move aside (who owned which instance must be claimed
again), although nothing is wrong with it; and a GPU that the module says to have taken back, and that stays allocated.

Tests core/database_errors.py.
"""

from __future__ import annotations

import sqlite3

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import GpuRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import locks
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.database_errors import Explained
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus import gpu_users
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import (
    attachment,
    gpu_reconciliation,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import site as place
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import lock_of
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.instances.conftest import ADDRESSES
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL


@pytest.fixture
def one(site):
    site.claim("a", flavor=SMALL, owner="jo", key=KEY)
    site.up("a")
    return site


def meanwhile(monkeypatch, module, name, work):
    """Have `work` done, once, just before a function is called; a list of what it returned."""
    real, done = getattr(module, name), []

    def late(*args, **more):
        if not done:
            done.append(work())
        return real(*args, **more)

    monkeypatch.setattr(module, name, late)
    return done


def attach(site, seconds=60):
    with site.host() as host:
        asked = GpuRequest(gpus=(ADDRESSES[0],))
        return attachment.attach(host.site, site.container("a"), asked, Change(False), Deadline(seconds))


def detach(site, seconds=60, how=gpu_users.WAIT):
    with site.host() as host:
        container = site.container("a")
        return attachment.detach(host.site, container, ADDRESSES[:1], Change(False), Deadline(seconds), how)


def table(site):
    with site.host() as host:
        return {row.address: row.state for row in host.store.allocations()}


@pytest.mark.parametrize("verb", [lifecycle.rebuilt, lifecycle.absent], ids=["rebuilt", "ended"])
def test_a_verb_waits_until_it_has_its_gpu(one, monkeypatch, verb):
    said = meanwhile(monkeypatch, attachment, "bring_up", lambda: one.do(verb, "a", fresh=True, timeout=0.5))
    assert [gpu["address"] for gpu in attach(one)["gpus"]] == ADDRESSES[:1]
    assert "still held by attach" in said[0]["msg"]
    assert table(one) == {ADDRESSES[0]: "attached"}
    done = one.do(verb, "a", fresh=True)
    assert done.get("msg") is None
    assert table(one) == ({ADDRESSES[0]: "attached"} if verb == lifecycle.rebuilt else {})


def test_what_it_says_to_have_taken_back_is_free(one, monkeypatch):
    """It waits for a process that has the GPU open (on_holders: wait), and its tenant has the instance rebuilt."""
    attach(one)
    said = meanwhile(monkeypatch, gpu_users, "let_go", lambda: one.do(lifecycle.rebuilt, "a", fresh=True, timeout=0.5))
    assert detach(one)["gpus"] == []
    assert "still held by detach" in said[0]["msg"]
    assert table(one) == {}


@pytest.mark.parametrize("work", [attach, detach])
def test_it_waits_for_a_verb(one, work):
    run_folder = one.settings["run_folder"]
    with locks.lock(run_folder, lock_of("a"), "rebuild", "jo", Deadline(5)):
        locks.OURS.clear()  # as if another process had it
        with pytest.raises(TimedOut, match="still held by rebuild"):
            work(one, seconds=0.5)
    work(one)


def test_of_one_that_was_ended_while_it_waited_it_says_so(one, monkeypatch):
    real = locks.lock

    def late(run_folder, name, *args, **more):
        if name == lock_of("a") and one.container("a").defined and args[0] == "attach":
            one.do(lifecycle.absent, "a")
        return real(run_folder, name, *args, **more)

    monkeypatch.setattr(place, "lock", late)
    with pytest.raises(BadInput, match="there is no such container"):
        attach(one)
    assert table(one) == {}


def test_a_reconciliation_says_that_it_did_not_look(one):
    attach(one)
    with locks.lock(one.settings["run_folder"], lock_of("a"), "rebuild", "jo", Deadline(5)), one.host() as host:
        locks.OURS.clear()
        done = gpu_reconciliation.reconcile(host.site, True, Change(False), Deadline(0.5))
    assert [(one["kind"], one["container"]) for one in done["findings"]] == [("not looked at", "a")]


def test_a_constraint_is_no_damage():
    """Whatever else is written beside another's row: the database is whole, and nobody is told to move it away."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE gpus (address UNIQUE)")
    database.execute("INSERT INTO gpus VALUES (1)")
    with pytest.raises(HeteroError, match="UNIQUE") as refused, Explained("host.db", 1.0, lambda path: f"mv {path}*"):
        database.execute("INSERT INTO gpus VALUES (1)")
    assert "mv" not in str(refused.value)
    assert "reconcile" in str(refused.value)
