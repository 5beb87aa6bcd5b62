# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A PDU obeys "off" and is gone for a quarter of an hour, so nobody can look meanwhile whom that cut; the plugs were
swapped, and carol is dark. Here the play that waits for the PDU was killed by who was tired of it, or the node's clock
was set right while it waited. If these fail, the next stop says that all is well, and carol stays dark.
"""

from __future__ import annotations

import json
import os
import signal

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.registry import BootDrivers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.tests.unit.verbs.test_killed_before_undone import STOP, told
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty, lives, swapped

__all__ = ["hasty", "swapped"]


@pytest.mark.parametrize("how", ["error", "clock set forward by an hour", "killed"])
@pytest.mark.parametrize("again", ["stop", "reconcile"])
def test_who_was_cut_has_her_power_back_or_is_told_of(swapped, monkeypatch, again, how):
    """Lost: carol's power, or the word that she may have lost it. Control: an error, and a clock that is right."""
    hangs(swapped, 0)
    switch = Fake.switch

    def last(self, outlets, state):
        switch(self, outlets, state)
        with swapped.proxy() as proxy:  # what the outlet fed is dark
            BootDrivers(proxy).of(proxy.board(0)).switched(proxy.board(0), state)
        swapped.pdu(faults={"hang": True})
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        self._hang(self._read())

    with monkeypatch.context() as patch:
        patch.setattr(Fake, "switch", last)
        patch.setattr(pdu_loop, "PDU", 4.0)
        first = swapped._module("instance", timeout=10, **STOP)
    assert (first is None) == (how == "killed")
    swapped.pdu()
    assert (swapped.outlets()["1"], lives(swapped, 1)) == ("off", False)
    mark = swapped.run_folder / "cuts" / "board0.json"  # a quarter of an hour later
    kept = json.loads(mark.read_text())
    mark.write_text(json.dumps(dict(kept, at=kept["at"] - 900)))
    if how.startswith("clock"):
        with swapped.proxy() as proxy:
            proxy.store._db.write("UPDATE events SET time = time + 3600 WHERE board = 0 AND phase = 'error'")
    result = reconcile(swapped) if again == "reconcile" else swapped.module("instance", timeout=10, **STOP)
    said = told(result) + str([line["text"] for line in result["lines"]])
    if how == "killed":  # nobody knows that the PDU was gone, so she may be silent for another reason
        assert "carol on board1 answered until pdu-a outlet 1 was switched off" in said, said
    else:
        assert lives(swapped, 1), (said, result.get("failed"))
