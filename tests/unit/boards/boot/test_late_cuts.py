# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards that come up, or go down, while their PDU is waited for: whole boots of played boards.

If these fail, a board is cut, or said to run, by what it showed up to a minute and a half before.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import late_cuts, starts, used_root
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import (
    pdu_line,
    power_proof,
    presence,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.fake import Fake
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake as Pdu

#: What a busy machine may take.
LONG = 60.0
#: Seconds of a played phase that comes only by Site.later.
NEVER = 5000.0
CUT = "pdu-a outlet 5: on → off → on, read back"
RUNS = "already running, ssh answers with its own host key"


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(presence, "QUIET", 0.3)
    monkeypatch.setattr(presence, "PROOF", 0.3)
    monkeypatch.setattr(presence, "LONGEST", 1.0)
    monkeypatch.setattr(presence, "strain", lambda: 1.0)
    monkeypatch.setattr(starts, "DRY_PATIENCE", 0.3)
    monkeypatch.setattr(late_cuts, "FRESH", 1.0)


class Running:
    """A verb in a thread, and its result."""

    def __init__(self, site, verb, **options):
        self.site, self.result = site, {}
        self.thread = threading.Thread(target=self._run, args=(verb, options))
        self.thread.start()

    def _run(self, verb, options):
        self.result = self.site.run(verb, 0, **options)

    def until(self, phase, end, count=1):
        """Wait for so many events of the board with this phase and end of the text."""
        over = time.monotonic() + LONG
        while sum(event.text.endswith(end) for event in self.site.events(0, (phase,))) < count:
            assert self.thread.is_alive(), "it was over before"
            assert time.monotonic() < over
            time.sleep(0.02)

    @property
    def lines(self):
        self.thread.join(LONG)
        assert not self.thread.is_alive(), "it does not end"
        return [line["text"] for line in self.result["lines"]]


def until(so, verb):
    """Wait until it is so, while the verb goes on."""
    over = time.monotonic() + LONG
    while not so():
        assert verb.thread.is_alive(), "it was over before"
        assert time.monotonic() < over
        time.sleep(0.02)


def reads(monkeypatch):
    """The names of the PDUs whose outlets were read since."""
    status, found = Pdu.status, []

    def reads_and_tells(self):
        said = status(self)
        found.append(self.name)
        return said

    monkeypatch.setattr(Pdu, "status", reads_and_tells)
    return found


@contextmanager
def another_has_the_pdu(site):
    """Another verb has it for the block, and goes on with it for longer than what was seen counts."""
    with lock(site.config["run_folder"], "pdu-pdu-a", "power", "jo", Deadline(LONG)):
        yield
        time.sleep(1.5 * late_cuts.FRESH)


def left_silent(site, **fake):
    """A board whose boot another play began, which is gone by now; Site.later lets it come up."""
    site.claim(0)
    site.play(0, **{**dict(tftp=NEVER, nfs=NEVER, running=NEVER), **fake})
    site.run("start", 0, wait=False)
    time.sleep(1.1)


def cuts(site):
    return [event.text for event in site.events(0, ("power",))].count(CUT)


def test_a_board_that_comes_up_while_its_pdu_is_waited_for_is_not_cut(site):
    """Lost: the power of a board that runs and shows its own key, to a rerun that looked before it waited."""
    left_silent(site)
    with another_has_the_pdu(site):
        verb = Running(site, "start", timeout=1)
        time.sleep(1.0)  # the look is over
        site.later(0, 2 * NEVER)
    assert RUNS in verb.lines
    assert (verb.result["failed"], verb.result["changed"], cuts(site)) == (False, False, 0)


@pytest.mark.parametrize("timeout", [1, 8], ids=["long after", "in its time"])
def test_a_board_that_mounts_its_root_while_its_pdu_is_waited_for_is_its_tenants(site, timeout):
    """Lost: what a tenant wrote on a board whose play was killed, and whose link is down, by asking again."""
    left_silent(site, stall="running")
    with another_has_the_pdu(site):
        verb = Running(site, "start", timeout=timeout)
        time.sleep(1.0)
        site.later(0, 2 * NEVER)
    assert verb.lines
    assert (verb.result["failed"], site.power(0), cuts(site)) == (True, "on", 0)
    with site.proxy() as proxy:
        assert proxy.store.has_run(proxy.store.record(0).claim), "its root would be taken back"


@pytest.mark.parametrize("check", [False, True])
def test_a_board_that_goes_down_while_its_pdu_is_waited_for_is_not_said_to_run(site, check):
    """Lost: the truth, and the user's time, who works with a board that hangs since before the PDU answered."""
    site.claim(0)
    site.run("start", 0)
    with another_has_the_pdu(site):
        verb = Running(site, "start", check=check)
        time.sleep(1.0)
        site.later(0, -NEVER)
    assert RUNS not in verb.lines
    assert "does not answer ssh" in " ".join(verb.lines)
    assert (verb.result["failed"], cuts(site)) == (not check, 0)


def test_a_board_that_is_silent_all_the_time_is_asked_once_more_and_begun_again(site, patient):
    """Lost: the boot of a board that hangs, for fear of cutting one that does not."""
    patient(lambda boot: boot.tries == 0)
    left_silent(site, stall="tftp", stalls=1, tftp=0.05, nfs=0.1, running=0.2)
    with another_has_the_pdu(site):
        verb = Running(site, "start", timeout=1)
        time.sleep(1.0)
    assert "ssh answers" in verb.lines
    assert (verb.result["failed"], verb.result["changed"], cuts(site)) == (False, True, 1)


@contextmanager
def cut_late(site, monkeypatch):
    """Another verb gets the PDU while a board is looked at, so that the cut waits; yields once that is asked for."""
    real, told = presence.look, threading.Event()

    def look(*given):
        seen = real(*given)
        assert told.wait(LONG)
        return seen

    monkeypatch.setattr(presence, "look", look)
    monkeypatch.setattr(pdu_line, "IDLE", 0.1)
    begun = time.time()
    verb = Running(site, "start", timeout=1)
    while not (site.record(0).power_seen or 0) > begun:
        assert verb.thread.is_alive(), "it read no outlet"
        time.sleep(0.02)
    with another_has_the_pdu(site):
        told.set()
        verb.until("switch", "is to be switched off, and on again")
        yield verb


def test_a_board_that_comes_up_while_its_cut_is_waited_for_is_not_cut(site, monkeypatch):
    """Lost: the same where the PDU was free at first, and another got it while the board was looked at."""
    left_silent(site)
    with cut_late(site, monkeypatch) as verb:
        site.later(0, 2 * NEVER)
    assert RUNS in verb.lines
    assert (verb.result["failed"], verb.result["changed"], cuts(site)) == (False, False, 0)
    assert (verb.result["diff"], site.record(0).state, site.power(0)) == ([], "running", "on")


def test_a_board_that_mounts_its_root_while_its_cut_is_waited_for_is_its_tenants(site, monkeypatch):
    """Lost: a tenant's work, of whom nothing but the mounted root tells."""
    left_silent(site, stall="running")
    with cut_late(site, monkeypatch) as verb:
        site.later(0, 2 * NEVER)
    assert "the board is left as it is: its outlet is on, and it does not answer ssh" in " ".join(verb.lines)
    assert (verb.result["failed"], site.power(0), cuts(site)) == (True, "on", 0)


def test_a_board_that_is_up_and_slow_while_its_cut_is_waited_for_is_left(site, monkeypatch):
    """Lost: a board that is too busy to prove its key at once; or a verb that asks it for ever."""
    left_silent(site, unproven=True)
    with cut_late(site, monkeypatch) as verb:
        site.later(0, 2 * NEVER)
    assert "has not proven its key" in " ".join(verb.lines)
    assert (verb.result["failed"], site.power(0), cuts(site)) == (True, "on", 0)


def test_a_board_that_stays_silent_while_its_cut_is_waited_for_is_cut(site, monkeypatch, patient):
    """Lost: its boot."""
    patient(lambda boot: boot.tries == 0)
    left_silent(site, stall="tftp", stalls=1, tftp=0.05, nfs=0.1, running=0.2)
    with cut_late(site, monkeypatch) as verb:
        pass
    assert "ssh answers" in verb.lines
    assert (verb.result["failed"], verb.result["changed"], cuts(site)) == (False, True, 1)


@pytest.mark.parametrize("retries", [0, 1], ids=["given up", "tried again"])
def test_a_slow_board_that_comes_up_before_it_is_cut_runs(site, monkeypatch, retries):
    """Lost: a board that was late, taken out of use or booted once more while it runs."""
    judged = threading.Event()
    monkeypatch.setattr(Fake, "self_test", lambda self, board, system: [] if judged.wait(LONG) else ["it hangs"])
    monkeypatch.setattr(pdu_line, "IDLE", 0.1)
    site.claim(0)
    site.play(0, tftp=NEVER, nfs=NEVER, running=NEVER)
    verb = Running(site, "start", timeout=1, retries=retries)
    verb.until("power", "off → on, read back")
    with another_has_the_pdu(site):
        judged.set()
        verb.until("switch", f"is to be switched off{', and on again' if retries else ''}")
        site.later(0, 2 * NEVER)
    assert "ssh answers" in verb.lines
    assert (verb.result["failed"], site.record(0).state, site.power(0), cuts(site)) == (False, "running", "on", 0)


@pytest.mark.parametrize("comes_up", [True, False])
def test_what_comes_up_before_it_is_stopped_may_have_run(site, monkeypatch, comes_up):
    """Lost: a root with a tenant's work in it, taken back as one that nobody ever used."""
    written = []
    monkeypatch.setattr(used_root, "used_since", lambda work, when: bool(written))
    left_silent(site)
    with another_has_the_pdu(site):
        verb = Running(site, "stop", never_ran=True)
        time.sleep(1.0)
        if comes_up:
            written.append("its machine-id")
    assert verb.lines
    assert (verb.result["failed"], site.power(0)) == (False, "off")
    with site.proxy() as proxy:
        assert proxy.store.has_run(proxy.store.record(0).claim) is comes_up


def test_an_outlet_that_its_user_turns_off_while_the_pdu_is_waited_for_feeds_its_board(site, monkeypatch):
    """Lost: a board whose plug is right, said to be fed by another outlet, by what answered before it was off."""
    monkeypatch.setattr(power_proof, "LINGER", 0.3)
    site.claim(0)
    site.run("start", 0)
    with another_has_the_pdu(site):
        verb = Running(site, "start")
        time.sleep(1.0)
        site.cut(0)
    assert "ssh answers" in verb.lines
    assert (verb.result["failed"], site.power(0), site.record(0).state) == (False, "on", "running")
