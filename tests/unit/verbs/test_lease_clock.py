# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy's clock that jumps while leases run. If these fail, tenants lose boards and data to a dead battery, a wrong
time server or a slip of the hand; or no lease ever ends again.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import reap
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import node_clock
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR

HOUR, YEAR = 3600.0, 365 * 86400.0


class Hand:
    """Sets the clock of the machine, and switches it off for a while."""

    def __init__(self, patch, folder):
        self._patch, self._folder, self._real, self._boots = patch, folder, time.time, 0
        #: Seconds that the kernel has been up at a boot: of a container, those of its host.
        self.up = 0.0
        #: Whether a time server has set the clock since the boot.
        self.synchronised = True
        patch.setattr(node_clock, "synchronised", lambda: self.synchronised)

    def jump(self, seconds):
        """From where it would be without any jump."""
        self._patch.setattr(time, "time", lambda: self._real() + seconds)

    def set(self, shown):
        self.jump(shown - self._real())

    def boot(self):
        """Another boot, a second old."""
        self._boots += 1
        boot = self._folder / "boot_id"
        boot.write_text(f"boot {self._boots}\n")
        self._patch.setattr(node_clock, "BOOT_ID", str(boot))
        self.count(0.0)
        self._patch.setattr(node_clock, "began", lambda: self.up)

    def count(self, seconds):
        """The kernel has counted so many in this boot, after its first."""
        self._patch.setattr(time, "clock_gettime", lambda which: 1.0 + self.up + seconds)


@pytest.fixture
def clock(monkeypatch, tmp_path):
    return Hand(monkeypatch, tmp_path)


def runs(site):
    return site.what_is_there() == site.running("jackie")


def clock_is_right(site, monkeypatch):
    """`hetero reap --clock-is-right`, as an operator runs it; its exit status."""
    monkeypatch.setattr(reap, "files_of", lambda config: site.params)
    return reap.main([node_clock.BY_WORD])


@pytest.mark.parametrize("seconds", [4 * HOUR, YEAR], ids=["hours", "a year"])
def test_a_clock_that_went_forward_ends_no_lease(jackie, clock, seconds):
    """Lost: every instance with a lease of a proxy whose clock was wrong for the minute between two turns."""
    jackie.lease(3)
    assert jackie.turn() == dict(said=[], failed=False)
    clock.jump(seconds)
    for _turn in range(2):
        result = jackie.turn()
        assert runs(jackie)
        assert result["failed"]
        (said,) = result["said"]
        assert "its lease is over, and it could not be ended: the clock shows 20" in said
        assert "more than was counted: nothing ends by a jump: set the clock; where it is right: hetero reap" in said
    (event,) = jackie.events(0, "reap")
    assert "nothing ends by a jump" in event.text
    clock.jump(0)
    assert jackie.turn() == dict(said=[], failed=False)
    assert runs(jackie)


def test_a_lease_that_was_over_before_the_jump_ends(jackie, clock):
    """Lost: boards that nobody gets back while a clock is wrong."""
    jackie.lease(3)
    assert not jackie.turn()["failed"]
    jackie.expire()
    clock.jump(YEAR)
    assert jackie.turn()["said"] == ["board0: jackie of jackie: its lease is over since 2 min; off, cleaned, free"]
    assert jackie.what_is_there() == jackie.clean()


def test_an_operators_word_ends_what_is_over_since(jackie, clock, monkeypatch):
    """Lost: all lease endings, for ever, on a proxy whose clock was wrong until it was set right."""
    jackie.lease(3)
    assert not jackie.turn()["failed"]
    clock.jump(YEAR)
    assert jackie.turn()["failed"]
    jackie.lease(0)
    assert clock_is_right(jackie, monkeypatch) == 0
    assert runs(jackie), "its lease was taken away before"
    jackie.lease(3)
    assert jackie.turn() == dict(said=[], failed=False)
    clock.jump(YEAR + 4 * HOUR)
    assert jackie.turn()["failed"]
    assert clock_is_right(jackie, monkeypatch) == 0
    assert jackie.what_is_there() == jackie.clean()


