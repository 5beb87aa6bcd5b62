# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards that wait until fewer boot. If these fail, a rack that boots at once overloads its proxy; or a board is
switched on by what was seen of it minutes ago, or waits for ever.
"""

from __future__ import annotations

import re
import threading
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import boot_loop, queued_boots
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_places import BootPlaces
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import end_requests

#: What a busy machine may take.
LONG = 60.0
TURN = "waits for its turn: no more than {limit} of this proxy node's boards boot at the same time (boots_at_once)"


@pytest.fixture
def rack(site):
    """A function: a proxy of four claimed boards, of which so many boot at once, each for half a second."""

    def make(limit, **fake):
        site.config["boots_at_once"] = limit
        for number in range(4):
            site.play(number, **(fake or dict(tftp=0.2, nfs=0.5, running=0.6)))
        site.claim(*range(4))
        return site

    return make


def loading(site, *numbers):
    """The most boards that were on and had not mounted their root, at any time."""
    spans = []
    for number in numbers:
        times = {event.phase: event.time for event in site.events(number)}
        spans.append((times["power"], times["nfs"]))
    return max(sum(begin <= at < end for begin, end in spans) for at, _end in spans)


def until(what):
    """Wait until it is so."""
    end = time.monotonic() + LONG
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def waits(site, number):
    return [event.text for event in site.events(number, ("wait",))]


def test_no_more_boot_than_may(rack):
    """Lost: a rack's boots, to a proxy that serves all of them at once and none in time."""
    site = rack(2)
    started = site.run("start", *range(4))
    assert not started.get("failed"), started.get("msg")
    assert {board["state"] for board in started["boards"]} == {"running"}
    assert loading(site, *range(4)) <= 2
    waited = [number for number in range(4) if waits(site, number)]
    assert [waits(site, number) for number in waited] == [[TURN.format(limit=2)]] * 2


def test_how_far_all_of_them_are_is_told_while_some_wait(rack, monkeypatch, patient):
    """Lost: whether a rack that takes an hour goes on, to lines of single boards."""
    patient(lambda boot: boot.board.id == 0)
    monkeypatch.setattr(queued_boots, "AGAIN", 0.3)
    site = rack(1)
    site.play(0, stall="tftp")
    monkeypatch.setattr(queued_boots, "EARLY", 0.5)
    site.run("start", *range(4), timeout=3, retries=0)
    told = [text for number in range(4) for text in waits(site, number) if "boards run" in text]
    assert "0 of 4 boards run, 1 boot, 3 wait for their turn" in told
    assert any(text.startswith("1 of 4 boards run, ") for text in told), told
    for text in told:
        running, all_of_them, booting, waiting, *failed = map(int, re.findall("[0-9]+", text))
        assert (all_of_them, running + booting + waiting + sum(failed)) == (4, 4), text


def test_one_board_is_not_counted(rack, monkeypatch):
    """Lost: what a line says, where a request of one board waits for those of others."""
    monkeypatch.setattr(queued_boots, "AGAIN", 0.1)
    site = rack(1)
    with BootPlaces(site.config["run_folder"], 1) as places:
        assert places.take(99)  # another play's board
        thread = threading.Thread(target=site.run, args=("start", 0))
        thread.start()
        until(lambda: waits(site, 0))
        time.sleep(0.6)  # two looks for a place, and a busy machine's rest
    thread.join(LONG)
    assert waits(site, 0) == [TURN.format(limit=1)]


def test_all_boot_at_once_where_nothing_limits_them(rack):
    """Lost: time, where a board waits for nothing."""
    site = rack(0)
    site.run("start", *range(4))
    assert [waits(site, number) for number in range(4)] == [[]] * 4


def test_what_runs_waits_for_nobody(rack):
    """Lost: minutes, where a request of many boards is run again."""
    site = rack(1)
    site.run("start", *range(4))
    events = [len(site.events(number)) for number in range(4)]
    again = site.run("start", *range(4))
    assert not again["changed"]
    assert [len(site.events(number)) for number in range(4)] == events


def test_one_that_asks_for_nothing_holds_nobody(rack, monkeypatch, patient):
    """Lost: a rack, to a few boards whose network cables are out."""
    patient(lambda boot: boot.board.id == 0)
    monkeypatch.setattr(queued_boots, "EARLY", 0.5)
    site = rack(1)
    site.play(0, stall="tftp")
    started = site.run("start", 0, 1, timeout=8, retries=0)
    states = {board["board"]: board["state"] for board in started["boards"]}
    assert states == {0: "error", 1: "running"}
    times = {event.phase: event.time for event in site.events(1)}
    assert times["running"] < next(event.time for event in site.events(0) if event.phase == "error")


