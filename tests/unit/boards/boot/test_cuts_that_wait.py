# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cuts that wait once more after the last look: for the PDU's lock, where its driver reads without it (snmp, http), and
for a session that was lost over the order. If these fail, a board that came up meanwhile loses its power.
"""

from __future__ import annotations

import threading
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import late_cuts, starts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Busy, Lost
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake as Pdu
from ansible_collections.hetero.compute.tests.unit.boards.boot.test_late_cuts import (
    LONG,
    NEVER,
    RUNS,
    Running,
    another_has_the_pdu,
    cuts,
    left_silent,
)

ASKED = "is to be switched off, and on again"


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(presence, "QUIET", 0.3)
    monkeypatch.setattr(presence, "PROOF", 0.3)
    monkeypatch.setattr(presence, "LONGEST", 1.0)
    monkeypatch.setattr(presence, "strain", lambda: 1.0)
    monkeypatch.setattr(starts, "DRY_PATIENCE", 0.3)
    monkeypatch.setattr(late_cuts, "FRESH", 1.0)


def test_a_board_that_comes_up_while_the_lock_of_a_pdu_with_readers_is_waited_for_is_not_cut(site, monkeypatch):
    """Lost: the power of a board that runs, by snmp or http: the last look is before the lock, which others have."""
    monkeypatch.setattr(Pdu, "readers", True)
    left_silent(site)
    with another_has_the_pdu(site):
        verb = Running(site, "start", timeout=1)
        verb.until("switch", ASKED)
        time.sleep(1.0)
        site.later(0, 2 * NEVER)
        time.sleep(1.0)
    lines = verb.lines
    assert (cuts(site), RUNS in lines) == (0, True), lines


def test_a_board_that_comes_up_while_a_lost_session_is_waited_for_is_not_cut(site, monkeypatch):
    """Lost: the same, by any driver: the PDU hangs up over the order, serves somebody else, and is told it again."""
    switch, login = Pdu.switch, Pdu.login
    lost, over = threading.Event(), threading.Event()

    def switches(self, outlets, state):
        if state == "off" and not lost.is_set():
            lost.set()
            raise Lost("it hung up", self.name, "look at it")
        return switch(self, outlets, state)

    def logs_in(self):
        if lost.is_set() and not over.is_set():
            raise Busy("serves somebody else", self.name, "wait")
        login(self)

    monkeypatch.setattr(Pdu, "switch", switches)
    monkeypatch.setattr(Pdu, "login", logs_in)
    left_silent(site)
    verb = Running(site, "start", timeout=1)
    assert lost.wait(LONG)
    site.later(0, 2 * NEVER)
    time.sleep(2.0)
    over.set()
    lines = verb.lines
    assert (cuts(site), RUNS in lines) == (0, True), lines
