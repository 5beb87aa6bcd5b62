# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of playbook migrate_instance that is held up between two of its steps, as by a network, for as long as others
take as a whole. If these fail, a guest runs on two hosts at once, or its only disk is removed.

Tests compute_host/move_step.py, compute_host/departures.py, compute_host/arrivals.py, plugin_utils/move_steps.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.guest import GuestWork
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.moves import moving
from ansible_collections.hetero.compute.tests.unit.instances.guests.played_guest import Guests
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests_that_move import disk, two, win
from ansible_collections.hetero.compute.tests.unit.instances.moves import Mover

__all__ = ["two", "win"]

OTHER = "win: is moved by another run since: this one does nothing more"


def later(run, of, back=False):
    """Another run of the playbook, of the same instance; in the other direction with `back`."""
    made = Mover(of.at, *((of.new, of.old) if back else (of.old, of.new)), of.name)
    made.run = run
    return made


def running(two):
    return Guests(two).running()


def test_a_run_that_gave_up_takes_nothing_back_that_another_has_moved(win, two):
    """Lost: one life: its former disk starts beside the one that the tenant works on."""
    win.copied()
    win.step(win.new, "given_up")
    other = later("r2", win)
    other.copied()
    other.started()
    with pytest.raises(Refused, match=OTHER):
        win.step(win.old, "back")
    assert (win.state(win.old), running(two)) == ("leaving", ["kvm2"])
    other.step(win.new, "settled")
    other.step(win.old, "gone")
    assert (win.claim(win.old), win.old.files("win")) == (None, [])


def test_an_operators_way_back_ends_where_it_has_moved_again_meanwhile(win, two):
    """Lost: the same, to back=true."""
    win.copied()
    (half,) = moving(Guests(two).answers())
    assert half.of["mover"] == "r1"
    word = later("r9", win)
    word.step(win.old, "recalled")
    word.step(win.new, "given_up", force=True, run=half.to["mover"])
    other = later("r2", win)
    other.copied()
    other.started()
    with pytest.raises(Refused, match=OTHER):
        word.step(win.old, "back")
    assert running(two) == ["kvm2"]


def test_a_former_disk_is_not_removed_that_is_the_only_one_again(win, two):
    """Lost: the only disk: a run that is about to remove the former one sleeps, and the guest comes back meanwhile."""
    win.copied()
    win.started()
    win.step(win.new, "settled")
    later("r1", win).step(win.old, "gone")
    later("r2", win, back=True).all()
    again = later("r3", win)
    came = again.step(win.old, "described")["came"]
    again.step(win.new, "arriving", came=came)
    again.step(win.old, "leaving")
    with pytest.raises(Refused, match=OTHER):
        win.step(win.old, "gone")
    assert disk(win.old).exists()
    again.all()
    assert running(two) == ["kvm2"]


STALE = {
    "begun": "new",
    "written": "new",
    "taken": "new",
    "given_up": "new",
    "planned": "old",
    "read": "old",
    "digested": "old",
    "back": "old",
}


def test_no_step_of_a_run_is_taken_once_another_has_taken_the_move_up(win, two):
    """Lost: a copy that has a piece of an older disk, or an older lease; or a move, whose copy is removed under it."""
    came = win.step(win.old, "described")["came"]
    win.step(win.new, "arriving", came=came)
    came = win.step(win.old, "leaving")["came"]
    has = win.step(win.new, "begun", came=came)["has"]
    file, number = win.step(win.old, "planned", has=has)["todo"][0]
    piece = win.step(win.old, "read", piece=dict(file=file, number=number))["piece"]
    digests = win.step(win.old, "digested")["digests"]
    given = dict(begun=dict(came=came), written=dict(piece=piece), taken=dict(came=came, digests=digests))
    given.update(planned=dict(has=has), read=dict(piece=piece))
    other = later("r2", win)
    other.step(win.new, "arriving", came=other.step(win.old, "described")["came"])
    other.step(win.old, "leaving")
    for step, site in STALE.items():
        with pytest.raises(Refused, match=OTHER):
            win.step(getattr(win, site), step, **given.get(step, {}))
    whole = disk(win.old).read_bytes()
    other.all()
    assert (disk(win.new).read_bytes(), win.state(win.new)) == (whole, "running")


def test_what_fails_before_another_runs_copy_is_seen_gives_nothing_of_it_up(win, two):
    """Lost: hours of a copy, to a second run that fails at once, and takes back what it never began."""
    win.copied()
    came = win.step(win.old, "described")["came"]
    second = later("r2", win)
    with pytest.raises(HeteroError):
        second.step(win.new, "arriving", came=dict(came, cpu_arch="z80"))
    with pytest.raises(Refused, match=OTHER):
        second.step(win.new, "given_up")
    assert disk(win.new).exists()
    win.started()


def test_a_run_that_fails_as_it_goes_on_takes_back_what_one_before_began(win, two, monkeypatch):
    """Lost: an instance that is off for good, as the one run that may take it back was killed days ago."""
    win.copied()
    second = later("r2", win)
    second.step(win.new, "arriving", came=second.step(win.old, "described")["came"])
    disk(win.old).rename(disk(win.old).with_name("away"))
    with pytest.raises(HeteroError):
        second.step(win.old, "leaving")
    disk(win.old).with_name("away").rename(disk(win.old))
    second.step(win.new, "given_up")
    assert second.step(win.old, "back") == {"ran": True}
    with two[2](win.old):
        assert not win.old.do("running", "win").get("failed")


def test_two_runs_that_are_shuffled_never_start_it_twice(two):
    """Lost: one life. Run A fails, and is held up before each of what it takes back; a whole run B comes between."""
    for held in ("given_up", "back", "start"):
        guests = Guests(two)
        guests.provide()
        before = guests.states()
        real = guests.step, guests.verb

        def step(node, word, claim, *given, held=held, guests=guests, real=real, **more):
            if word == "planned" and not given and guests.turn == 1:
                raise HeteroError("broke off", "disk", "")
            if word == held:
                between(guests)
            return real[0](node, word, claim, *given, **more)

        def verb(node, what, claim, held=held, guests=guests, real=real, **more):
            if held == "start" and what is lifecycle.running:
                between(guests)
            return real[1](node, what, claim, **more)

        guests.turn, guests.step, guests.verb = 1, step, verb
        with pytest.raises(HeteroError, match="does not move"):
            guests.migrate()
        assert guests.turn == 2, f"{held} was never reached"
        assert before != guests.states()
        guests.must_hold(held)
        guests.must_run(held)
        guests.step, guests.verb = real
        guests.terminate()


def between(guests):
    """Another run, as a whole, the first time."""
    if guests.turn == 1:
        guests.turn, run = 2, guests.run
        guests.migrate()
        guests.run = run


@pytest.mark.parametrize(("at", "step"), [("old", "gone"), ("new", "given_up")])
def test_reconcile_leaves_the_half_whose_removal_was_cut_off_to_its_move(win, two, monkeypatch, at, step):
    """Lost: one life: the former root is an instance that is off, which whoever leaves the new host out can start."""
    site = getattr(win, at)
    win.copied()
    if step == "gone":
        win.started()
        win.step(win.new, "settled")
    with monkeypatch.context() as patch:
        patch.setattr(GuestWork, "remove", cut_off)
        with pytest.raises(CutOff):
            win.step(site, step)
    Guests(two).reconcile()
    assert win.claim(site).state == "ending"
    win.step(site, step)
    assert (win.claim(site), site.files("win")) == (None, [])


class CutOff(BaseException):
    """The process that is killed."""


def cut_off(_work):
    raise CutOff
