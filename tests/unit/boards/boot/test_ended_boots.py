# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A boot whose instance is being ended. If these fail, terminate waits for minutes until a board that nobody wants any
more is given up; or somebody else's boot is ended by it.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import ended_boots
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_loop import BootLoop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_progress import (
    ASKED,
    BOOTING,
    DECIDING,
    LISTENING,
    LOOKING,
    SWITCHING,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.soft_reboot import SoftReboot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import end_requests
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.end_requests import EndRequest

CLAIM = SimpleNamespace(instance="jackie-1", request="jackie", created=12.5)


class Work:
    def __init__(self, claim=CLAIM, over=False):
        self.did, self.claim, self.over, self.may_be_ended, self.gives_way = [], claim, over, True, False
        self.instance, self.proxy, self.board = claim and claim.instance, None, SimpleNamespace(name="")

    def say(self, *given):
        self.did.append(given)

    def fail(self, blame, error, **evidence):
        self.did.append((blame, str(error)))
        self.evidence = evidence
        self.over = True


@pytest.fixture(autouse=True)
def moved(monkeypatch):
    """`from`: the board from which the instances came."""
    known = {}
    monkeypatch.setattr(ended_boots, "came_by", lambda _proxy, _claim: known.get("from"))
    return known


def boot_of(work, stage=BOOTING):
    events = dict(cancelled=threading.Event(), has_power=threading.Event())
    return SimpleNamespace(work=work, stage=stage, board=SimpleNamespace(name="board0"), **events)


@pytest.mark.parametrize("name", ["jackie", "jackie-1"])
@pytest.mark.parametrize("created", [[], [12.5]])
@pytest.mark.parametrize("stage", [DECIDING, ASKED, BOOTING, LOOKING])
def test_who_waits_for_it_is_told_why_it_waits_no_longer(stage, created, name):
    boot = boot_of(Work(), stage)
    ended_boots.EndedBoots._on_end_request(boot, EndRequest(name, created))
    why = "jackie-1 is being ended, so its boot is not waited for any longer"
    assert boot.work.did == [("wait", why), (None, f"board0: {why}: ask anew where it is still wanted")]
    assert boot.work.evidence == dict(being_ended=True)
    assert boot.cancelled.is_set()
    assert boot.has_power.is_set(), "who listens for signs of life would hold the call"


def test_one_that_is_stopped_is_told_to_be_so_and_stays_claimed():
    """Lost: trust in the answer, of who is told that the instance is gone."""
    boot = boot_of(Work())
    ended_boots.EndedBoots._on_end_request(boot, EndRequest("jackie", [], stays=True))
    why = "jackie-1 is being stopped, so its boot is not waited for any longer"
    assert boot.work.did == [("wait", why), (None, f"board0: {why}: ask anew where it is still wanted")]
    assert boot.work.evidence == {}


@pytest.mark.parametrize(
    ("boot", "asked"),
    [
        (boot_of(Work()), EndRequest("jo", [])),
        (boot_of(Work()), EndRequest("jackie-2", [])),
        # of that name, and asked for anew since
        (boot_of(Work()), EndRequest("jackie", [11.0])),
        (boot_of(Work(claim=None)), EndRequest("jackie", [])),
        (boot_of(Work(over=True)), EndRequest("jackie", [])),
        # its outlet is being switched: who ends it would find neither on nor off
        (boot_of(Work(), SWITCHING), EndRequest("jackie", [])),
        (boot_of(Work(), LISTENING), EndRequest("jackie", [])),
    ],
)
def test_others_boots_and_those_whose_outlet_is_in_between_go_on(boot, asked):
    """Lost: a boot that its tenant waits for."""
    ended_boots.EndedBoots._on_end_request(boot, asked)
    assert boot.work.did == []
    assert not boot.cancelled.is_set()


@pytest.mark.parametrize(("stage", "ends"), [(BOOTING, True), (DECIDING, True), (SWITCHING, False)])
def test_a_boot_of_nobodys_board_ends_for_who_wants_the_board(stage, ends):
    """Lost: minutes of who has no other board, to the boot of a check."""
    boot = boot_of(Work(claim=None), stage)
    boot.work.gives_way = True
    ended_boots.EndedBoots._on_end_request(boot, EndRequest("jackie", []))
    assert (boot.work.over, boot.cancelled.is_set(), boot.has_power.is_set()) == (ends, ends, ends)
    if ends:
        assert boot.work.did[0][1].startswith("board0: jackie wants it, so its boot is not waited for any longer")
        assert boot.work.evidence == dict(ends="jackie")


class Loop(ended_boots.EndedBoots):
    """A loop of these boots, which ends at the first request that it hears of."""

    def __init__(self, run_folder, **boots):
        super().__init__(SimpleNamespace(config=SimpleNamespace(run_folder=run_folder)))
        self.boots = dict(enumerate(boots.values()))
        for name, boot in boots.items():
            boot.board.name = boot.work.board.name = name
        self.heard = []

    def _asking(self, pdu):
        return []

    _on_status = _on_switched = _on_refused = _on_down = None

    def _post(self, handler, *given):
        self.heard.append((handler, *given))
        self._ended.set()


def test_requests_for_its_boards_are_heard(tmp_path):
    """Lost: the request; or a wipe in RAM, which must go on, for the disk would be half wiped."""
    board0, ram, over = boot_of(Work()), boot_of(Work()), boot_of(Work(over=True))
    ram.work.may_be_ended = False
    loop = Loop(str(tmp_path), board1=ram, board2=over, board0=board0)
    asked = EndRequest("jackie", [12.5])
    with ExitStack() as stack:
        for name in ("board1", "board2", "board0"):
            stack.enter_context(end_requests.asked(str(tmp_path), name, asked))
        loop._listen_for_ends()
    assert loop.heard == [(loop._on_end_request, board0, asked)]


@pytest.mark.parametrize("stays", [False, True])
def test_an_end_is_heard_on_the_board_that_was_left_and_a_stop_is_not(tmp_path, moved, stays):
    """Lost: minutes until an instance ends that moves to a board which does not come up; or the move, to a stop."""
    moved["from"] = "board7"
    board0 = boot_of(Work())
    loop = Loop(str(tmp_path), board0=board0)
    asked, later = EndRequest("jackie", [12.5], stays), EndRequest("jackie-1", [])
    with end_requests.asked(str(tmp_path), "board7", asked), ExitStack() as stack:
        looked = stack.enter_context(end_requests.asked(str(tmp_path), "board0", later)) if stays else None
        loop._listen_for_ends()
    assert looked is None
    assert loop.heard == [(loop._on_end_request, board0, later if stays else asked)]


def test_who_listens_ends_with_the_loop(tmp_path):
    """Lost: the end of the call; it would wait for who listens."""
    loop = Loop(str(tmp_path), board0=boot_of(Work()))
    loop._ended.set()
    with end_requests.asked(str(tmp_path), "board0", EndRequest("jackie", [])):
        loop._listen_for_ends()
    assert loop.heard == []


@pytest.fixture
def held(site, monkeypatch):
    """vm0 and vm1, which a verb has boot in one call. Returns what runs it, and meanwhile another verb on board 0: then
    a step of its boot, of that method, is held up. The call goes on with board 1 after that.
    """
    site.claim(0, 1)

    def run(one, method, meanwhile, verb, **options):
        begun, go, step = threading.Event(), [threading.Event(), threading.Event()], getattr(one, method)

        def slow(first, *more):
            number = getattr(first, "boot", more and more[0]).board.id
            if number == 0:
                begun.set()
            assert go[number].wait(60)
            try:
                return step(first, *more)
            finally:
                go[1].set()

        monkeypatch.setattr(one, method, slow)
        with ThreadPoolExecutor(1) as threads:
            whole = threads.submit(site.run, verb, 0, 1, **options)
            assert begun.wait(60)
            meanwhile()
            before = site.events(0, ("power", "reboot", "error")), site.record(0)
            go[0].set()
            assert "board0: vm0 is being stopped" in whole.result(60)["msg"]
        assert (site.events(0, ("power", "reboot", "error")), site.record(0)) == before

    return run


def test_what_is_judged_of_a_boot_that_was_ended_cuts_nobody(site, held):
    """Lost: the board of who has it by then, cut while it runs."""

    def stopped_and_started():
        assert not site.run("stop", 0, instance="vm0", keep=True)["failed"]
        site.play(0)
        assert not site.run("start", 0, instance="vm0")["failed"]

    site.play(0, stall="tftp")
    site.play(1, stall="tftp", stalls=1)
    held(BootLoop, "_self_test", stopped_and_started, "start", timeout=3)
    assert (site.record(0).state, site.power(0)) == ("running", "on")


def test_a_reboot_by_ssh_that_was_ended_leaves_the_board_as_who_ended_it_has_it(site, held, monkeypatch):
    """Lost: what a stopped board's record says, or the state of who has the board by then."""
    site.run("start", 0, 1)
    monkeypatch.setattr(SoftReboot, "obstacle", lambda self: None)
    for number, soft in enumerate(("nothing", "boots")):
        site.play(number, soft=soft)
    stop = partial(site.run, "stop", 0, instance="vm0", keep=True)
    held(SoftReboot, "run", stop, "reboot", how="soft")
    assert (site.record(0).state, site.power(0), site.record(1).state) == ("power off", "off", "running")
