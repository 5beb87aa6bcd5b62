# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board of which nothing is heard. If these fail, whoever waits for it learns after minutes that the proxy's own DHCP
is stopped; or a sound board is out of use for it.
"""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import boot_loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.driver import FIRMWARE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.fake import Fake

FAULT = "DHCP 127.0.0.1: it gives board0 no address"


@pytest.fixture
def quick(site, monkeypatch):
    monkeypatch.setattr(boot_loop, "EARLY", 0.2)
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

    def self_test(self, board):
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
    assert waits(quick) == [boot_loop.SERVES]


def test_a_board_that_is_heard_needs_no_such_look(quick, monkeypatch):
    """Lost: time of a proxy on which many boards boot."""
    monkeypatch.setattr(Fake, "self_test", lambda self, board: pytest.fail("looked at"))
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
