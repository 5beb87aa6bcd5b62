# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board of which nothing is heard. If these fail, whoever waits for it learns after minutes that the proxy's own DHCP
is stopped; or a sound board is out of use for it; or waits as long for one whose plug is out as for one that boots.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import boot_progress, silent_boots
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.driver import FIRMWARE, KERNEL, TFTP
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.fake import Fake
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import Wire

FAULT = "DHCP 127.0.0.1: it gives board0 no address"


@pytest.fixture
def quick(site, monkeypatch):
    monkeypatch.setattr(silent_boots, "EARLY", 0.2)
    site.claim(0)
    return site


def waits(site):
    return [event.text.partition("; ")[2] for event in site.events(0, ["wait"])]


def test_a_fault_of_the_proxy_is_said_while_the_board_is_silent(quick):
    quick.play(0, stall="tftp", proxy=FAULT)
    result = quick.run("start", 0, timeout=1)
    assert waits(quick) == [f"the proxy itself fails: {FAULT}"], "said once a boot"
    assert (result["blame"], quick.power(0)) == ("proxy", "on")
    assert FAULT in result["msg"]


@pytest.mark.parametrize("retries", [0, 1])
def test_a_fault_that_is_mended_meanwhile_costs_no_board(quick, monkeypatch, retries):
    """Its firmware asked while nobody answered; it is tried again, and the last time the proxy is blamed."""
    quick.play(0, stall="tftp")
    asked = []

    def self_test(self, board, system):
        asked.append(board.name)
        return [FAULT] if len(asked) % 2 else []

    monkeypatch.setattr(Fake, "self_test", self_test)
    result = quick.run("start", 0, timeout=1, retries=retries)
    assert (result["blame"], quick.record(0).state) == ("proxy", "booting")
    assert FAULT in result["msg"]
    assert waits(quick) == [f"the proxy itself fails: {FAULT}"] * (retries + 1)


def test_that_the_proxy_serves_is_said_too(quick):
    quick.play(0, stall="tftp")
    assert quick.run("start", 0, timeout=1, retries=0)["blame"] == "board"
    assert waits(quick) == [silent_boots.SERVES]


def test_a_board_that_is_heard_needs_no_such_look(quick, monkeypatch):
    """Lost: time of a proxy on which many boards boot."""
    monkeypatch.setattr(Fake, "self_test", lambda self, board, system: pytest.fail("looked at"))
    quick.play(0, running=0.6)
    assert not quick.run("start", 0)["failed"]
    assert waits(quick) == []


def test_a_board_that_asks_and_gets_no_answer_is_looked_into_as_soon(quick, monkeypatch):
    """Lost: minutes, where DHCP is stopped: the board is heard well, and nobody answers it."""
    real = Fake.watch

    @contextmanager
    def unanswered(self, boards, seen):
        with real(self, boards, lambda *given: seen(*given) if given[1] == FIRMWARE else None):
            yield

    monkeypatch.setattr(Fake, "watch", unanswered)
    quick.play(0, stall="kernel", proxy=FAULT)
    result = quick.run("start", 0, timeout=1)
    assert result["blame"] == "proxy"
    (event,) = quick.events(0, ["wait"])
    assert event.text.startswith("it asks for an address, and has fetched nothing for ")
    assert event.text.endswith(f"; the proxy itself fails: {FAULT}")


# ---- a board that asks for nothing


def test_a_board_that_asks_for_nothing_is_not_waited_for_as_one_that_boots(quick, monkeypatch):
    """Lost: ten minutes of whoever asked for it, and of everybody who could have had another board."""
    monkeypatch.setattr(Fake, "asks_within", 0.5)
    quick.play(0, stall="tftp")
    result = quick.run("start", 0, timeout=120, retries=1)
    assert (result["blame"], quick.record(0).state) == ("board", "error")
    assert "no boot request within " in result["msg"]
    assert ", twice" in result["msg"]
    (event, _again) = quick.events(0, ["wait"])
    assert event.text.startswith("nothing is heard of it since ")
    assert ", and its first boot request is awaited for 0 s; " in event.text


def test_a_board_that_boots_has_its_whole_time(quick, monkeypatch):
    """Lost: each board whose root takes longer to be mounted than its firmware takes to ask."""
    monkeypatch.setattr(Fake, "asks_within", 0.3)
    quick.play(0, running=1.5)
    assert not quick.run("start", 0)["failed"]


