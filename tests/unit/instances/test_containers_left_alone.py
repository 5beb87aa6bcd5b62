# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container whose root was copied as a whole, and whose former host is lost, or comes back, before it was started on
the new one. If these fail, the only root is removed, or an older one is taken for it.

Tests plugin_utils/move_steps.py, compute_host/departures.py, claims/host/store.py.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import arrivals
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop
from ansible_collections.hetero.compute.tests.unit.instances.conftest import Site
from ansible_collections.hetero.compute.tests.unit.instances.test_container_moves_cut_off import ml

__all__ = ["ml"]


@pytest.fixture
def spare(ml, tmp_path, image):
    """Another machine, which has nothing of any container, for the name of a host that is lost."""
    folder = tmp_path / "spare"
    folder.mkdir()
    made = Site(folder, ml.sites["gpu1"].machine, image)
    made.settings.update(name="spare", addresses=["10.0.81.10", "10.0.81.11"])
    made.config.write_text(json.dumps(made.settings))
    with made.host():
        pass
    yield made
    made.end()


def claim(ml):
    with ml.at(ml.sites["gpu1"]) as host:
        return vars(host.store.claim_of("ml-8"))


def copied(ml):
    whose = claim(ml)
    came = ml.step("gpu1", "described", whose)["came"]
    ml.copy(dict(leaves="gpu1", arrives="gpu2", left_by="", came_by=""), whose, came)


@pytest.mark.parametrize("older", [False, True])
def test_it_is_started_where_its_root_is_whole(ml, spare, older):
    """Lost: the only root; also where the new host was started anew since, or its database is of before that."""
    ml.provide()
    whose, before = claim(ml), sqlite3.connect(":memory:")
    came = ml.step("gpu1", "described", whose)["came"]
    ml.step("gpu2", "arriving", whose, came=came)
    with ml.at(ml.sites["gpu2"]) as host, closing(sqlite3.connect(host.store.path)) as db:
        db.backup(before)
        path = host.store.path
    ml.copy(dict(leaves="gpu1", arrives="gpu2", left_by="", came_by=ml.run), whose, came)
    if older:
        with closing(sqlite3.connect(path)) as db:
            before.backup(db)
    before.close()
    with ml.at(ml.sites["gpu2"]) as host:
        disks.unmount(ml.sites["gpu2"].container(), host.machine.disks)
    lost, ml.sites["gpu1"] = ml.sites["gpu1"], spare
    assert ml.states() == {"gpu2": "arriving"}
    ml.migrate()
    ml.must_run("its former host is lost")
    ml.sites["gpu1"] = lost
    assert ml.states() == {"gpu1": "leaving", "gpu2": "running"}
    ml.migrate()
    ml.must_run("its former host came back")


def test_an_older_copy_is_not_taken_for_the_root(ml, spare):
    """Lost: all that its tenant wrote since its new host was lost."""
    ml.provide()
    copied(ml)
    lost, ml.sites["gpu2"] = ml.sites["gpu2"], spare
    ml.migrate(back=True)
    ml.work("gpu1").with_name("since").write_text("more")
    ml.sites["gpu2"] = lost
    with pytest.raises(Stop, match="ml-8 has a root on gpu1, and a whole one on gpu2 that is no copy of it"):
        ml.migrate()
    assert ml.running() == ["gpu1"]
    ml.migrate(back=True)
    ml.migrate()
    ml.must_run("the copy was given up")
    assert ml.work("gpu2").with_name("since").read_text() == "more"


@pytest.mark.parametrize("started", [False, True])
def test_nor_where_it_leaves_for_that_host_anew(ml, spare, started):
    """Lost: the same: the older one was started there, and the one that has what was written since was removed."""
    ml.provide()
    copied(ml)
    whose = claim(ml)
    if started:
        ml.verb("gpu2", arrivals.migrated, whose)
        with ml.at(ml.sites["gpu2"]):
            ml.sites["gpu2"].container().stop()
    lost, ml.sites["gpu2"] = ml.sites["gpu2"], spare
    ml.migrate(back=True)
    ml.work("gpu1").with_name("since").write_text("more")
    with ml.at(ml.sites["gpu1"]) as host:
        mover = host.store.claim_of("ml-8").mover
    ml.run = "r7"
    ml.step("gpu2", "arriving", whose, came=ml.step("gpu1", "described", whose)["came"], seen="")
    ml.step("gpu1", "leaving", whose, seen=mover)
    ml.sites["gpu2"] = lost
    states = ml.states()
    assert states == {"gpu1": "leaving", "gpu2": "running" if started else "arriving"}
    with pytest.raises(Stop, match="ml-8 has a root on gpu1, and a whole one on gpu2 that is no copy of it"):
        ml.migrate()
    assert (ml.states(), ml.running()) == (states, [])
    ml.terminate(without=["gpu1"])
    ml.migrate()
    ml.must_run("the older one was ended")
    assert ml.work("gpu2").with_name("since").read_text() == "more"
