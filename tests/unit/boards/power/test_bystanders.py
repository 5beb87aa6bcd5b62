# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An outlet that feeds another instance's board than its wiring says is switched on again, and not off once more.

Tests boards/power/unseen_cuts.py.
"""

from __future__ import annotations

import fcntl
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import bystanders, unseen_cuts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import ssh
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.fake import Fake


def dark(site, number):
    """The board has stopped answering by itself: its outlet is as it was."""
    site.cut(number)
    site.cut(number, "on")


@pytest.fixture
def swapped(site):
    """Two instances run; the plugs of their boards are swapped then, and board 0 hangs."""
    site.claim(0, 1)
    assert not site.run("start", 0, 1)["failed"]
    site.play(0, feeds=[1])
    site.play(1, feeds=[0])
    dark(site, 0)
    return site


def boots(site, number):
    with site.proxy() as proxy:
        return Fake(proxy)._boot(proxy.board(number))


NOTE = (
    "vm1 on board1 answered until pdu-a outlet 5 was switched off, and is silent since, so that outlet may feed it, "
    "not vm0 on board0"
)


@pytest.mark.parametrize(
    ("verb", "options"), [("stop", {"keep": True}), ("stop", {"ends": True}), ("reboot", {"how": "hard"})]
)
def test_a_tenants_board_that_falls_silent_has_its_power_back_at_once(swapped, verb, options):
    """Lost: another tenant's running board, dark until somebody asks, because the plugs of two boards are swapped."""
    result = swapped.run(verb, 0, **options)
    assert (result["failed"], swapped.power(0), swapped.power(1)) == (True, "on", "on")
    assert NOTE in result["msg"], result["msg"]
    assert "hetero.compute.cabling" in result["msg"]
    assert "the outlet is on again, and what it feeds was without power for" in result["msg"]
    assert boots(swapped, 1)["on"] is not None, "it is fed again"
    assert swapped.record(1).state == "running", "nothing was done to its record"
    told = [event.text for event in swapped.events(1, ("wiring",))]
    assert told == ["lost its power for a moment by pdu-a outlet 5, which the wiring names for board0"]


def test_what_was_learnt_keeps_the_next_verb_from_cutting_either(swapped):
    """Lost: the same tenant's board once more, by the same command typed again; and the other's, by its own outlet."""
    swapped.run("reboot", 0, how="hard")
    before = boots(swapped, 1)
    again = swapped.run("reboot", 0, how="hard")
    assert again["failed"]
    assert "by which vm1 on board1 had power last" in again["msg"], again["msg"]
    assert boots(swapped, 1) == before
    other = swapped.run("stop", 1)
    assert other["failed"]
    assert "vm1 had its power by pdu-a outlet 5 last" in other["msg"], other["msg"]
    assert (swapped.power(0), swapped.power(1)) == ("on", "on")


def test_the_right_wiring_is_believed_once_the_board_shows_its_key(swapped):
    """Lost: the way out: two boards that no verb switches any more although the wiring was corrected."""
    swapped.run("reboot", 0, how="hard")
    for number, outlet in ((0, "6"), (1, "5")):
        swapped.config["boards"][str(number)]["outlet"] = outlet
        swapped.play(number)
    assert not swapped.run("stop", 1)["failed"]
    assert (swapped.power(1), swapped.power(0)) == ("off", "on")


def test_a_board_that_is_silent_by_itself_is_stopped_beside_others_that_run(site):
    """Lost: every stop and reboot of a hung board where others run, by a false alarm."""
    site.claim(0, 1)
    site.run("start", 0, 1)
    dark(site, 0)
    assert not site.run("reboot", 0, how="hard")["failed"]
    dark(site, 0)
    result = site.run("stop", 0)
    assert (result["failed"], site.power(0), site.power(1)) == (False, "off", "on")


def test_boards_of_one_call_prove_nothing_against_each_other(swapped):
    """Lost: a request that cannot be stopped because its own boards fall silent, as they should."""
    result = swapped.run("stop", 0, 1)
    assert "may feed" not in result.get("msg", "")


