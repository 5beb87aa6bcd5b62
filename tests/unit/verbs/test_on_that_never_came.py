# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugs of jackie and carol are swapped, jackie's board hangs. Her stop loses the PDU once that has obeyed, so
carol is dark; then her start loses it, or is killed, before the outlet is on. If this fails, the event "is to be
switched on" counts as a switching: the next stop, end and reconcile name nobody, and carol's board stays dark.
"""

from __future__ import annotations

import os
import signal

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.registry import BootDrivers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.tests.unit.verbs.quick_looks import quick_looks
from ansible_collections.hetero.compute.tests.unit.verbs.test_killed_before_undone import END, STOP, told
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty, lives, swapped

__all__ = ["hasty", "swapped"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    quick_looks(monkeypatch)


@pytest.mark.parametrize("how", ["control: no start", "PDU lost", "killed"])
@pytest.mark.parametrize("again", [STOP, END], ids=["stop", "end"])
def test_who_was_cut_is_not_forgotten_by_a_start_that_came_to_nothing(swapped, monkeypatch, how, again):
    """Lost: carol's power, and every word of what took it."""
    hangs(swapped, 0)
    switch = Fake.switch

    def obeys_and_is_lost(self, outlets, state):
        switch(self, outlets, state)
        with swapped.proxy() as proxy:
            BootDrivers(proxy).of(proxy.board(0)).switched(proxy.board(0), state)
        swapped.pdu(faults={"hang": True})
        self._hang(self._read())

    def comes_to_nothing(self, outlets, state):
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        swapped.pdu(faults={"hang": True})
        self._hang(self._read())

    with monkeypatch.context() as patch:
        patch.setattr(pdu_loop, "PDU", 4.0)
        patch.setattr(Fake, "switch", obeys_and_is_lost)
        assert swapped.module("instance", timeout=10, **STOP)["failed"]
        swapped.pdu()
        assert (swapped.outlets()["1"], lives(swapped, 1)) == ("off", False)
        if "control" not in how:
            patch.setattr(Fake, "switch", comes_to_nothing)
            swapped._module("tilera_boot", boards=[0], state="running", instance="jackie", timeout=5)
    swapped.pdu()
    assert swapped.outlets()["1"] == "off"
    result = swapped.module("instance", timeout=10, **again)
    said = told(result) + str([line["text"] for line in result["lines"]])
    assert lives(swapped, 1) or "carol on board1 answered until" in said, (said, told(reconcile(swapped)))
