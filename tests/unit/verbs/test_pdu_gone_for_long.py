# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A PDU obeys "off" and is gone for a quarter of an hour, so nobody can look meanwhile whom that cut: the plugs were
swapped, and carol is dark. If these fail, the next stop, or the reaper, says that all is well, and carol stays dark.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.registry import BootDrivers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.tests.unit.verbs.test_killed_before_undone import STOP, told
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty, lives, swapped

__all__ = ["hasty", "swapped"]


@pytest.mark.parametrize("minutes", [5, 15])
@pytest.mark.parametrize("again", ["stop", "reconcile"])
def test_who_was_cut_has_her_power_back_once_the_pdu_is_there(swapped, monkeypatch, again, minutes):
    """Lost: carol's power."""
    hangs(swapped, 0)
    switch = Fake.switch

    def last(self, outlets, state):
        switch(self, outlets, state)
        with swapped.proxy() as proxy:  # what the outlet fed is dark
            BootDrivers(proxy).of(proxy.board(0)).switched(proxy.board(0), state)
        swapped.pdu(faults={"hang": True})
        self._hang(self._read())

    with monkeypatch.context() as patch:
        patch.setattr(Fake, "switch", last)
        patch.setattr(pdu_loop, "PDU", 4.0)
        first = swapped.module("instance", timeout=10, **STOP)
    assert first.get("failed"), told(first)
    swapped.pdu()
    assert (swapped.outlets()["1"], lives(swapped, 1)) == ("off", False)
    mark = swapped.run_folder / "cuts" / "board0.json"  # so much later
    kept = json.loads(mark.read_text())
    mark.write_text(json.dumps(dict(kept, at=kept["at"] - 60 * minutes)))
    result = reconcile(swapped) if again == "reconcile" else swapped.module("instance", timeout=10, **STOP)
    assert lives(swapped, 1), (told(first), told(result), result.get("failed"))
