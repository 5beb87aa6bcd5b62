# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of free boards: if these fail, a check takes a board from somebody, keeps one from a request, or says sound of
what is not.

Tests boards/verbs/measures.py.
"""

from __future__ import annotations

import threading
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import checks
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.checks import CheckRequest, Limits
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import (
    board_claims,
    board_fit,
    maintenance,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import end_requests, job_watch
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.end_requests import EndRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.fake import Fake
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.board_states import CHECKING
from ansible_collections.hetero.compute.tests.unit.boards.disk.conftest import disks, lost, own_mounts
from ansible_collections.hetero.compute.tests.unit.drivers.boot.conftest import KEY

__all__ = ["disks", "own_mounts"]

QUICK = CheckRequest(Limits(memory_mb=2, disk_mb_s=0.001, network_mb_s=0.001), timeout=20)


@pytest.fixture
def site(disks, monkeypatch):
    """Boards whose console says something at each boot."""
    switched = Fake.switched

    def switch(self, board, state):
        if state == "on":
            with open(disks.folder / f"board{board.id}.log", "a", encoding="utf-8") as log:
                log.write("Booting\n")
        switched(self, board, state)

    monkeypatch.setattr(Fake, "switched", switch)
    return disks


def checked(site, number, request=QUICK):
    with site.proxy() as proxy:
        return checks.check(proxy, number, request)


def passed(result):
    return {test["name"]: test["passed"] for test in result["tests"]}


def health(site, number):
    with site.proxy() as proxy:
        return proxy.store.health([number]).get(number)


def is_free(site, number):
    record = site.record(number)
    return (record.state, record.note, record.claim, site.power(number)) == ("power off", "", None, "off")


def test_a_sound_board_is_tested_and_free_again(site):
    """Lost: the board, to its check; or what its disk has."""
    before = site.disk(0).read_bytes()
    result = checked(site, 0)
    assert not result["failed"], result["error"]
    assert passed(result) == dict.fromkeys(("power", "boot", "serial", "ram", "disk", "network"), True)
    assert is_free(site, 0)
    assert site.disk(0).read_bytes() == before
    assert not site.entry(0).parent.exists()
    found = health(site, 0)
    assert (found["score"], found["check"]["passed"]) == (100, True)
    assert found["check"]["figures"]["ram"]["mb"] == 2
    assert found["check"]["figures"]["disk"]["/dev/sda"]["mb_s"] > 0
    assert checks.told(result).startswith("board0: sound (power: pdu-a outlet 5 on, read back; boot: ssh after ")


def test_each_finding_is_told_to_who_follows(site, tmp_path):
    """Lost: all that a check finds, for the minutes that its next test takes: who looks on sees "goes on" only."""
    job = tmp_path / "job"
    job.touch()
    result = checked(site, 0)
    news = job_watch.look(dict(job=str(job), state_db=site.params["state_db"], boards=[0], after=0, wait=0))
    told = [text for _id, _node, _instance, phase, text, _seconds in news["events"] if phase == checks.PHASE]
    assert told == [line["text"] for line in result["lines"] if line["phase"] == checks.PHASE]
    assert [text.partition(":")[0] for text in told[:-1]] == ["power", "boot", "serial", "ram", "disk", "network"]
    assert told[-1] == "6 of 6 tests passed"


def test_what_is_wrong_is_said_and_counts_against_the_board(site):
    """Lost: a failing disk and a silent console, in the word "sound"; or the board, which is still given."""
    site.shells[0].program("smartctl", "exit 8")
    site.config["boards"]["0"]["console"] = str(site.folder / "silent.log")
    site.write()
    slow = Limits(memory_mb=2, disk_mb_s=1e6, network_mb_s=1e6, boot_seconds=0.0)
    result = checked(site, 0, CheckRequest(slow, timeout=20))
    assert result["failed"]
    assert passed(result) == dict(power=True, boot=False, serial=False, ram=True, disk=False, network=False)
    assert "board0 failed: boot: ssh after " in result["error"]
    for said in ("it said nothing in ", "SMART failing: replace it", "less than 1e+06 MB/s", "see its cable"):
        assert said in result["error"], said
    assert is_free(site, 0)
    found = health(site, 0)
    assert (found["score"], found["failures"][0]["what"]) == (0, "check")
    with site.proxy() as proxy:
        assert proxy.store.scores() == {0: 0}


def test_memory_that_does_not_keep_what_is_written_is_found(site):
    """Lost: a tenant's results, to a bit that flips."""
    flips = """case "$2" in
*/m*) /usr/bin/cmp "$@"; exit 1 ;;
*) exec /usr/bin/cmp "$@" ;;
esac"""
    site.shells[0].program("cmp", flips.replace('"$2"', '"$*"'))
    result = checked(site, 0)
    assert passed(result)["ram"] is False
    assert "of 2 MB, something in 2 MB is not kept: replace its memory" in result["error"]
    assert not list((site.folder / "board0" / "tmp").glob("hetero-check*")), "nothing is left there"


