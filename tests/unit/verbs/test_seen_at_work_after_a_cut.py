# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jackie's stop lost its PDU once that had obeyed. Later carol, whose board a verb has seen at work since, shuts her
board down. If this fails, jackie's next stop, or the reaper, says that carol "answered until pdu-a outlet 1 was
switched off", switches the outlet of the stopped board on again, and writes that outlet into carol's record.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.registry import BootDrivers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.tests.unit.verbs.test_killed_before_undone import STOP, told
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import boot, reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty

__all__ = ["hasty"]
MINUTES, DAYS = 900, 3 * 86400
BLAMED = "carol on board1 answered until pdu-a outlet 1 was switched off"


@pytest.mark.parametrize(
    ("seen", "ago"),
    [("start", MINUTES), ("reconcile of her board", MINUTES), ("reconcile", DAYS), ("by nobody", DAYS)],
)
def test_who_was_seen_at_work_after_the_cut_was_not_cut_by_it(jackie, monkeypatch, seen, ago):
    """Lost: jackie's stop, board 0, the right outlet in carol's record. Plugs and wiring are right.

    Of one whom nobody saw it is said that she may have been cut, days later; nothing is switched for that.
    """
    assert not any(result.get("failed") for result in jackie.provision("carol"))
    hangs(jackie, 0)
    switch = Fake.switch

    def last(self, outlets, state):
        switch(self, outlets, state)
        with jackie.proxy() as proxy:
            BootDrivers(proxy).of(proxy.board(0)).switched(proxy.board(0), state)
        jackie.pdu(faults={"hang": True})
        self._hang(self._read())

    with monkeypatch.context() as patch:
        patch.setattr(Fake, "switch", last)
        patch.setattr(pdu_loop, "PDU", 4.0)
        assert jackie.module("instance", timeout=10, **STOP)["failed"]
    jackie.pdu()
    if seen == "start":
        assert "ssh answers with its own host key" in str(boot(jackie, "running", 1, "carol")["lines"])
    elif seen != "by nobody":
        assert not reconcile(jackie, **(dict(boards=[1]) if "her" in seen else {})).get("failed")
    mark = jackie.run_folder / "cuts" / "board0.json"
    kept = json.loads(mark.read_text())
    mark.write_text(json.dumps(dict(kept, at=kept["at"] - ago)))
    with jackie.proxy() as proxy:
        proxy.store._db.write(f"UPDATE events SET time = time - {ago}")
        proxy.store._db.write(f"UPDATE boards SET since = since - {ago}")
    hangs(jackie, 1)  # she has shut it down
    before = json.loads(record(jackie, 1).read_text())["fed"]
    result = jackie.module("instance", timeout=10, **STOP)
    said = told(result), str(result["lines"]), jackie.record(0).state
    assert jackie.outlets()["1"] == "off", said
    assert json.loads(record(jackie, 1).read_text())["fed"] == before, said
    assert (result.get("failed", False), BLAMED in said[1]) == (False, seen == "by nobody"), said