def test_a_board_on_which_another_verb_works_proves_nothing(swapped, monkeypatch):
    """Lost: the wiring's word, and a verb, because another tenant had his own board rebooted at that moment."""
    with swapped.proxy() as proxy:
        record = proxy.store.record(1)
        watch = bystanders.Bystanders(proxy, [0])
        work = SimpleNamespace(board=proxy.board(0), pdu="pdu-a", outlet="5")
        assert watch.find(work)
        assert [one.board for one in watch.cut(work, [1])] == [1]
        with lock(proxy.config.run_folder, "board1", "reconcile", "test", Deadline(5)):
            assert watch.find(work), "this process, which has its lock, switches only board 0"
            assert [one.board for one in watch.cut(work, [1])] == [1]
        with open(f"{proxy.config.run_folder}/locks/board1", "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # as another process does
            assert watch.cut(work, [1]) == []
            assert not watch.find(work), "and is not looked at"
        watch.find(work)
        later = replace(record, since=1.0)
        monkeypatch.setattr(type(proxy.store), "records", lambda store, ids: {1: later})
        assert watch.cut(work, [1]) == [], "it was rebooted meanwhile"


def test_nobody_is_waited_for_where_no_other_board_runs(site, monkeypatch):
    """Lost: a second of each stop and reboot on a node where nobody else works."""
    monkeypatch.setattr(bystanders.Bystanders, "before", lambda *given: pytest.fail("looked around for nothing"))
    site.claim(0, 1)
    site.run("start", 0)
    assert not site.run("reboot", 0, how="hard")["failed"]
    assert not site.run("stop", 0)["failed"]


def test_a_board_that_proves_its_own_outlet_waits_for_no_other(site, monkeypatch):
    """Lost: a second of each reboot of a board that answers, on a node where others work."""
    monkeypatch.setattr(bystanders.Bystanders, "_fell", lambda *given: pytest.fail("waited for others"))
    site.claim(0, 1)
    site.run("start", 0, 1)
    assert not site.run("reboot", 0, how="hard")["failed"]
    assert not site.run("stop", 0)["failed"]


@pytest.mark.parametrize("by_its_own", [True, False])
def test_a_killed_stop_is_looked_after_but_for_who_was_stopped_since(site, by_its_own):
    """Lost: the power of who fell silent with that outlet; or a stop, because another tenant had his own since."""
    site.claim(0, 1)
    site.run("start", 0, 1)
    with site.proxy() as proxy:
        proxy.store.move(0, "shutting down")
        unseen_cuts.begins(proxy, 0)
        proxy.store.event(0, "switch", "board1 answer: pdu-a outlet 5 is to be switched off")
    site.cut(0)
    if by_its_own:
        site.run("stop", 1)
    else:
        dark(site, 1)
    result = site.run("stop", 0)
    assert (result["failed"], site.power(0)) == ((False, "off") if by_its_own else (True, "on")), result["lines"]
    assert by_its_own or NOTE in result["msg"]


@pytest.fixture
def unseen(site):
    """A process was killed once it had to switch the outlet of board 0 off; boards 1 and 2 answered until then."""
    site.claim(0, 1, 2)
    assert not site.run("start", 0, 1, 2)["failed"]
    with site.proxy() as proxy:
        proxy.store.move(0, "shutting down")
        unseen_cuts.begins(proxy, 0)
        proxy.store.event(0, "switch", "board1, board2 answer: pdu-a outlet 5 is to be switched off")
    site.cut(0)
    return site


def test_who_lives_after_a_cut_was_not_cut_by_it_but_until_its_process_is_over(unseen):
    """Lost: who is cut after that look, as the process waited for its PDU then; or who is said to live while dark."""
    with unseen.proxy() as proxy:
        with open(f"{proxy.config.run_folder}/locks/board0", "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # as the process does that is to switch it
            unseen_cuts.lives(proxy, [1], unseen_cuts.all_of(proxy))
            assert unseen_cuts.of(proxy, 0).left == {1, 2}
        dark(unseen, 2)
        unseen_cuts.lives(proxy, [1, 2], unseen_cuts.all_of(proxy))
        assert unseen_cuts.of(proxy, 0).left == {2}
        unseen_cuts.lives(proxy, [1], unseen_cuts.all_of(proxy))
        assert len(unseen.events(1, ("alive",))) == 1


@pytest.mark.parametrize("since", ["moved", "stopped"])
def test_who_was_not_looked_at_is_said_until_it_lives_or_is_stopped(unseen, since):
    """Lost: the word on who may have been cut, by a second stop; or its worth, where it stays for who was stopped."""
    with unseen.proxy() as proxy:
        proxy.store.move(1, "error", "its boot failed")
        if since == "stopped":
            proxy.store.move(1, "shutting down")
    dark(unseen, 1)
    said = "vm1 on board1 answered until pdu-a outlet 5 was switched off for board0, is silent now, and may have lost"
    for _turn in range(2):
        result = unseen.run("stop", 0)
        assert (result["failed"], unseen.power(0)) == (False, "off")
        assert (said in str(result["lines"])) == (since == "moved"), result["lines"]
        with unseen.proxy() as proxy:
            assert (unseen_cuts.of(proxy, 0) is None) == (since == "stopped")
    assert [event.text.startswith(said) for event in unseen.events(1, ("wiring",))] == [True] * (since == "moved")


def test_a_lost_pdu_counts_for_longer_by_no_clock_of_events(unseen, monkeypatch):
    """Lost: the power of who was cut by a PDU that was gone for a while; or that of nobody, given back after days."""
    ages = []
    with unseen.proxy() as proxy:
        for lost in (False, True):
            if lost:
                unseen_cuts.lost(proxy, 0)
            now = unseen_cuts._now()
            for age in (500, 700, 3700):
                with monkeypatch.context() as patch:
                    patch.setattr(unseen_cuts, "_now", lambda later=now + age: later)
                    ages.append((lost, age, unseen_cuts.of(proxy, 0).seconds is not None))
    assert [(lost, age) for lost, age, counts in ages if counts] == [(False, 500), (True, 500), (True, 700)]


class Slow:
    """A board whose kernel answers only some looks."""

    def __init__(self, *answers):
        self.answers, self.limits = list(answers), []

    def alive(self, board, limit):
        self.limits.append(limit)
        return self.answers.pop(0) if self.answers else False


def fell(site, driver, monkeypatch, off=None):
    with site.proxy() as proxy:
        watch = bystanders.Bystanders(proxy, [0])
        monkeypatch.setattr(watch, "_drivers", SimpleNamespace(of=lambda board: driver))
        return watch._fell(proxy.board(1), off or Deadline(0))


def test_one_answer_of_several_looks_is_life(site, monkeypatch):
    """Lost: the power of a busy board's neighbour, cycled by a lost packet."""
    assert not fell(site, Slow(False, False, False, True), monkeypatch)
    assert fell(site, Slow(), monkeypatch)


def test_looks_take_longer_on_a_busy_node(site, monkeypatch):
    """Lost: boards taken for cut because the node itself had no time to hear them."""
    monkeypatch.setattr(bystanders, "strain", lambda: 3.0)
    slow = Slow()
    assert fell(site, slow, monkeypatch)
    assert slow.limits == [3 * bystanders.EACH] * bystanders.LOOKS


def test_an_answer_by_stored_power_is_no_proof(site, monkeypatch):
    """Lost: a board that was cut, taken for alive because its power supply bridged half a second."""
    monkeypatch.setattr(bystanders, "SETTLED", 0.3)
    off, asked = Deadline(0), []
    driver = SimpleNamespace(alive=lambda board, limit: asked.append(off.spent) or True)
    assert not fell(site, driver, monkeypatch, off)
    assert asked[0] >= 0.3


def timed_out(*given, **named):
    raise TimeoutError


def test_a_refused_connect_is_an_answer_and_a_dead_address_is_none(monkeypatch):
    """Lost: a running board without sshd taken for cut; or one without power taken for alive."""
    assert ssh.alive("127.0.0.1", 5.0, port=1)
    monkeypatch.setattr(ssh.socket, "create_connection", timed_out)
    assert not ssh.alive("127.0.0.1", 0.05)


def test_a_pdu_of_two_names_is_one(site):
    """Lost: the look at a board whose wiring calls the same PDU by its other name."""
    site.config["pdus"]["pdu-c"] = site.config["pdus"]["pdu-a"] = dict(driver="apc", host="10.0.1.5")
    site.config["boards"]["1"]["pdu"] = "pdu-c"
    site.write()
    with site.proxy() as proxy:
        watch = bystanders.Bystanders(proxy, [0])
        assert watch._alike("pdu-c") == watch._alike("pdu-a") == {"pdu-a", "pdu-c"}
        assert watch._alike("pdu-b") == {"pdu-b"}
        assert watch._alike("pdu-z") == {"pdu-z"}
        for port, alike in ((80, {"pdu-a", "pdu-c"}), (23, {"pdu-a", "pdu-c"})):
            proxy.config.pdus["pdu-c"] = dict(driver="apc", host="10.0.1.5", port=port)
            assert bystanders.Bystanders(proxy, [0])._alike("pdu-c") == alike
