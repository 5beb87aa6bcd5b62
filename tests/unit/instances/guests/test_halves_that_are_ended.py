# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that moves, and whose claims are ended, made anew or forgotten on one of its hosts; or two runs that claim it
on two hosts. If these fail, it runs twice, or what is left of it is nobody's and ends by no verb.

Tests compute_host/lifecycle.py, compute_host/departures.py, site/moves.py, site/without_claims.py,
plugin_utils/request_steps.py.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.guest import GuestWork
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.plugin_utils import request_steps
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests_that_move import another, two
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moves_of_restored_hosts import guests
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_two_runs_of_a_move import CutOff, cut_off

__all__ = ["guests", "two"]


def asked(guests, to=None, without=()):
    """What a playbook finds that leaves out some hosts."""
    answers = [answer for answer in guests.answers() if answer["item"] not in without]
    return request_steps.find(guests.asked, answers, without, to=to)


@pytest.mark.parametrize(("node", "other"), [("kvm1", "kvm2"), ("kvm2", "kvm1")])
def test_a_half_whose_end_was_cut_off_comes_back_by_no_verb(guests, monkeypatch, node, other):
    """Lost: one life: reconcile, or a longer lease, made an instance of a former root, or of a copy, which ran beside
    the other one.
    """
    claim = guests.started() if node == "kvm1" else guests.copied()
    with monkeypatch.context() as patch:
        patch.setattr(GuestWork, "remove", cut_off)
        with pytest.raises(CutOff):
            guests.verb(node, lifecycle.absent, claim)
    guests.reconcile()
    assert guests.states()[node] == "ending"
    for verb, more in ((lifecycle.running, {}), (lifecycle.extended, dict(lease_hours=9))):
        with pytest.raises(HeteroError, match="moves "):
            guests.verb(node, verb, claim, **more)
    assert guests.states()[other] == ("running" if other == "kvm2" else "leaving")
    guests.tried(back=other == "kvm1")
    guests.must_run("the end of a half was cut off")


@pytest.mark.parametrize("to", ["rebuild", "start", "migrate", None])
def test_databases_of_both_hosts_that_are_older_than_a_move(guests, to):
    """Lost: one life: the host that it has left is told to make it anew, and it runs beside the one that has its data.
    """
    before = {name: guests.copy_of(name) for name in guests.sites}
    guests.migrate()
    for name, copy in before.items():
        guests.put_back(name, copy)
    assert (guests.states(), guests.running()) == ({"kvm1": "running"}, ["kvm2"])
    with pytest.raises(Stop, match=r"^win on kvm2: no claim of it is in the database of .* put a newer copy of it"):
        asked(guests, to)


@pytest.mark.parametrize("record", ["{", None])
@pytest.mark.parametrize("to", ["rebuild", "start", "migrate", None])
def test_databases_that_are_older_than_a_move_whose_record_tells_nothing(guests, to, record):
    """Lost: one life: where the record on the new host is damaged or gone, too, the former one was told to make it anew
    (fresh=true), and it ran beside the one that has its data.
    """
    before = {name: guests.copy_of(name) for name in guests.sites}
    guests.migrate()
    for name, copy in before.items():
        guests.put_back(name, copy)
    with guests.at(guests.sites["kvm2"]) as host:
        path = host.store.records.path("win")
    os.unlink(path)
    if record:
        Path(path).write_text(record)
    assert (guests.states(), guests.running()) == ({"kvm1": "running"}, ["kvm2"])
    with pytest.raises(Stop, match=r"^win on kvm2, which may be that of kvm1, moved: no claim of it is in the") as told:
        asked(guests, to)
    assert guests.disk("kvm2").rpartition("/")[0] in str(told.value)
    assert (f"the record of its claim, {path}, cannot be read" in str(told.value)) == bool(record)