def test_a_clock_that_tells_no_time_fails_the_disk(site):
    """Lost: the word of a disk that could not be measured; and a result that is no JSON to who reads it."""
    site.shells[0].program("sed", 'case "$2" in /proc/uptime) echo nan ;; *) exec /usr/bin/sed "$@" ;; esac')
    result = checked(site, 0)
    assert passed(result)["disk"] is False
    assert "what it answers cannot be (its clock says nan and nan)" in result["error"]


def test_what_cannot_be_tested_is_no_fault(site):
    """Lost: the good name of a board without disk and console, or whose RAM image lacks a program."""
    site.config["boards"]["0"].update(disk=[], console=None)
    site.write()

    def lacks(text):
        if "/proc/meminfo" in text:
            raise checks.measures.NoProgram("a script ended with 127 and said: sed", "board0")

    site.shells[0].fail = lacks
    result = checked(site, 0)
    assert not result["failed"], result["error"]
    assert passed(result) == dict(power=True, boot=True, serial=None, ram=None, disk=None, network=True)
    assert health(site, 0)["score"] == 100


def test_a_board_that_goes_away_within_a_test_failed_it(site):
    """Lost: which test brought it down."""
    site.shells[0].fail = lost("blockdev")
    result = checked(site, 0)
    assert result["failed"]
    assert passed(result)["disk"] is False
    assert "the connection to it is lost" in health(site, 0)["failures"][0]["text"]
    assert is_free(site, 0)


def test_a_board_that_does_not_boot_is_kept_out_of_use(site):
    """Lost: the next request, to a board that a check has seen fail."""
    site.play(0, stall="tftp")
    result = checked(site, 0, CheckRequest(QUICK.limits, timeout=1))
    assert result["failed"]
    record = site.record(0)
    assert (record.state, site.power(0)) == ("error", "off")
    assert health(site, 0)["score"] == 0
    assert not site.entry(0).parent.exists()


def test_somebodys_board_is_left_alone(site):
    """Lost: a tenant's work, his root on the board's disk, an operator's note, to a check."""
    site.claim(0)
    site.use(1)
    with site.proxy() as proxy:
        proxy.store.release(1, proxy.store.record(1).claim)
        proxy.store.move(3, "maintenance", "its fan rattles")
        can, why = checks.idle(proxy)
    assert can == [2]
    assert why["board0"] == "vm0 of jo has it"
    assert "not proven to be wiped" in why["board1"]
    assert why["board3"] == "it is in state maintenance (its fan rattles)"
    for number in (0, 1, 3):
        before = site.record(number), health(site, number)
        assert checked(site, number)["failed"]
        assert (site.record(number), health(site, number), site.power(number)) == (*before, "off")


def test_an_operator_is_not_told_to_repair_a_board_that_is_checked(site):
    """Lost: the disks of the board, which a repair wipes, to who wants it out of use."""
    with site.proxy() as proxy:
        proxy.store.move(0, "error", CHECKING)
        proxy.store.move(0, "shutting down", CHECKING)
        said = maintenance.begin(proxy, [0], "its fan rattles", Change(), board_claims.Deadline(1))
    assert "run this again in a minute, once its check has ended" in str(said)
    assert "repair" not in str(said)


def test_a_board_that_was_switched_on_by_hand_is_left_alone(site):
    """Lost: the work of who switched it on."""
    site.cut(0, "on")
    result = checked(site, 0)
    assert result["failed"]
    assert (site.power(0), health(site, 0), site.record(0).state) == ("on", None, "power off")
    with site.proxy() as proxy:
        assert "its outlet was last seen on" in checks.idle(proxy)[1]["board0"]


def test_those_checked_longest_ago_come_first(site):
    with site.proxy() as proxy:
        for number in (0, 2):
            proxy.store.outcome(number, "check", True)
        assert checks.idle(proxy)[0] == [1, 3, 0, 2]
        assert checks.idle(proxy, [2, 3])[0] == [3, 2]