def test_one_that_is_ended_while_it_waits(rack):
    """Lost: the time of who terminates an instance whose board waits for its turn."""
    site = rack(1)
    with BootPlaces(site.config["run_folder"], 1) as places:
        assert places.take(99)  # another play's board, which never ends
        done = []
        thread = threading.Thread(target=lambda: done.append(site.run("start", 0)))
        thread.start()
        until(lambda: waits(site, 0))
        claim = site.record(0).claim
        asked = end_requests.EndRequest(claim.instance, [claim.created])
        with end_requests.asked(site.config["run_folder"], "board0", asked):
            thread.join(LONG)
        assert not thread.is_alive()
    assert done[0]["failed"]
    assert "is being ended, so its boot is not waited for any longer" in done[0]["msg"]
    assert site.power(0) == "off"


def test_a_board_that_was_switched_on_while_it_waited(rack, monkeypatch):
    """Lost: what somebody does there who came to power by hand, to a boot that was decided on minutes ago."""
    monkeypatch.setattr(queued_boots, "FRESH", 0.0)
    site = rack(1)
    site.play(0, unproven=True, tftp=0.0, nfs=0.0, running=0.0)
    site.run("stop", 0)
    with BootPlaces(site.config["run_folder"], 1) as places:
        assert places.take(99)
        done = []
        thread = threading.Thread(target=lambda: done.append(site.run("start", 0, timeout=3, retries=0)))
        thread.start()
        until(lambda: waits(site, 0))
        site.cut(0, "on")
        places.leave(99)
        thread.join(LONG)
    assert not thread.is_alive()
    assert site.power(0) == "on"
    assert done[0]["failed"]
    assert site.events(0, ("power",)) == [], "it was switched"


def test_those_of_one_pdu_share_its_session_again(rack, monkeypatch):
    """Lost: a board whose PDU's session was left while it waited."""
    monkeypatch.setattr(queued_boots, "FRESH", 0.0)
    site = rack(1)
    started = site.run("start", *range(4))
    assert {board["state"] for board in started["boards"]} == {"running"}
    assert loading(site, *range(4)) <= 1


def test_two_plays_take_turns(rack):
    """Lost: a request for one board, which would wait for all of a request for a rack."""
    site = rack(1, tftp=0.2, nfs=1.0, running=1.1)
    done = []
    many = threading.Thread(target=lambda: done.append(site.run("start", 0, 1, 2)))
    one = threading.Thread(target=lambda: done.append(site.run("start", 3)))
    with BootPlaces(site.config["run_folder"], 1) as places:
        assert places.take(99)
        many.start()
        until(lambda: all(waits(site, number) for number in range(3)))
        one.start()
        until(lambda: waits(site, 3))
    for thread in (many, one):
        thread.join(LONG)
        assert not thread.is_alive()
    assert not any(result.get("failed") for result in done)
    assert loading(site, *range(4)) <= 1
    power = {number: next(event.time for event in site.events(number, ("power",))) for number in range(4)}
    assert power[3] < max(power.values()), "it was not the last one"


@pytest.mark.parametrize("how", ["hard", "auto"])
def test_a_board_that_is_on_waits_for_nobody(rack, how):
    """Lost: what its tenant does by the time that its turn comes, on a board that was to be cut minutes ago."""
    site = rack(1)
    site.run("start", 0)
    with BootPlaces(site.config["run_folder"], 1) as places:
        assert places.take(99)
        done = []
        thread = threading.Thread(target=lambda: done.append(site.run("reboot", 0, how=how)))
        thread.start()
        thread.join(LONG)
        waited = waits(site, 0)
        places.leave(99)  # or a thread that waits would never end
        thread.join(LONG)
    assert waited == []
    assert not done[0].get("failed"), done[0].get("msg")
    assert site.record(0).state == "running"


def test_a_second_try_counts(rack, monkeypatch):
    """Lost: the limit, to boards whose first boot was silent: they are tried again beside all others that boot."""
    monkeypatch.setattr(queued_boots, "EARLY", 0.3)
    site = rack(1)
    site.play(0, stall="tftp", stalls=1, tftp=0.1, nfs=5.0, running=5.1)
    with BootPlaces(site.config["run_folder"], 1) as places:
        thread = threading.Thread(target=lambda: site.run("start", 0, timeout=6, retries=1))
        thread.start()
        until(lambda: site.events(0, ("power",)))
        until(lambda: places.take(99))  # the first try is silent, and has left its place
        monkeypatch.setattr(queued_boots, "EARLY", LONG)  # on a busy machine the second one seems silent, too
        places.leave(99)
        until(lambda: len(site.events(0, ("power",))) == 2)
        assert not places.take(99)
        thread.join(LONG)
    assert not thread.is_alive()


def test_boots_that_nobody_follows_keep_the_limit(rack, monkeypatch):
    """Lost: the boots of a room after a power cut, to a proxy whose reconcile has them begin and waits for none."""
    monkeypatch.setattr(boot_loop, "UNFOLLOWED", 1.0)
    site = rack(1)
    started = site.run("start", *range(3), wait=False)
    assert not started.get("failed"), started.get("msg")
    first, second, third = sorted(site.events(number, ("power",))[0].time for number in range(3))
    assert (second - first >= 1.0, third - second >= 1.0) == (True, True)