@pytest.mark.parametrize("record", [True, False])
def test_a_request_for_one_that_moved_before_its_host_knew_that_it_was_made(guests, record):
    """Lost: the same, to playbook provision_instance, which goes on with what the former host has claimed."""
    before = {name: guests.copy_of(name) for name in guests.sites}
    with closing(before["kvm1"]):
        flavor = guests.claim()["flavor"]
        guests.migrate()
        before["kvm1"].execute("UPDATE instances SET state = 'claimed', container = NULL, image_hash = NULL")
        before["kvm1"].commit()
        for name, copy in before.items():
            guests.put_back(name, copy)
    if not record:
        with guests.at(guests.sites["kvm2"]) as host:
            os.unlink(host.store.records.path("win"))
    assert (guests.states(), guests.running()) == ({"kvm1": "claimed"}, ["kvm2"])
    request = dict(guests.asked, flavor=flavor, count=1, partial=False, placement="spread", boot_source="nfs")
    request.update(image="", board="", proxy="")
    plan = request_steps.choose(request, guests.answers(), [], {})
    assert plan["visits"] == []
    told = request_steps.claimed(request, guests.answers(), plan, {}, request_steps.Wait())
    assert not told["placed"]
    assert "no claim of it is in the database of" in told["text"]


def test_a_former_host_that_forgot_the_claim_keeps_no_verb_from_the_one_that_runs(guests):
    """Lost: a lease that nobody could make longer, and each verb, to a former root that has left for where it runs."""
    before = guests.copy_of("kvm1")
    with closing(before):
        guests.started()
        before.execute("DELETE FROM instances")
        before.commit()
        guests.put_back("kvm1", before)
    assert (guests.states(), guests.running()) == ({"kvm2": "running"}, ["kvm2"])
    for to in ("extend", "migrate", None):
        assert [part["item"] for part in asked(guests, to)["parts"]] == ["kvm2"]


def test_one_that_was_made_anew_on_its_new_host_says_how_its_former_root_goes(guests):
    """Lost: a card and an address, to a move that goes on, and fails, for ever."""
    claim = guests.started()
    assert not guests.verb("kvm2", lifecycle.rebuilt, claim, fresh=True).get("failed")
    with pytest.raises(HeteroError, match="terminate_instance -e instance=win -e without=kvm2 removes that alone"):
        guests.migrate()
    (part,) = asked(guests, without=["kvm2"])["parts"]
    guests.verb(part["item"], lifecycle.absent, part["claims"][0])
    assert (guests.states(), guests.running()) == ({"kvm2": "running"}, ["kvm2"])
    assert guests.sites["kvm1"].files("win") == []


@pytest.fixture
def third(guests, tmp_path, image):
    """One more host; a run of a move to it is killed as it has claimed there what it needs, beside one to kvm2."""
    guests.sites["kvm3"] = another(tmp_path / "third", image, "kvm3", 40)
    claim = guests.claim()
    came = guests.step("kvm1", "described", claim)["came"]
    for run, node in (("r1", "kvm3"), ("r2", "kvm2")):
        guests.step(node, "arriving", claim, came=came, other="kvm1", run=run)
    return guests.sites["kvm3"]


def leaves(guests):
    """It is off on kvm1, by the run to kvm2."""
    guests.step("kvm1", "leaving", guests.claim(), other="kvm2", run="r2")


@pytest.mark.parametrize("left", [False, True])
def test_of_two_runs_to_two_hosts_that_are_killed_one_goes_on(guests, third, left):
    """Lost: an instance that is off, and that every run says to be another's."""
    if left:
        leaves(guests)
    guests.migrate()
    assert guests.states() == {"kvm2": "running", "kvm3": "arriving"}
    assert guests.running() == ["kvm2"]
    guests.migrate(back=True)
    guests.must_run("two runs were killed")


def test_what_two_runs_have_claimed_on_two_hosts_ends_at_once(guests, third):
    """Lost: a card, memory and an address on each, held by an instance that was said to be gone."""
    leaves(guests)
    guests.terminate()
    guests.must_be_gone("two runs were killed")


def test_what_came_alone_to_two_hosts_ends_at_once(guests, third):
    """Lost: the same, where its former host has ended it, with the others left out."""
    guests.verb("kvm1", lifecycle.absent, guests.claim())
    assert guests.states() == {"kvm2": "arriving", "kvm3": "arriving"}
    guests.terminate()
    guests.must_be_gone("it came alone")
