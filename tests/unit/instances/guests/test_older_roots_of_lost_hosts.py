# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that leaves for a host which is lost then, and comes back with an older root of it that was no part of this
move; and a host that is put back as a whole to before a guest left it. If these fail, the older root is started, and
the one with all that its tenant wrote since is removed.

Tests compute_host/departures.py, compute_host/arrivals.py, plugin_utils/move_steps.py, site/owners.py, of
compute_host/moved_roots.py that a power cut takes no time of a disk back, and of
plugin_utils/filters/status_table.py what it says of both.
"""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.moved_roots import GuestsRoot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.plugin_utils import request_steps
from ansible_collections.hetero.compute.plugins.plugin_utils.filters import status_table
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop
from ansible_collections.hetero.compute.tests.unit.instances.guests.played_guest import MARK
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_copies_that_came_back import SINCE, since
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests_that_move import another, two
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moves_of_restored_hosts import guests
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_two_runs_of_a_move import CutOff

__all__ = ["guests", "two"]


class Backup:
    """The database of a machine and its record of win, as a backup of the whole machine has them; its disk stays."""

    def __init__(self, guests, name):
        self.guests, self.name, self.database = guests, name, guests.copy_of(name)
        with guests.at(guests.sites[name]) as host:
            self.record = host.store.kept("win")

    def put_back(self):
        self.guests.put_back(self.name, self.database)
        with self.guests.at(self.guests.sites[self.name]) as host:
            host.store.records.write(self.record)


def works_on(guests, name):
    with open(guests.disk(name), "r+b") as file:
        file.seek(512 + len(MARK))
        file.write(SINCE)


def cut_off_after_leaving(guests):
    """A move whose play dies once the guest is off."""

    def comes(step):
        if step == "begun":
            raise CutOff

    guests.comes = comes
    with pytest.raises(CutOff):
        guests.migrate()
    del guests.comes


@pytest.fixture
def spare(tmp_path, image):
    made = []

    def make(name):
        made.append(another(tmp_path / f"spare{len(made)}", image, name, 40))
        return made[-1]

    return make


@pytest.fixture(params=["from before it left", "a copy that was given up", "started and given up"])
def older(request, guests, spare):
    """What `older` is: win leaves the host `left` for the host `lost`, which came back with an older root of it."""
    before = Backup(guests, "kvm1")
    if request.param == "from before it left":
        guests.started()
        before.put_back()
        left, lost = "kvm2", "kvm1"
        guests.run = guests.claim("kvm2")["mover"]
        guests.step(left, "settled", guests.claim(left), run="r2", seen=guests.run)
    else:
        (guests.copied if request.param == "a copy that was given up" else guests.started)()
        left, lost = "kvm1", "kvm2"
    machine, guests.sites[lost] = guests.sites[lost], spare(lost)
    if left == "kvm1":
        guests.migrate(back=True)
    assert (guests.states(), guests.running()) == ({left: "running"}, [left])
    works_on(guests, left)
    cut_off_after_leaving(guests)
    assert guests.states() == {left: "leaving", lost: "arriving"}
    guests.sites[lost] = machine
    with guests.here(machine):  # which was switched off
        if machine.virt.domain("win").active:
            machine.virt.domain("win").stop()
    assert guests.states()[left] == "leaving"
    return SimpleNamespace(guests=guests, left=left, lost=lost)


def test_it_is_not_taken_for_the_root_that_moves(older):
    """Lost: what its tenant wrote since: the one root that has it is removed, as an older one runs."""
    states, said = older.guests.states(), ""
    for _turn in range(3):
        try:
            older.guests.migrate()
        except (HeteroError, Stop) as error:
            said = str(error)
        assert os.path.exists(older.guests.disk(older.left)), f"{states}; {older.guests.states()}: {said}"
        assert since(older.guests, older.left)
    assert (older.guests.states(), older.guests.running()) == (states, [])
    assert os.path.exists(older.guests.disk(older.lost))
    assert "no copy of it: which of the two is newer only people can say" in said, said


def ends_by(older, without):
    """As is printed: it is ended with one of the two hosts left out."""
    older.guests.terminate(without=[without])


def test_the_first_printed_way_ends_the_older_one_and_the_move_goes_on(older):
    ends_by(older, older.left)
    assert older.guests.states() == {older.left: "leaving"}
    older.guests.migrate()
    older.guests.must_run("the older root was ended")
    assert (older.guests.running(), since(older.guests, older.lost)) == ([older.lost], True)


def test_the_other_printed_way_has_the_older_one_alone(older):
    """Lost: the root that an operator has put back in place of a newer one, which was spoilt."""
    ends_by(older, older.lost)
    assert list(older.guests.states()) == [older.lost]
    older.guests.migrate()
    older.guests.must_run("the newer root was ended")
    assert not since(older.guests, *older.guests.running())


def test_the_operators_word_has_the_newer_one_where_it_was(older):
    older.guests.migrate(back=True)
    older.guests.must_run("it was taken back")
    assert (older.guests.running(), since(older.guests, older.left)) == ([older.left], True)


def test_no_step_takes_it_whatever_a_play_believes(older):
    """Lost: the same, to a play that looked before the host was lost."""
    guests, left, lost = older.guests, older.left, older.lost
    claim, to = guests.claim(left), guests.claim(lost)
    states = guests.states()
    came = guests.step(left, "described", claim)["came"]
    with pytest.raises(HeteroError, match=r"no copy of the one that leaves|is moved by another run"):
        guests.step(lost, "arriving", claim, came=came, seen=to["mover"] or "", run="r9")
    for run in (guests.run, to["mover"] or "", claim["mover"]):
        with pytest.raises(HeteroError, match=r"no copy of the one that leaves|was started|is moved by another"):
            guests.step(lost, "begun", claim, came=came, run=run)
    guests.run = claim["mover"]
    for departure in (to["departure"], None, ""):
        with pytest.raises(HeteroError, match="no copy of this root as it left, and may be older: nothing of "):
            guests.step(left, "gone", claim, host_key=claim["host_key"], departure=departure or "")
    assert (guests.states(), guests.running()) == (states, [])


@pytest.fixture
def ghost(guests):
    """win runs on kvm2, has more there, and is settled; kvm1, with its former root, is put back to before it left."""
    before = Backup(guests, "kvm1")
    guests.started()
    guests.step("kvm2", "settled", guests.claim("kvm2"), run="r2", seen=guests.claim("kvm2")["mover"])
    works_on(guests, "kvm2")
    before.put_back()
    assert (guests.states(), guests.running()) == ({"kvm1": "running", "kvm2": "running"}, ["kvm2"])
    return guests


VERBS = ("start", "reboot", "stop", "extend", "rebuild", "migrate", "show", None)  # None ends it


def test_no_verb_starts_or_removes_either_of_a_host_that_was_put_back_as_a_whole(ghost):
    """Lost: a root of two, by a guess; or one life, as both run."""
    for verb in VERBS:
        with pytest.raises(Stop, match=r"win is there 2 times, .* a host was put back as a whole, .* -e without=NODE"):
            request_steps.find(ghost.asked, ghost.answers(), [], to=verb)
    asked = dict(ghost.asked, count=1, flavor={}, numbers=[], partial=False, placement="", board="", proxy="")
    with pytest.raises(Stop, match="win is there 2 times"):
        request_steps.choose(dict(asked, boot_source="", image=""), ghost.answers(), [], {})
    for back in (False, True):
        with pytest.raises(Stop, match="win is there 2 times"):
            ghost.migrate(back=back)
    ghost.reconcile()
    assert ghost.running() == ["kvm2"]
    assert (since(ghost, "kvm1"), since(ghost, "kvm2")) == (False, True)


def test_status_shows_both_of_a_host_that_was_put_back_as_a_whole_and_says_so(ghost):
    """Lost: that there are two, to who looks before anything else is done."""
    lines = status_table.status_table([], {}, {answer["item"]: dict(answer, error=None) for answer in ghost.answers()})
    told = " ".join(" ".join(lines).split())
    for other in ("kvm1", "kvm2"):
        assert f"is on {other}, too: it has moved, and a database is older than that: run ansible-playbook" in told


@pytest.mark.parametrize(("without", "newer"), [("kvm2", True), ("kvm1", False)])
def test_the_printed_way_ends_one_of_the_two(ghost, without, newer):
    ghost.reconcile()
    ghost.terminate(without=[without])
    assert list(ghost.states()) == [without]
    assert since(ghost, without) == newer


def test_a_former_host_that_was_put_back_to_amid_the_move_is_done_with(guests):
    """Lost: a card and an address for good: it was left for where the instance runs, by this very move."""
    claim = guests.started()
    before = Backup(guests, "kvm1")
    run = guests.claim()["mover"]
    guests.step("kvm2", "settled", claim, run="r2", seen=run)
    works_on(guests, "kvm2")
    before.put_back()
    guests.migrate()
    guests.must_run("it was put back to amid the move")
    assert since(guests, "kvm2")


@pytest.mark.parametrize("copied", ["copied", "started"])
def test_what_was_done_in_a_former_root_that_somebody_started_is_not_removed(guests, copied):
    """Lost: what was written there after it had been copied as a whole: the copy runs, and the newer root goes."""
    getattr(guests, copied)()
    states, said = guests.states(), []
    with guests.here(guests.sites["kvm1"]) as site:
        site.virt.domain("win").start()
        works_on(guests, "kvm1")
        site.virt.domain("win").stop()
    for _turn in range(3):
        try:
            guests.migrate()
        except (HeteroError, Stop) as error:
            said.append(str(error))
        there = guests.states()
        assert any(since(guests, name) for name in there if os.path.exists(guests.disk(name))), (there, said)
    if copied == "copied":
        assert (guests.states(), guests.running()) == (states, [])
        assert all("no copy of it: which of the two is newer only people can say" in one for one in said), said
        guests.terminate(without=["kvm1"])  # as it says
        guests.migrate()
        guests.must_run(said)
        assert since(guests, *guests.running())
    else:
        assert (guests.states(), guests.running()) == (states, ["kvm2"])
        assert all("no copy of this root as it left, and may be older" in one for one in said), said


def test_a_copy_is_not_given_up_for_an_older_root_that_was_put_back_where_it_left(guests):
    """Lost: what only the copy has, once the former root's disk was lost, and comes from a backup."""
    with open(guests.disk("kvm1"), "rb") as file:
        backup = file.read()
    works_on(guests, "kvm1")
    guests.copied()
    with open(guests.disk("kvm1"), "r+b") as file:
        file.write(backup)
    said = []
    for _turn in range(3):
        with pytest.raises((HeteroError, Stop)) as error:
            guests.migrate()
        said.append(str(error.value))
        assert os.path.exists(guests.disk("kvm2")), said
        assert since(guests, "kvm2"), said
    assert guests.running() == []


def test_a_power_cut_takes_the_time_of_a_disk_that_was_let_go_not_back(tmp_path, monkeypatch):
    """Lost: a move that goes on by itself; or what the tenant wrote last, which the whole copy alone would have."""
    disk, written = tmp_path / "disk.raw", []
    disk.write_text("a week of work")
    monkeypatch.setattr(os, "fsync", lambda file: written.append(os.fstat(file).st_ino))
    GuestsRoot(SimpleNamespace(folder=str(tmp_path))).let_go()
    assert written == [disk.stat().st_ino]
