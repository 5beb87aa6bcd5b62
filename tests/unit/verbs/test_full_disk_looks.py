# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks and dry runs on a proxy whose disk is full: many, at one moment, long ones. If these fail, they use up what is
kept for ending instances, or tell what was long over.
"""

from __future__ import annotations

import multiprocessing
import os
import stat
import time
from contextlib import suppress

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.proxy import Proxy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import reserve
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.images import Node
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import reap as reaper
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR
from ansible_collections.hetero.compute.tests.unit.verbs.test_disk_full import full

__all__ = ["full"]

BOB = dict(instance="bob", owner="bob", flavor=FLAVOR, ssh_public_key=KEY)
#: Seconds within which no look waits for another.
SOON = 5.0
ROUNDS = 12


def test_looks_take_nothing_that_is_kept(full):
    """Lost: each verb that would free the disk, by as many looks at it as a timer makes in half an hour."""
    kept = full.site.state / "state.reserve"
    full.fill("state")
    for _look in range(40):
        shown = full.verb("info")
        assert [board["instance"] for board in shown["boards"]] == ["jackie", None]
        assert kept.stat().st_size == reserve.SIZE
        full.fill("state", "ab")
    assert not full.verb("terminate").get("failed")
    assert full.there() == full.site.clean()


def test_it_is_read_while_somebody_has_the_database(full):
    """Lost: what a full proxy has, to everybody who asks while one verb runs on it."""
    full.fill("state")
    with Store(full.site.params["state_db"]) as store:
        full.fill("state", "ab")
        assert [board["instance"] for board in full.verb("info")["boards"]] == ["jackie", None]
        with store._db.transaction():
            assert [board["instance"] for board in full.verb("info")["boards"]] == ["jackie", None]


def test_an_image_of_a_claim_is_not_removed_by_an_old_look(full):
    """Lost: the image of an instance that was asked for while its removal waited for an import on a full disk."""
    site = full.site
    assert not full.verb("terminate").get("failed")
    full.fill("state")
    node = Node("proxy", site.params["config"], [])  # as the module begins; then it waits, for minutes, for imports
    full.free("state")
    assert not site.module("board_claim", image="debian-13", **BOB).get("failed")
    with pytest.raises(Refused, match="is used by bob"):
        node.remove("debian-13", Change(False), Deadline(20))
    made = site.module("board_image", boards=[0], image="debian-13", ssh_public_key=KEY, instance="bob")
    assert not made.get("failed"), made["msg"]


@pytest.mark.parametrize(
    ("module", "given"),
    [
        ("board_reconcile", dict(timeout=5)),
        ("board_rebuild", dict(instance="jackie", image="debian-13", ssh_public_key=KEY)),
        ("board_claim", dict(BOB, image="debian")),
        ("board_lease", dict(instance="jackie", hours=3)),
    ],
)
def test_dry_runs_take_nothing_that_is_kept(full, module, given):
    """Lost: terminate and the reaper, to 32 dry runs beside who goes on filling the disk."""
    kept = full.site.state / "state.reserve"
    full.fill("state")
    sizes = []
    for _look in range(3):
        full.site.module(module, check=True, **given)  # board_claim says that the disk is full
        sizes.append(kept.stat().st_size)
        full.fill("state", "ab")
    assert sizes == [reserve.SIZE] * 3


def looks(params, barrier, longest):
    for _round in range(ROUNDS):
        barrier.wait(60)
        began = time.monotonic()
        with Proxy(params, create=False) as proxy:
            assert [claim.instance for claim in proxy.store.claims()] == ["jackie"]
        with longest.get_lock():
            longest.value = max(longest.value, time.monotonic() - began)
        barrier.wait(60)


def test_looks_at_one_moment_do_not_wait_for_each_other(full):
    """Lost: 10 s of each pair of looks, and a part of what is kept with each of them."""
    kept = full.site.state / "state.reserve"
    full.fill("state")
    barrier, longest = multiprocessing.Barrier(3), multiprocessing.Value("d", 0.0)
    given = (full.site.params, barrier, longest)
    processes = [multiprocessing.Process(target=looks, args=given) for _look in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(200)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert kept.stat().st_size == reserve.SIZE
    assert longest.value < SOON


def test_the_reaper_of_a_new_node_leaves_no_database_that_others_may_read(full):
    """Lost: who has what, and whose keys, to all accounts of a proxy whose timer ran before its first verb."""
    site, path = full.site, full.site.params["state_db"]
    assert not full.verb("terminate").get("failed")
    for end in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(path + end)
    before = os.umask(0o022)
    try:
        assert reaper.turn(site.params)
        assert not any(result.get("failed") for result in site.provision())
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
