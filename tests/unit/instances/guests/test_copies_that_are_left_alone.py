# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest of whose move one half is left, as the other host was lost, and set up anew; and what is printed then. If
these fail, the printed word removes the only root, or none that is printed leads on.

Tests plugin_utils/move_steps.py, compute_host/departures.py, claims/host/store.py, site/moves.py.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import arrivals, lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.verb_options import Options
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import without_claims
from ansible_collections.hetero.compute.plugins.plugin_utils import request_steps
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests_that_move import another, two
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_halves_that_are_not_mounted import unmounted
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moves_of_restored_hosts import guests

__all__ = ["guests", "two"]


@pytest.fixture
def new_machine(tmp_path, image):
    """A function that makes another machine, which is set up under the name of a host, and has nothing of any guest."""
    made = []

    def make(name):
        made.append(name)
        return another(tmp_path / f"anew{len(made)}", image, name, 30 + 10 * len(made))

    return make


def record(guests, name):
    with guests.at(guests.sites[name]) as host:
        return host.store.records.path("win")


def taken_but_forgotten(guests):
    """Its root is whole on kvm2, whose database is put back from before that."""
    claim = guests.claim()
    came = guests.step("kvm1", "described", claim)["came"]
    guests.step("kvm2", "arriving", claim, came=came)
    before = guests.copy_of("kvm2")
    guests.copy(dict(leaves="kvm1", arrives="kvm2", left_by="", came_by=guests.run), claim, came)
    guests.put_back("kvm2", before)


def test_a_copy_that_only_its_record_knows_to_be_whole_is_started(guests, new_machine):
    """Lost: the only root, to who is told that it was never started here, and how what is here ends."""
    taken_but_forgotten(guests)
    guests.sites["kvm1"] = new_machine("kvm1")
    assert guests.states() == {"kvm2": "arriving"}
    guests.migrate()
    guests.must_run("its database was put back to before it was whole")


@pytest.mark.parametrize("text", [None, "{"])
def test_a_copy_that_nothing_knows_to_be_whole_may_be_all_of_it(guests, new_machine, text):
    """Lost: the same, where the record is gone or damaged, too."""
    taken_but_forgotten(guests)
    path = record(guests, "kvm2")
    os.unlink(path)
    if text:
        with open(path, "w") as file:
            file.write(text)
    guests.sites["kvm1"] = new_machine("kvm1")
    with pytest.raises(HeteroError, match=r"put a newer copy of node .*'s database back, for what is here may be all"):
        guests.migrate()
    assert os.path.exists(guests.disk("kvm2"))


def test_a_copy_that_is_not_mounted_is_not_said_to_be_none(guests, new_machine):
    """Lost: the same, to who removes the record of what is said to be no root."""
    guests.copied()
    guests.sites["kvm1"] = new_machine("kvm1")
    with unmounted(guests, "kvm2"), pytest.raises(HeteroError, match=r"put it back \(is its file system mounted\?\)"):
        guests.migrate()
    guests.migrate()
    guests.must_run("it is mounted again")


@pytest.fixture
def third(guests, new_machine):
    """The root is whole on kvm3; a run to kvm2 was killed as it had claimed there what it needs; kvm1 is lost."""
    guests.sites["kvm3"] = new_machine("kvm3")
    claim = guests.claim()
    came = guests.step("kvm1", "described", claim)["came"]
    guests.step("kvm2", "arriving", claim, came=came, other="kvm1", run="r2")
    guests.run = "r1"
    guests.copy(dict(leaves="kvm1", arrives="kvm3", left_by="", came_by=""), claim, came)
    guests.sites["kvm1"] = new_machine("kvm1")
    assert guests.states() == {"kvm2": "arriving", "kvm3": "arriving"}
    return guests


def test_of_two_hosts_to_which_it_came_that_starts_it_which_has_its_root(third):
    """Lost: the only root, by the word that is printed of the one that has nothing: it ends both."""
    third.migrate()
    assert third.running() == ["kvm3"]
    assert third.states() == {"kvm2": "arriving", "kvm3": "running"}


def test_of_two_whole_copies_none_is_chosen(guests, new_machine):
    """Lost: what its tenant wrote last, to the older of two."""
    claim = guests.copied()
    lost, guests.sites["kvm2"] = guests.sites["kvm2"], new_machine("kvm2")
    guests.migrate(back=True)
    guests.sites["kvm3"] = guests.sites.pop("kvm2")
    came = guests.step("kvm1", "described", claim)["came"]
    guests.copy(dict(leaves="kvm1", arrives="kvm3", left_by=guests.claim()["mover"], came_by=""), claim, came)
    guests.sites.update(kvm1=new_machine("kvm1"), kvm2=lost)
    assert guests.states() == {"kvm2": "arriving", "kvm3": "arriving"}
    with pytest.raises(Stop, match=r"win comes from kvm1, and its root is whole on kvm2 and on kvm3: .*=NODE"):
        guests.migrate()
    with pytest.raises(Stop, match=r"win came to kvm2 and to kvm3 from a host .*: nothing is taken back"):
        guests.migrate(back=True)
    assert os.path.exists(guests.disk("kvm2"))
    assert os.path.exists(guests.disk("kvm3"))
    guests.migrate(without=["kvm2"])
    assert guests.running() == ["kvm3"]
    with pytest.raises(Stop, match="win has a root on kvm3, and a whole one on kvm2 that is no copy of it"):
        guests.migrate()