def test_a_boot_with_a_dead_battery_ends_nothing(jackie, clock):
    """1970 until the time server answered; then the time is what it is, and leases end by it."""
    jackie.lease(3)
    assert not jackie.turn()["failed"]
    clock.boot()
    clock.set(60.0)
    result = jackie.turn()
    assert (result["failed"], runs(jackie)) == (True, True)
    (said,) = result["said"]
    assert "the clock shows 1970-01-01 00:01 UTC, and was believed at 20" in said
    assert "leases end late: set the clock" in said
    refused = jackie.lease(5)
    assert "a lease would end at once when it is set: set the clock" in refused["msg"]
    request = dict(instance="bob", owner="bob", flavor=FLAVOR, image="debian", ssh_public_key=KEY, lease_hours=5)
    assert "a lease would end at once when it is set" in jackie.module("board_claim", **request)["msg"]
    assert not jackie.lease(0, check=True).get("failed")
    clock.jump(HOUR)
    assert jackie.turn() == dict(said=[], failed=False)
    clock.jump(4 * HOUR)
    assert jackie.turn()["failed"], "four hours at once, in one boot"
    assert runs(jackie)


def test_a_long_weekend_off_is_believed_and_a_year_is_not(jackie, clock):
    jackie.lease(24)
    assert not jackie.turn()["failed"]
    clock.boot()
    clock.jump(YEAR)
    assert jackie.turn()["failed"]
    assert runs(jackie)
    clock.jump(3 * 24 * HOUR)
    assert not jackie.turn()["failed"]
    assert jackie.what_is_there() == jackie.clean()


def test_a_clock_that_went_back_ends_nothing_early(jackie, clock):
    jackie.lease(3)
    assert not jackie.turn()["failed"]
    clock.jump(-YEAR)
    result = jackie.turn()
    assert (result["failed"], runs(jackie)) == (True, True)
    assert "leases end late" in result["said"][0]


def zeros(path):
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [lambda path: path.write_text("{"), os.mkfifo, zeros], ids=["text", "pipe", "device"])
def test_what_was_believed_and_cannot_be_read_ends_nothing(jackie, clock, monkeypatch, make):
    """Lost: an instance, by a file that a power cut or a hand made unreadable; or all lease endings, to a pipe."""
    jackie.lease(3)
    assert not jackie.turn()["failed"]
    (jackie.state / "state.clock").unlink()
    make(jackie.state / "state.clock")
    assert "what it says of the clock cannot be read, so no lease is ended or given" in jackie.lease(3)["msg"]
    jackie.expire()
    result = jackie.turn()
    assert (result["failed"], runs(jackie)) == (True, True)
    assert f"{jackie.state}/state.clock: what it says of the clock cannot be read" in result["msg"]
    with pytest.raises(HeteroError, match="where the clock is right: hetero reap --clock-is-right"):
        reap.turn(jackie.params)
    assert clock_is_right(jackie, monkeypatch) == 0
    assert jackie.what_is_there() == jackie.clean()


# ---- the mark is lost: a proxy that was set up anew, with its database


def lose_mark(site):
    (site.state / "state.clock").unlink()


DAY = 24 * HOUR


@pytest.mark.parametrize("ahead", [HOUR, DAY, 3 * DAY], ids=["an hour", "a day", "three days"])
def test_a_boot_with_tomorrows_time_ends_nothing_until_a_time_server_has_set_it(jackie, clock, ahead):
    """Lost: all instances with a lease, to a battery that shows tomorrow until the time server answers."""
    jackie.lease(0.5)
    assert not jackie.turn()["failed"]
    clock.boot()
    clock.synchronised = False
    clock.jump(ahead)
    result = jackie.turn()
    assert (result["failed"], runs(jackie)) == (True, True)
    assert "more than was counted, and no time server has set it since the boot: nothing ends by a" in result["said"][0]
    clock.jump(60)
    clock.synchronised = True
    assert jackie.turn() == dict(said=[], failed=False)
    clock.jump(ahead)
    assert jackie.turn()["failed"], "a step after it was believed"
    assert runs(jackie)


