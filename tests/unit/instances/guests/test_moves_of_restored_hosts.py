# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest's move, and a database that is put back from a copy of before. If these fail, its former root runs beside the
one that its tenant works on, or the only root is removed.

Tests compute_host/departures.py, claims/host/store.py, playbook migrate_instance.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import (
    arrivals,
    lifecycle,
    unclaimed_instances,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import without_claims
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop
from ansible_collections.hetero.compute.tests.unit.instances.guests.played_guest import Guests
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests_that_move import two

__all__ = ["two"]


class CutOff(Exception):
    """The play has ended."""


class Copied(Guests):
    """win runs on kvm1; databases are copied, and put back. Records of claims stay as they are."""

    def path(self, name):
        with self.at(self.sites[name]) as host:
            return host.store.path

    def copy_of(self, name):
        copy = sqlite3.connect(":memory:", check_same_thread=False)
        with closing(sqlite3.connect(self.path(name))) as db:
            db.backup(copy)
        return copy

    def put_back(self, name, copy):
        with closing(sqlite3.connect(self.path(name))) as db:
            copy.backup(db)

    def claim(self, name="kvm1"):
        with self.at(self.sites[name]) as host:
            return vars(host.store.claim_of("win"))

    def recorded(self, name):
        with self.at(self.sites[name]) as host:
            return host.store.kept("win").state

    def copied(self):
        """Its root is on both hosts, and it runs on neither."""
        claim = self.claim()
        came = self.step("kvm1", "described", claim)["came"]
        self.copy(dict(leaves="kvm1", arrives="kvm2", left_by="", came_by=""), claim, came)
        return claim

    def started(self):
        """It runs on kvm2, and its former root is there."""
        claim = self.copied()
        self.verb("kvm2", arrivals.migrated, claim)
        return claim


@pytest.fixture
def guests(two):
    made = Copied(two)
    made.provide()
    return made


def test_a_new_host_that_forgot_it_keeps_the_former_root_off(guests):
    """Lost: one life: the former root starts here, or on a third host, beside the one that the tenant works on."""
    before = guests.copy_of("kvm2")
    guests.started()
    guests.put_back("kvm2", before)
    assert guests.states() == {"kvm1": "leaving"}
    for back in (False, True):
        with pytest.raises(Stop, match="win leaves kvm1 for kvm2, which has something of it without a claim, and may"):
            guests.migrate(back)
    assert (guests.states(), guests.running()) == ({"kvm1": "leaving"}, ["kvm2"])


def test_a_new_host_that_forgot_it_is_told_of_where_it_is_to_end(guests):
    """Lost: money, to a guest that was said to be gone; and its former root, before anybody has seen what runs."""
    before = guests.copy_of("kvm2")
    guests.started()
    guests.put_back("kvm2", before)
    with pytest.raises(Stop, match=r"win on kvm2: no claim of it is in the database of .* a newer copy"):
        guests.terminate()
    assert (guests.states(), guests.running()) == ({"kvm1": "leaving"}, ["kvm2"])
    guests.reconcile()
    guests.terminate(without=["kvm2"])
    assert (guests.states(), guests.running()) == ({}, ["kvm2"])


def test_an_old_host_that_forgot_that_it_left_does_not_start_it(guests):
    """Lost: one life, to who starts it with the new host left out, as is said of what is there twice."""
    before = guests.copy_of("kvm1")
    claim = guests.started()
    guests.put_back("kvm1", before)
    assert guests.states() == {"kvm1": "running", "kvm2": "running"}
    with pytest.raises(Stop, match=r"win is there 2 times, .*it has moved, and a database is older than that: run"):
        guests.migrate()
    with pytest.raises(HeteroError, match="moves to kvm2"):
        guests.verb("kvm1", lifecycle.running, claim)
    assert guests.running() == ["kvm2"]
    guests.reconcile()
    assert guests.states() == {"kvm1": "leaving", "kvm2": "running"}
    assert guests.claim()["mover"] == guests.run, "no run could remove its former root any more"
    guests.migrate()
    guests.must_run("the old host's database was put back")


@pytest.mark.parametrize("back", [False, True])
def test_an_old_host_that_forgot_a_move_that_is_not_over_goes_on_or_back(guests, back):
    """Lost: every verb for good, as a run is refused that its host's record knows, and its database does not; so it is,
    too, where a host was killed as it wrote that the guest leaves.
    """
    before = guests.copy_of("kvm1")
    guests.copied()
    guests.put_back("kvm1", before)
    assert guests.states() == {"kvm1": "running", "kvm2": "arriving"}
    guests.migrate(back=back)
    guests.must_run("the old host's database was put back")
    assert guests.running() == ["kvm1" if back else "kvm2"]


def test_a_new_host_that_forgot_that_it_started_it_gives_nothing_up(guests):
    """Lost: the only root, as that of one which never ran; or every verb for good, as each names another one."""
    claim = guests.copied()
    before = guests.copy_of("kvm2")
    guests.migrate()
    guests.put_back("kvm2", before)
    assert (guests.states(), guests.running()) == ({"kvm2": "arriving"}, ["kvm2"])
    with pytest.raises(HeteroError, match="was started here"):
        guests.step("kvm2", "given_up", claim)
    guests.reconcile()
    guests.must_run("the new host's database was put back")


def test_of_a_new_host_that_forgot_all_but_the_claim_nothing_is_said_that_ends_it(guests):
    """Lost: the only root, to who is told that it was never started there, and how what is there ends."""
    claim = guests.claim()
    came = guests.step("kvm1", "described", claim)["came"]
    guests.step("kvm2", "arriving", claim, came=came)
    before = guests.copy_of("kvm2")
    guests.migrate()
    guests.put_back("kvm2", before)
    assert (guests.states(), guests.running()) == ({"kvm2": "arriving"}, ["kvm2"])
    with pytest.raises(HeteroError, match=r"has run, and the database of .* may be older than that") as refused:
        guests.migrate()
    assert "terminate_instance" not in str(refused.value)
    with pytest.raises(HeteroError, match="has run, and the database of"):
        guests.terminate()
    assert guests.running() == ["kvm2"]


def test_a_new_host_that_forgot_its_start_and_whose_record_is_damaged_gives_nothing_up(guests):
    """Lost: the only root, to who is told that it was never started there, and how what is there ends; or, of a host
    with both, to a move that fails.
    """
    claim = guests.copied()
    before = guests.copy_of("kvm2")
    guests.migrate()
    guests.put_back("kvm2", before)
    with guests.at(guests.sites["kvm2"]) as host, open(host.store.records.path("win"), "w") as record:
        record.write("{")
    assert (guests.states(), guests.running()) == ({"kvm2": "arriving"}, ["kvm2"])
    with pytest.raises(HeteroError, match=r"extend_instance -e instance=win -e hours=HOURS says anew") as no:
        guests.migrate()
    assert "never started here" not in str(no.value)
    with pytest.raises(HeteroError, match="was started here"):
        guests.step("kvm2", "given_up", claim)
    guests.verb("kvm2", lifecycle.extended, claim, lease_hours=9)
    guests.reconcile()
    guests.must_run("its lease was said anew")


def test_a_former_host_that_forgot_that_a_move_was_over_ends_what_it_holds(guests):
    """Lost: a card, memory and an address for good, to verbs of which each names another one that is refused."""
    guests.copied()
    before = guests.copy_of("kvm1")
    guests.migrate()
    guests.terminate()
    guests.put_back("kvm1", before)
    assert guests.states() == {"kvm1": "leaving"}
    with pytest.raises(HeteroError, match="terminate_instance -e instance=win ends all of it") as refused:
        guests.migrate()
    assert "rebuild_instance" not in str(refused.value)
    guests.terminate()
    guests.must_be_gone("the former host's database was put back")


def test_both_hosts_that_forgot_the_end_of_a_move_say_what_finds_it(guests):
    """Lost: every verb, to who does what each says: make it anew, which is refused, for it moves."""
    guests.copied()
    before = {name: guests.copy_of(name) for name in guests.sites}
    guests.migrate()
    for name, copy in before.items():
        guests.put_back(name, copy)
    assert guests.states() == {"kvm1": "leaving", "kvm2": "arriving"}
    with pytest.raises(HeteroError, match=r"or run ansible-playbook .*reconcile, which finds where it runs"):
        guests.migrate()
    guests.reconcile()
    guests.migrate()
    guests.must_run("both databases were put back")


def test_one_that_leaves_and_whose_lease_nobody_knows_says_how_it_is_said_anew(guests):
    """Lost: the move, as a longer lease is named, and refused of what moves."""
    claim = guests.copied()
    with guests.at(guests.sites["kvm1"]) as host, open(host.store.records.path("win"), "w") as record:
        record.write("{")
    with pytest.raises(HeteroError, match=r"back=true has it where it was; then .*extend_instance .*; then .*migrate_"):
        guests.migrate()
    guests.migrate(back=True)
    guests.verb("kvm1", lifecycle.extended, claim, lease_hours=9)
    guests.migrate()
    guests.must_run("its lease was said anew")
    assert guests.running() == ["kvm2"]


@pytest.mark.long
def test_one_that_has_moved_on_since_is_leaving_by_its_record(guests):
    """Lost: the place to which it has gone on, whose claim would be taken for a second one."""
    guests.copied()
    before = guests.copy_of("kvm2")
    guests.migrate()
    claim = guests.claim("kvm2")
    guests.step("kvm2", "leaving", claim, seen=claim["mover"])
    guests.put_back("kvm2", before)
    guests.reconcile()
    assert (guests.states(), guests.recorded("kvm2")) == ({"kvm2": "leaving"}, "leaving")
    assert guests.claim("kvm2")["note"] == "moves to kvm1"


def test_a_move_is_not_taken_back_to_a_root_that_is_gone(guests):
    """Lost: the only root, which is given up for the former one, of which a copy of the database tells alone."""
    claim = guests.started()
    before = {name: guests.copy_of(name) for name in guests.sites}
    guests.leave(dict(leaves="kvm1", arrives="kvm2", came_by=guests.run, settles="r2"), claim, claim["host_key"])
    for name, copy in before.items():
        guests.put_back(name, copy)
    assert guests.states() == {"kvm1": "leaving", "kvm2": "running"}
    with pytest.raises(HeteroError, match="its former root is not here any more"):
        guests.migrate(back=True)
    assert guests.running() == ["kvm2"]
    guests.migrate()
    guests.must_run("both databases were put back")


def test_a_half_that_came_alone_says_how_it_ends(guests):
    """Lost: a card and an address, as two verbs name each other."""
    claim = guests.claim()
    guests.step("kvm2", "arriving", claim, came=guests.step("kvm1", "described", claim)["came"])
    guests.verb("kvm1", lifecycle.absent, claim)
    with pytest.raises(HeteroError, match=r"moves from kvm1, and was never started here: .*terminate_instance"):
        guests.migrate()
    guests.terminate()
    guests.must_be_gone("its half alone")


def test_half_a_copy_that_a_new_host_forgot_is_told_and_holds_up_nothing(guests):
    """Lost: a tenant's data, which stay on a host without a word once it has ended the instance."""
    before = guests.copy_of("kvm2")

    def comes(step):
        if step == "taken":
            raise CutOff

    guests.comes = comes
    with pytest.raises(CutOff):
        guests.migrate()
    del guests.comes
    guests.put_back("kvm2", before)
    half = r"win on kvm2: no claim of it is in the database of .*, and half of a guest is in .*/win, which no verb"
    (note,) = without_claims.notes(guests.answers())
    assert re.match(half, note)
    with guests.at(guests.sites["kvm2"]) as host:
        assert any("half of a guest is in" in one for one in unclaimed_instances.of_no_instance(host))
        unclaimed_instances.refuse_unclaimed(host, "win")
    with pytest.raises(Stop, match=half):
        guests.terminate()
    assert guests.states() == {"kvm1": "leaving"}
    guests.migrate()
    guests.must_run("it went on")
    assert without_claims.notes(guests.answers()) == []
