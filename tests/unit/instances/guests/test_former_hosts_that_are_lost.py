# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest whose root was copied as a whole, and whose former host is lost with its disk before it was started on the
new one. If these fail, the only word that anybody gives its tenant is the one that removes the only root.

Tests plugin_utils/move_steps.py, compute_host/departures.py.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.plugin_utils import move_steps, request_steps
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests_that_move import another, two
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moves_of_restored_hosts import guests

__all__ = ["guests", "two"]


@pytest.fixture
def anew(tmp_path, image):
    """Another machine that is set up under the name of the former host, and has nothing of any guest."""
    return another(tmp_path / "anew", image, "kvm1", 40)


def test_the_copy_is_started_once_the_former_host_has_nothing_of_it(guests, anew):
    guests.copied()
    guests.sites["kvm1"] = anew
    assert guests.states() == {"kvm2": "arriving"}
    guests.migrate()
    assert guests.states() == {"kvm2": "running"}
    guests.must_run("its former host is lost")
    guests.migrate(back=False)  # and moves on from there, as any other
    assert guests.states() == {"kvm1": "running"}
    guests.must_run("its former host was set up anew")


def test_it_is_started_beside_nothing(guests):
    """Lost: one life: the former root runs again once its host is asked, beside the one that was started meanwhile."""
    guests.copied()
    with pytest.raises(Stop, match="goes on where kvm1 is asked too: have that in the inventory"):
        guests.migrate(without=["kvm1"])
    assert guests.states() == {"kvm1": "leaving", "kvm2": "arriving"}


def test_what_lies_on_the_former_host_without_a_claim_is_named(guests):
    """Lost: the same, where the former host has forgotten all of its database."""
    guests.copied()
    with closing(sqlite3.connect(guests.path("kvm1"))) as db:
        db.execute("DELETE FROM instances")
        db.commit()
    assert guests.states() == {"kvm2": "arriving"}
    with pytest.raises(Stop, match="its copy is not started beside that: no claim of it is in the database of node"):
        guests.migrate()
    assert guests.running() == []


def test_nothing_is_taken_back_and_nowhere_else_it_goes(guests, anew):
    claim = guests.copied()
    guests.sites["kvm1"] = anew
    with pytest.raises(Stop, match=r"win has nothing on kvm1 any more: nothing is taken back; .*migrate_instance"):
        guests.migrate(back=True)
    came, answers = guests.step("kvm2", "described", claim)["came"], guests.answers()
    plan = request_steps.find(guests.asked, answers, [], to="migrate")
    with pytest.raises(Stop, match="win moves to kvm2 already, not to kvm1: leave out node="):
        move_steps.target(guests.asked, answers, plan, came, "kvm1")
    assert guests.states() == {"kvm2": "arriving"}


def test_half_of_a_copy_is_no_root(guests, anew):
    """Lost: a tenant's time, with a disk of which half is missing."""
    claim = guests.claim()
    came = guests.step("kvm1", "described", claim)["came"]
    guests.step("kvm2", "arriving", claim, came=came)
    guests.sites["kvm1"] = anew
    with pytest.raises(HeteroError, match="was never started here: it goes on where both hosts are asked"):
        guests.migrate()