def test_a_weekend_off_counts_once_a_time_server_has_set_the_clock(jackie, clock):
    """Lost: boards that nobody gets back after a machine was off."""
    jackie.lease(24)
    assert not jackie.turn()["failed"]
    clock.boot()
    clock.synchronised = False
    clock.jump(3 * DAY)
    assert jackie.turn()["failed"]
    assert runs(jackie)
    clock.synchronised = True
    assert not jackie.turn()["failed"]
    assert jackie.what_is_there() == jackie.clean()


def test_without_a_time_server_leases_end_by_the_kernels_count(jackie, clock):
    """Lost: all lease endings, for ever, on a node of a network without a time server."""
    jackie.lease(2)
    assert not jackie.turn()["failed"]
    clock.boot()
    clock.synchronised = False
    clock.jump(DAY)
    assert jackie.turn()["failed"]
    clock.count(3 * HOUR)
    assert not jackie.turn()["failed"]
    assert jackie.what_is_there() == jackie.clean()


def test_a_short_reboot_is_believed_without_a_time_server(jackie, clock):
    """Lost: the ends of leases, late by each reboot."""
    jackie.lease(0.03)
    assert not jackie.turn()["failed"]
    clock.boot()
    clock.synchronised = False
    clock.jump(4 * 60)
    assert not jackie.turn()["failed"]
    assert jackie.what_is_there() == jackie.clean()


def test_what_is_kept_is_never_so_old_that_a_reboot_is_too_much(jackie, clock):
    """Lost: the ends of leases, late by up to an hour with each reboot of a node without a time server."""
    clock.boot()
    jackie.lease(3)
    for past in (0, 120):
        clock.jump(past)
        clock.count(past)
        assert not jackie.turn()["failed"]
    clock.boot()
    clock.synchronised = False
    clock.jump(120 + 4 * 60)
    jackie.expire()
    assert not jackie.turn()["failed"]
    assert jackie.what_is_there() == jackie.clean()


@pytest.mark.parametrize("how", ["claim", "extension", "dry extension"])
def test_a_lease_has_its_clock_held_against_the_moment_it_began(jackie, clock, how):
    """Lost: an instance, to a step of the clock before the reaper's first turn."""
    request = dict(instance="bob", owner="bob", flavor=FLAVOR, image="debian", ssh_public_key=KEY, lease_hours=2)
    assert not (jackie.state / "state.clock").exists()
    if how == "claim":
        assert not jackie.module("board_claim", **request).get("failed")
    else:
        assert not jackie.lease(2, check=how.startswith("dry")).get("failed")
    assert (jackie.state / "state.clock").exists() is (not how.startswith("dry"))
    if how == "extension":
        clock.jump(DAY)
        assert jackie.turn()["failed"]
        assert runs(jackie)


@pytest.fixture
def unmarked(jackie):
    """jackie has a lease of a month, and when the clock was believed last is not known."""
    jackie.lease(30 * 24)
    assert not jackie.turn()["failed"]
    lose_mark(jackie)
    return jackie