def test_a_dry_run_starts_none(guests, new_machine):
    claim = guests.copied()
    guests.sites["kvm1"] = new_machine("kvm1")
    with guests.at(guests.sites["kvm2"]) as host:
        options = Options(timeout=60, created=(claim["created"],), owner="alice")
        done = arrivals.migrated(host, "win", options, Change(check=True))
    assert not done.get("failed"), done
    assert (guests.states(), guests.running()) == ({"kvm2": "arriving"}, [])


def removed_by_hand(guests, name):
    """As is printed: it is ended by the commands of libvirt; then its folder is removed, and the record."""
    with guests.here(guests.sites[name]) as site:
        domain = site.virt.domain("win")
        if domain.defined:
            domain.undefine()
    shutil.rmtree(os.path.dirname(guests.disk(name)))
    os.unlink(record(guests, name))


def test_the_printed_way_beside_what_lies_on_the_former_host(guests):
    guests.copied()
    with closing(sqlite3.connect(guests.path("kvm1"))) as db:
        db.execute("DELETE FROM instances")
        db.commit()
    with pytest.raises(Stop, match="and remove its folder, then the record"):
        guests.migrate()
    removed_by_hand(guests, "kvm1")
    guests.migrate()
    assert guests.states() == {"kvm2": "running"}


@pytest.fixture
def leaves_alone(guests, new_machine):
    guests.copied()
    guests.sites["kvm2"] = new_machine("kvm2")
    assert guests.states() == {"kvm1": "leaving"}
    return guests


def comes_back_by_what_is_printed(guests, words):
    """It does not move on, and runs where it was once the way back is taken and its lease said anew."""
    claim = guests.claim()
    with pytest.raises(HeteroError, match=words):
        guests.migrate()
    guests.migrate(back=True)
    guests.verb("kvm1", lifecycle.extended, claim, lease_hours=9)
    guests.must_run("its lease was said anew")


def test_one_that_leaves_for_a_lost_host_and_whose_lease_nobody_knows(leaves_alone):
    """Lost: every verb, to a way back that is printed, and refused for the same reason."""
    with open(record(leaves_alone, "kvm1"), "w") as file:
        file.write("{")
    way = r"back=true has it where it was; then .*extend_instance .*; then .*migrate_"
    comes_back_by_what_is_printed(leaves_alone, way)


def test_one_that_leaves_for_a_lost_host_and_whose_lease_is_over(leaves_alone):
    """Lost: the same, to who is a minute late."""
    with leaves_alone.at(leaves_alone.sites["kvm1"]) as host:
        host.store.put("win", expires=host.store.claim_of("win").created)
    way = r"its lease ended .*back=true has it where it was; then .*extend_instance "
    comes_back_by_what_is_printed(leaves_alone, way)


def test_what_is_left_of_another_of_that_name_stops_no_verb_for_good(guests, new_machine):
    """Lost: every verb of a tenant, to a root on another host that nobody can tell from a moved one."""
    guests.sites["kvm3"] = new_machine("kvm3")
    with guests.here(guests.sites["kvm3"]) as site:
        assert not site.provision("win", lease_hours=5).get("failed")
        site.virt.domain("win").stop()
    with closing(sqlite3.connect(guests.path("kvm3"))) as db:
        db.execute("DELETE FROM instances")
        db.commit()
    os.unlink(record(guests, "kvm3"))
    for to in ("stop", "migrate", None):
        with pytest.raises(Stop, match=r"win on kvm3, which may be that of kvm1, moved: .*and remove its folder") as no:
            request_steps.find(guests.asked, guests.answers(), [], to=to)
    assert "then the record" not in str(no.value)
    (left,) = next(one for one in guests.answers() if one["item"] == "kvm3")["unclaimed"]
    assert (left["kind"], left["created"]) == ("kvm", None)
    with guests.here(guests.sites["kvm3"]) as site:
        site.virt.domain("win").undefine()
    shutil.rmtree(os.path.dirname(guests.disk("kvm3")))
    guests.migrate()
    assert len(guests.running()) == 1


def test_what_is_left_of_a_container_is_no_guest_that_has_moved(guests):
    """Lost: every verb of a tenant, to what lies on a GPU host since another had that name."""
    (answer,) = [one for one in guests.answers() if one["item"] == "kvm1"]
    left = dict(instance="win", name="gpu1", text="no claim of it is in the database", created=None, leaves_for="")
    for kind, is_told in (("lxc", False), ("kvm", True), (None, True)):
        beside = dict(item="gpu1", claims=[], unclaimed=[dict(left, kind=kind)])
        assert bool(without_claims.unclaimed([answer, beside])) == is_told
