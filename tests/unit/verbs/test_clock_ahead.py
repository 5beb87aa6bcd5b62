# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases that are given while a proxy's clock is ahead. If these fail, a board that was asked for for three hours is
kept for a year once the clock is set; or nobody gets one because of a clock that is right.
"""

from __future__ import annotations

import re

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

TOO_LATE = "more than was counted: a lease would end too late once it is set: set the clock; where it is right: hetero "


@pytest.fixture
def clock(monkeypatch, tmp_path):
    return Hand(monkeypatch, tmp_path)


@pytest.fixture
def marked(jackie, clock):
    """Jackie has a lease of three hours, and the clock was believed when the reaper looked."""
    jackie.lease(3)
    assert jackie.turn() == dict(said=[], failed=False)
    return jackie


def ask(site, **given):
    """What a claim of bob's with a lease comes to."""
    request = dict(instance="bob", owner="bob", flavor=FLAVOR, image="debian", ssh_public_key=KEY, lease_hours=3)
    return site.module("board_claim", **dict(request, **given))


def by_hand(clock, seconds):
    """Somebody sets the clock; the kernel forgets then that a time server kept it."""
    clock.synchronised = False
    clock.jump(seconds)


@pytest.mark.parametrize("check", [False, True])
def test_a_lease_that_would_last_a_year_too_long_is_refused(marked, clock, check):
    """Lost: the board, for a year and three hours."""
    by_hand(clock, YEAR)
    refused = ask(marked, check=check)
    assert TOO_LATE + "reap --clock-is-right, once what is to stay has been extended" in refused["msg"]
    assert marked.board_of("bob") is None
    assert not ask(marked, check=check, lease_hours=None).get("failed"), "no lease, no clock"


def test_an_operators_word_gives_leases_again(marked, clock, monkeypatch):
    """Lost: all new leases, for ever, on a node whose clock is right and which has no time server."""
    by_hand(clock, DAY)
    assert ask(marked).get("failed")
    marked.lease(0)
    assert clock_is_right(marked, monkeypatch) == 0
    assert not ask(marked).get("failed")


def test_an_extension_says_that_its_end_may_be_late(marked, clock, monkeypatch):
    """Lost: the way to keep an instance where the clock is right: extend it, then say so; or the knowledge that its
    lease lasts a day longer where it is not.
    """
    by_hand(clock, DAY)
    assert marked.turn()["failed"]
    extended = marked.lease(5)
    assert not extended.get("failed")
    (event,) = marked.events(0, "lease")[-1:]
    # a day, less what the test has taken
    assert re.search(r"(23 h|1 d) more than was counted: it ends too late once that is set", event.text)
    assert event.text in [line["text"] for line in extended["lines"]]
    assert "too late" not in marked.events(0, "lease")[0].text
    assert clock_is_right(marked, monkeypatch) == 0
    assert runs(marked)


def test_an_extension_that_is_refused_changes_nothing(marked, clock):
    """Lost: the ends of leases after a weekend off, which then wait for an operator's word, by a stranger's request."""
    by_hand(clock, DAY)
    mark = marked.state / "state.clock"
    before = mark.read_text()
    assert '"sure": true' in before
    assert marked.lease(5, owner="stranger").get("failed")
    assert not marked.lease(5, check=True).get("failed")
    assert mark.read_text() == before
    assert not marked.lease(5).get("failed")
    assert '"sure": false' in mark.read_text()


@pytest.mark.parametrize("seconds", [4 * 60, -4 * 60])
def test_what_a_time_server_may_correct_refuses_nothing(marked, clock, seconds):
    """Lost: leases, by a clock that is a little off."""
    by_hand(clock, seconds)
    assert not ask(marked).get("failed")
    assert "too late" not in str(marked.lease(5))


def test_a_clock_that_a_time_server_keeps_is_believed(marked, clock):
    """Lost: all leases of a machine that was asleep, or off, for a week, until somebody says what is known."""
    clock.boot()
    clock.jump(7 * DAY)
    assert not ask(marked).get("failed")
    assert "too late" not in str(marked.lease(5))


def test_after_a_boot_leases_wait_for_the_time_server(marked, clock):
    """Lost: the same as by a hand, to a battery that shows tomorrow."""
    clock.boot()
    by_hand(clock, DAY)
    assert "and no time server has set it since the boot: a lease would end too late" in ask(marked)["msg"]
    clock.synchronised = True
    assert not ask(marked).get("failed")


def test_a_refused_lease_leaves_what_the_clock_is_held_against(marked, clock):
    """Lost: what was known of the time, by events that were written at a wrong one."""
    lose_mark(marked)
    by_hand(clock, YEAR)
    for _time in range(2):
        said = ask(marked)["msg"]
        assert "the newest that is written down here is of 20" in said
        assert "a lease would end too late once it is set" in said
        with marked.proxy() as proxy:
            proxy.store.event(1, "note", "at the wrong time")


def test_a_container_that_was_started_again_counts_anew(jackie, clock):
    """Lost: all leases of a proxy in a container: it has the boot of its machine, and seconds of its own."""
    clock.boot()
    clock.count(90 * DAY)
    jackie.lease(3)
    assert not jackie.turn()["failed"]
    clock.synchronised = False
    clock.count(10.0)
    clock.jump(60)
    assert not ask(jackie).get("failed")
    clock.count(2 * HOUR)
    clock.jump(2 * HOUR)
    assert jackie.turn() == dict(said=[], failed=False)
    clock.jump(4 * HOUR)
    clock.count(4 * HOUR)
    assert not jackie.turn()["failed"]
    assert jackie.what_is_there() == jackie.clean()
