# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of playbook migrate_instance that looked where a guest is, and was held up before it claimed anything, while
another one moved it. If these fail, the guest runs on two hosts at once, or neither run moves it.

Tests compute_host/move_step.py, compute_host/departures.py, compute_host/arrivals.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests_that_move import (
    another,
    disk,
    two,
    win,
)
from ansible_collections.hetero.compute.tests.unit.instances.moves import Mover

__all__ = ["two", "win"]

OTHER = "win: is moved by another run since: this one does nothing more"


def run_of(win, name, new=None):
    """Another run of the playbook, which looks now."""
    made = Mover(win.at, win.old, new or win.new, win.name)
    made.run = name
    return made


@pytest.fixture
def third(win, image, tmp_path):
    return another(tmp_path / "third", image, "kvm3", 30)


def running(two, *more):
    found = []
    for site in (*two[:2], *more):
        with two[2](site):
            domain = site.virt.domain("win")
            found += [site] if domain.defined and domain.active else []
    return found


@pytest.mark.parametrize("started", [False, True])
def test_of_two_runs_to_two_hosts_one_alone_starts_it(win, two, third, started):
    """Lost: one life: both are asked for at once with another node=, and each copies the root and starts it."""
    late, first = win, run_of(win, "r3", third)
    came = late.step(late.old, "described")["came"]
    first.copied()
    if started:
        first.started()
    late.step(late.new, "arriving", came=came)
    with pytest.raises(Refused, match=OTHER):
        late.step(late.old, "leaving")
    late.step(late.new, "given_up")
    with pytest.raises(Refused, match=OTHER):
        late.step(late.old, "back")
    first.started()
    assert running(two, third) == [third]
    first.step(third, "settled")
    first.step(first.old, "gone")
    assert (first.claim(first.old), first.old.files("win"), late.claim(late.new)) == (None, [], None)


@pytest.mark.parametrize("started", [False, True])
def test_a_run_that_looked_before_another_had_the_same_host_takes_nothing_of_it(win, two, started):
    """Lost: hours of a copy: the later one fails as its claim was taken, and the earlier one as the guest has left."""
    late, first = run_of(win, "r3"), win
    came = late.step(late.old, "described")["came"]
    first.copied()
    if started:
        first.started()
    with pytest.raises(HeteroError):
        late.step(late.new, "arriving", came=came)
    with pytest.raises(Refused):
        late.step(late.new, "given_up")
    with pytest.raises(Refused, match=OTHER):
        late.step(late.old, "leaving")
    first.started()
    first.step(first.new, "settled")
    first.step(first.old, "gone")
    assert (running(two), first.old.files("win")) == ([first.new], [])


def test_an_operators_word_for_one_move_gives_up_no_later_one(win, two):
    """Lost: what a tenant wrote on the new host: back=true was typed for a move that ended since, and a second one has
    begun.
    """
    win.copied()
    win.started()
    word = run_of(win, "r9")
    win.step(win.new, "settled")
    win.step(win.old, "gone")
    Mover(win.at, win.new, win.old, "win").all()
    again = run_of(win, "r4")
    again.copied()
    again.started()
    with pytest.raises(Refused, match=OTHER):
        word.step(word.old, "recalled")
    with pytest.raises(Refused, match=OTHER):
        word.step(word.new, "given_up", force=True, run=win.run)
    assert disk(win.new).exists()
    assert running(two) == [win.new]