def test_a_board_has_as_long_as_its_wiring_says(quick, monkeypatch):
    """Lost: a server whose firmware tests its memory for minutes."""
    with quick.proxy() as proxy:
        driver, board = Fake(proxy), proxy.boards[0]
        assert driver.request_limit(board) == Fake.asks_within
        monkeypatch.setattr(proxy, "wiring", lambda board: Wire(request_timeout=400.0))
        assert driver.request_limit(board) == 400


class Work:
    """A board's work, with its driver."""

    def __init__(self, over=False):
        self.over, self.did, self.board, self.driver = over, [], SimpleNamespace(name="board0"), self
        self.system = SimpleNamespace(root="nfs")

    def request_limit(self, board):
        return 60.0

    def self_test(self, board, system):
        assert system is self.system
        return ["DHCP is down"]

    def say(self, *given):
        self.did.append(given)


class Loop(silent_boots.SilentBoots):
    """A loop whose inbox is kept."""

    _all_works = _asking = _on_down = _on_refused = _on_status = _on_switched = None

    def __init__(self):
        self.got = []

    def _post(self, handler, *given):
        self.got.append((handler, *given))


def boot_of(work, **more):
    boot = boot_progress.Boot(work)
    vars(boot).update({"stage": boot_progress.BOOTING, "powered": 100.0, "tries": 1, **more})
    return boot


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(silent_boots, "time", SimpleNamespace(monotonic=lambda: 111.2))


@pytest.mark.parametrize(
    ("ended", "more", "over", "looks", "listens"),
    [
        (False, {}, False, True, True),
        (False, {"kinds": {FIRMWARE: 1.0}}, False, True, True),
        (True, {}, False, False, False),
        (False, {"kinds": {TFTP: 1.0}}, False, False, True),
        (False, {"strangers": {("x", "y"): 1.0}}, False, False, True),
        (False, {}, True, False, True),
        (False, {"tries": 0}, False, True, False),
    ],
)
def test_the_proxy_looks_at_itself_where_nothing_is_heard(clock, ended, more, over, looks, listens):
    """Lost: minutes of a wait for a board that this node does not serve; or its time for boards that are well."""
    loop, boot, limits = Loop(), boot_of(Work(over), **more), []
    watching = SimpleNamespace(wait=lambda seconds: limits.append(seconds) or ended)
    loop._listen_for_requests(boot, watching)
    assert loop.got == [(loop._on_early, boot, watching, ["DHCP is down"], 60.0)] * looks + [
        (loop._on_no_request, boot, watching)
    ] * (listens and not ended)
    assert 5 <= limits[0] <= 20, "soon, and not before a firmware can ask"
    assert limits[1:] == [pytest.approx(48.8)] * listens


@pytest.mark.parametrize("faults", [[], ["DHCP is down", "nfsd, too"]])
@pytest.mark.parametrize(
    ("more", "over", "said"),
    [
        ({}, False, "nothing is heard of it since 11 s, and its first boot request is awaited for 60 s"),
        ({"kinds": {FIRMWARE: 1.0}}, False, "it asks for an address, and has fetched nothing for 11 s"),
        ({"kinds": {TFTP: 1.0}}, False, None),
        ({"asked": {KERNEL: 1.0}}, False, None),
        ({"stage": boot_progress.SWITCHING}, False, None),
        ({"watching": None}, False, None),
        ({}, True, None),
    ],
)
def test_who_waits_learns_whether_this_node_is_the_reason(clock, faults, more, over, said):
    """Lost: what to mend while the board still waits; or a line about a board that is well by now."""
    watching = threading.Event()
    boot = boot_of(Work(over), **{"watching": watching, **more})
    Loop._on_early(boot, watching, faults, 60.0)
    if not said:
        assert (boot.work.did, boot.early) == ([], [])
        return
    found = f"the proxy itself fails: {'; '.join(faults)}" if faults else silent_boots.SERVES
    assert boot.work.did == [("wait", f"{said}; {found}")]
    assert boot.early == faults


@pytest.mark.parametrize(
    ("more", "over", "ends"),
    [
        ({}, False, True),
        ({"kinds": {FIRMWARE: 1.0}}, False, False),
        ({"asked": {KERNEL: 1.0}}, False, False),
        ({"strangers": {("x", "y"): 1.0}}, False, False),
        ({"stage": boot_progress.SWITCHING}, False, False),
        ({"watching": None}, False, False),
        ({}, True, False),
    ],
)
def test_only_a_board_that_asked_for_nothing_is_given_up(more, over, ends):
    """Lost: a boot that is on its way, at the end of the time for its first request."""
    watching = threading.Event()
    Loop._on_no_request(boot_of(Work(over), **{"watching": watching, **more}), watching)
    assert watching.is_set() is ends
