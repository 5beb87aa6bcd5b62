# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases that are given or extended while a proxy's clock is behind. If these fail, the reaper ends a running instance
with its data once the clock is right, because its lease's end was set by the wrong one.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR
from ansible_collections.hetero.compute.tests.unit.verbs.test_lease_clock import (
    DAY,
    HOUR,
    YEAR,
    Hand,
    clock_is_right,
    lose_mark,
    runs,
)

AT_ONCE = "a lease would end at once when it is set: set the clock; where it is right: hetero reap --clock-is-right"
HELD = "more than was counted: nothing ends by a jump: set the clock"
NEWEST = "the newest that is written down here is of 20"


@pytest.fixture
def clock(monkeypatch, tmp_path):
    hand = Hand(monkeypatch, tmp_path)
    hand.boot()
    return hand


@pytest.fixture
def marked(jackie, clock):
    """Jackie has a lease of ten hours, and the clock was believed when the reaper looked."""
    jackie.lease(10)
    assert jackie.turn() == dict(said=[], failed=False)
    return jackie


def ask(site, **given):
    """What a claim of bob's comes to."""
    request = dict(instance="bob", owner="bob", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
    return site.module("board_claim", **dict(request, **given))


def boot(clock, shown):
    """A boot with a clock that no time server has set yet."""
    clock.boot()
    clock.synchronised = False
    clock.jump(shown)


def hours_left(site):
    with site.proxy() as proxy:
        return (proxy.store.claim_of("jackie").expires - time.time()) / HOUR


@pytest.mark.parametrize("booted", [False, True], ids=["set right", "another boot"])
def test_what_a_clock_that_is_behind_writes_does_not_hide_that_it_is(marked, clock, monkeypatch, booted):
    """Lost: jackie's root and disk, by an extension that was not refused and ended two days before it was given."""
    lose_mark(marked)
    boot(clock, -2 * DAY)
    (said,) = marked.turn()["said"]
    assert NEWEST in said
    assert "leases end late" in said
    for _time in range(2):
        assert not ask(marked, check=True).get("failed"), "no lease, no clock"
        with marked.proxy() as proxy:
            proxy.store.event(1, "note", "at the wrong time")
        assert AT_ONCE in marked.lease(5)["msg"]
        assert AT_ONCE in ask(marked, lease_hours=5)["msg"]
    assert marked.board_of("bob") is None
    if booted:
        clock.boot()
        clock.synchronised = True
    clock.jump(0)
    assert marked.turn() == dict(said=[], failed=False)
    assert clock_is_right(marked, monkeypatch) == 0
    assert runs(marked)
    assert 9 < hours_left(marked) < 10


def test_the_first_lease_that_is_refused_keeps_what_the_clock_is_held_against(marked, clock):
    """Lost: what was known of the time, where an older copy of the state is put back before the reaper's next turn."""
    lose_mark(marked)
    boot(clock, -2 * DAY)
    assert AT_ONCE in ask(marked, lease_hours=5)["msg"]
    with closing(sqlite3.connect(marked.params["state_db"])) as db:
        db.execute("UPDATE events SET time = time - ?", (30 * DAY,))
        db.execute("DELETE FROM claims")
        db.commit()
    shutil.rmtree(marked.state / "claims")
    assert AT_ONCE in ask(marked, lease_hours=5)["msg"]


def test_records_of_claims_say_the_time_where_the_database_is_older(marked, clock):
    """Lost: a lease, on a node whose state was put back with a copy of the database from before the newest claims."""
    lose_mark(marked)
    with closing(sqlite3.connect(marked.params["state_db"])) as db:
        db.execute("UPDATE events SET time = time - ?", (30 * DAY,))
        db.execute("DELETE FROM claims")
        db.commit()
    boot(clock, -2 * DAY)
    said = ask(marked, lease_hours=5)["msg"]
    assert NEWEST in said
    assert AT_ONCE in said


def test_a_time_that_was_ahead_is_forgotten_by_an_operators_word(marked, clock, monkeypatch):
    """Lost: all new leases, for a year, on a node whose clock was once ahead and whose mark was lost later."""
    clock.jump(YEAR)
    with marked.proxy() as proxy:
        proxy.store.event(1, "note", "at the wrong time")
    clock.jump(0)
    lose_mark(marked)
    assert AT_ONCE in marked.lease(5)["msg"]
    assert clock_is_right(marked, monkeypatch) == 0
    assert not marked.lease(5).get("failed")


@pytest.mark.parametrize("booted", [False, True], ids=["set right", "another boot"])
def test_a_lease_of_a_clock_that_did_not_count_while_it_was_off_is_held(marked, clock, monkeypatch, booted):
    """Lost: jackie's data, where the clock began at the time of the last shutdown, two days ago (no battery), she
    extended, and the time server answered before the reaper's next turn, or before the next boot.
    """
    boot(clock, 0)
    assert not marked.lease(5).get("failed")
    if booted:
        assert marked.turn() == dict(said=[], failed=False)
        clock.boot()
    clock.synchronised = True
    clock.jump(2 * DAY)
    result = marked.turn()
    assert (result["failed"], runs(marked)) == (True, True)
    assert HELD in result["said"][0]
    assert clock_is_right(marked, monkeypatch) == 0
    assert marked.what_is_there() == marked.clean()


@pytest.mark.parametrize("lost", [False, True], ids=["mark kept", "mark lost"])
def test_an_extension_by_a_clock_that_counted_a_part_of_the_time_is_held(marked, clock, monkeypatch, lost):
    """Lost: jackie's data, where the machine was off for three days, its clock shows one of them, and she extended."""
    if lost:
        lose_mark(marked)
    boot(clock, DAY)
    assert "too late once that is set" in str(marked.lease(5))
    clock.synchronised = True
    clock.jump(3 * DAY)
    for _time in range(2):
        result = marked.turn()
        assert (result["failed"], runs(marked)) == (True, True)
        assert "nothing ends by a jump: set the clock" in result["said"][0]
    marked.lease(5)
    assert clock_is_right(marked, monkeypatch) == 0
    assert runs(marked), "it was extended before"
    clock.jump(3 * DAY + 6 * HOUR)
    clock.count(6 * HOUR)
    assert not marked.turn()["failed"]
    assert marked.what_is_there() == marked.clean()


def test_asking_what_an_extension_would_do_takes_no_time_off_away(marked, clock):
    """Lost: boards that nobody gets back after a weekend, by a check that was to change nothing."""
    boot(clock, DAY)
    assert not marked.lease(5, check=True).get("failed")
    clock.synchronised = True
    clock.jump(3 * DAY)
    assert not marked.turn()["failed"]
    assert marked.what_is_there() == marked.clean()


@pytest.mark.parametrize("by", ["word", "time server", "nobody"])
def test_a_clock_that_was_sure_stays_so_until_the_next_boot(marked, clock, monkeypatch, by):
    """Lost: boards that nobody gets back after a weekend off, where the time server was gone before the node was."""
    boot(clock, 0)
    clock.synchronised = by == "time server"
    assert (clock_is_right(marked, monkeypatch) == 0) if by == "word" else (marked.turn()["said"] == [])
    clock.synchronised = False
    clock.count(2 * HOUR)
    clock.jump(2 * HOUR)
    assert marked.turn() == dict(said=[], failed=False)
    clock.boot()
    clock.synchronised = True
    clock.jump(3 * DAY)
    assert marked.turn()["failed"] is (by == "nobody")
    assert marked.what_is_there() == (marked.running("jackie") if by == "nobody" else marked.clean())


def test_a_mark_of_an_earlier_release_is_believed(marked, clock):
    """Lost: boards that nobody gets back after the weekend in which a node was upgraded."""
    mark = marked.state / "state.clock"
    text = mark.read_text()
    mark.write_text(text.replace(', "sure": true', ""))
    assert mark.read_text() != text
    clock.boot()
    clock.jump(3 * DAY)
    assert not marked.turn()["failed"]
    assert marked.what_is_there() == marked.clean()