def test_one_whose_check_came_to_nothing_waits_for_the_others(site):
    """Lost: the checks of all other boards, to the one whose RAM image does not boot, which is switched all day."""
    site.play(0, stall="tftp", proxy="its TFTP server does not answer")
    result = checked(site, 0, CheckRequest(QUICK.limits, timeout=1))
    assert (result["blame"], health(site, 0), is_free(site, 0)) == ("proxy", None, True)
    with site.proxy() as proxy:
        assert checks.idle(proxy)[0] == [1, 2, 3, 0]
        assert list(checks.last_checks(proxy)) == [0]


def test_a_dry_run_touches_nothing(site):
    result = checked(site, 0, CheckRequest(QUICK.limits, check=True))
    assert (result["failed"], result["changed"], result["tests"]) == (False, True, [])
    assert result["lines"][0]["text"] == "would boot into RAM, be tested, and be free again"
    assert (site.record(0).state, health(site, 0)) == ("power off", None)


@pytest.mark.parametrize("outlet", ["off", "on"])
def test_a_check_that_was_killed_is_taken_up(site, outlet):
    """Lost: the board, until somebody asks why nobody gets it; or its RAM system, on for ever."""
    with site.proxy() as proxy:
        proxy.store.move(0, "error", CHECKING)
        proxy.store.move(0, "shutting down", CHECKING)
        if outlet == "on":
            proxy.store.event(0, "switch", "pdu-a outlet 5 is to be switched on")
            site.cut(0, "on")
        assert 0 in checks.idle(proxy)[0]
    result = checked(site, 0)
    assert not result["failed"], result["error"]
    assert is_free(site, 0)


def wait_for(look, seconds=20.0):
    end = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("when", ["boot", "test"])
def test_a_request_has_its_board_as_soon_as_the_check_ends(site, when, monkeypatch):
    """Lost: minutes of who has no other board, or the claim. The check says neither good nor bad of the board."""
    said = threading.Event()
    if when == "boot":
        site.play(0, running=600.0)
    else:
        monkeypatch.setattr(checks.measures, "memory", lambda shell, limits, go_on: endless(said, go_on))
    results = []
    thread = threading.Thread(target=lambda: results.append(checked(site, 0, CheckRequest(QUICK.limits, timeout=60))))
    thread.start()
    wait_for(said.is_set if when == "test" else lambda: site.power(0) == "on")
    with site.proxy() as proxy:
        # a check is another process's; here it is another thread's
        monkeypatch.setattr(board_claims.checked_boards.locks, "held_by_another", lambda folder, name: name == "board0")
        flavor = {"name": "tp64.8x8", "memory_mb": 16384, "vcpus": 10, "cpu_arch": "tilepro64"}
        asked = board_fit.ClaimRequest("jackie", "jo", flavor, "demo", KEY, board=0)
        with pytest.raises(NoneFree, match="its health is being checked since"):
            board_claims.present(proxy, asked, Change(True))
        found = board_claims.present(proxy, asked, Change())
    thread.join(20)
    assert [one["board"] for one in found["boards"]] == [0]
    assert (results[0]["failed"], results[0]["wanted_by"]) == (False, "jackie")
    assert (site.power(0), site.record(0).claim.instance, health(site, 0)) == ("off", "jackie", None)
    assert checks.told(results[0]) == "board0: jackie wants it: its check ends"


def endless(said, go_on):
    """A test of memory that only a request ends."""
    said.set()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        go_on()
        time.sleep(0.02)
    raise HeteroError("nobody ended it", "board0")


def test_nobody_waits_for_a_check_that_was_killed(site):
    """Lost: a minute and a half, for the answer that there is none."""
    with site.proxy() as proxy:
        proxy.store.move(0, "error", CHECKING)
        proxy.store.move(0, "shutting down", CHECKING)
        begun = time.monotonic()
        assert not board_claims.checked_boards.given_way(
            proxy, "jackie", [proxy.board(0)], 1, board_claims.Deadline(60)
        )
        assert time.monotonic() - begun < 30


def test_who_asks_for_another_board_does_not_end_a_check(site):
    with site.proxy() as proxy, end_requests.asked(proxy.config.run_folder, "board1", EndRequest("jackie", ())):
        assert not checks.check(proxy, 0, QUICK)["wanted_by"]