def test_a_clock_of_another_year_ends_nothing_where_its_mark_is_lost(unmarked, clock, monkeypatch):
    """Lost: every instance with a lease, on a machine set up anew from a backup whose clock shows another year."""
    clock.jump(10 * YEAR)
    os.utime(unmarked.params["state_db"], (time.time(), time.time()))  # as whoever copied it there left it
    for _turn in range(2):  # the first one writes down what it says, at the wrong time
        result = unmarked.turn()
        assert (result["failed"], runs(unmarked)) == (True, True)
        (said,) = result["said"]
        assert "the newest that is written down here is of 20" in said
        assert "and when it was believed last is not known: nothing ends by a jump: set the clock" in said
    clock.jump(HOUR)
    assert unmarked.turn() == dict(said=[], failed=False)
    assert runs(unmarked)
    clock.jump(HOUR + 2 * 24 * HOUR)
    unmarked.expire()
    assert unmarked.turn()["failed"], "it was believed since, and two days at once are none"
    assert clock_is_right(unmarked, monkeypatch) == 0
    assert unmarked.what_is_there() == unmarked.clean()


def test_an_operators_word_is_enough_where_its_mark_is_lost(unmarked, clock, monkeypatch):
    """Lost: all lease endings, for ever, on a proxy that was off for a year."""
    clock.jump(YEAR)
    assert unmarked.turn()["failed"]
    assert clock_is_right(unmarked, monkeypatch) == 0
    assert unmarked.what_is_there() == unmarked.clean()


def test_a_long_weekend_is_believed_where_its_mark_is_lost(unmarked, clock):
    """Lost: boards that nobody gets back, by a file that was not copied to the new machine."""
    unmarked.lease(24)
    lose_mark(unmarked)
    clock.jump(3 * 24 * HOUR)
    clock.synchronised = False
    assert unmarked.turn()["failed"]
    assert runs(unmarked)
    clock.synchronised = True
    assert not unmarked.turn()["failed"]
    assert unmarked.what_is_there() == unmarked.clean()


def test_a_time_long_over_is_seen_where_its_mark_is_lost(unmarked, clock):
    """Lost: an instance whose lease was given at 1970, once the clock is set."""
    clock.set(60.0)
    assert "a lease would end at once when it is set: set the clock" in unmarked.lease(5)["msg"]
    result = unmarked.turn()
    assert (result["failed"], runs(unmarked)) == (True, True)
    assert "leases end late: set the clock" in result["said"][0]
    clock.jump(0)
    assert unmarked.turn() == dict(said=[], failed=False)


def test_the_newest_claim_counts_where_no_event_is_left(unmarked, clock):
    """Lost: the same as with events."""
    with closing(sqlite3.connect(unmarked.params["state_db"])) as db:
        db.execute("DELETE FROM events")
        db.commit()
    clock.jump(YEAR)
    assert unmarked.turn()["failed"]
    assert runs(unmarked)


def test_a_new_proxy_believes_its_clock(site, clock):
    """Lost: all leases of a proxy that was just set up, for there is nothing to hold its clock against."""
    with site.proxy():
        pass
    assert site.turn() == dict(said=[], failed=False)
    assert (site.state / "state.clock").exists()
    clock.jump(HOUR)
    assert site.turn() == dict(said=[], failed=False), "nothing is there that could end"


def test_a_container_that_is_a_proxy_was_not_up_for_as_long_as_its_host(jackie, clock):
    """Lost: every lease on a proxy in a container, once it was restarted: its clock would be late by its host's."""
    jackie.lease(3)
    assert not jackie.turn()["failed"]
    clock.up = YEAR
    clock.boot()
    assert not jackie.lease(4).get("failed")
    assert jackie.turn() == dict(said=[], failed=False)


def test_when_this_boot_began_is_read_of_process_1(monkeypatch, tmp_path):
    """Lost: the same, by a field that is another where the name of process 1 has blanks or brackets."""
    stat = tmp_path / "stat"
    fields = [str(number) for number in range(3, 53)]
    fields[22 - 3] = str(7 * os.sysconf("SC_CLK_TCK"))
    stat.write_text(f"1 (init) 9 (x)) {' '.join(fields)}\n")
    monkeypatch.setattr(node_clock, "FIRST", str(stat))
    assert node_clock.began() == 7.0
