# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stops whose PDU others have after the boards were looked at, as test_late_cuts.py has it of boots. If these fail,
somebody else's board loses its power, or a sound one is put out of use.
"""

from __future__ import annotations

import threading
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import late_cuts, stops
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_line, presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.bystanders import Bystanders
from ansible_collections.hetero.compute.tests.unit.boards.boot.test_late_cuts import (
    LONG,
    NEVER,
    Running,
    another_has_the_pdu,
    reads,
    until,
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(presence, "QUIET", 0.3)
    monkeypatch.setattr(presence, "PROOF", 6.0)
    monkeypatch.setattr(presence, "LONGEST", 1.0)
    monkeypatch.setattr(presence, "strain", lambda: 1.0)
    monkeypatch.setattr(late_cuts, "FRESH", 1.0)
    monkeypatch.setattr(stops, "FRESH", 1.0)
    monkeypatch.setattr(pdu_line, "IDLE", 0.1)


def test_a_board_on_which_another_key_answers_since_is_not_stopped(site, monkeypatch):
    """Lost: the power of somebody else's board, which came to the address while the PDU was waited for."""
    site.claim(0)
    site.run("start", 0)
    told, looks = threading.Event(), []

    def is_others(_work):
        looks.append(told.is_set())
        assert told.wait(LONG)
        return looks[-1]  # it came while the first look's end was waited for

    monkeypatch.setattr(stops, "is_others", is_others)
    read = reads(monkeypatch)
    verb = Running(site, "stop", keep=True)
    until(lambda: looks and read, verb)
    with another_has_the_pdu(site):
        told.set()
        verb.until("switch", "is to be switched off")
    lines = verb.lines
    assert (site.power(0), verb.result["failed"], looks) == ("on", True, [False, True]), lines


def test_a_neighbour_that_went_down_before_the_cut_was_not_cut_by_it(site, monkeypatch):
    """Lost: a board that is out of use, and a plug that is right, for a neighbour that went down a minute before."""
    site.claim(0, 1)
    site.run("start", 0, 1)
    around, told, looked = Bystanders.before, threading.Event(), threading.Event()

    def before(self, work):
        around(self, work)
        looked.set()
        assert told.wait(LONG)

    monkeypatch.setattr(Bystanders, "before", before)
    # the board that is stopped is silent itself, so that nothing else proves its outlet
    site.later(0, -NEVER)
    read = reads(monkeypatch)
    verb = Running(site, "stop", keep=True)
    until(lambda: looked.is_set() and read, verb)
    with another_has_the_pdu(site):
        told.set()
        verb.until("switch", "is to be switched off")
        site.later(1, -NEVER)  # its system was shut down from inside
        time.sleep(1.0)
    lines = verb.lines
    assert (site.power(0), verb.result["failed"], site.record(0).state) == ("off", False, "power off"), lines
