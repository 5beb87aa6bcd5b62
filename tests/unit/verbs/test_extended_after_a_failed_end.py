# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lease is over, the reaper's PDU is lost before it switches anything, and jackie extends the lease. If this fails,
the next start or request of hers, which leaves a board at work alone, cuts her board's power two seconds later.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.tests.unit.verbs.quick_looks import quick_looks
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import boot
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty

__all__ = ["hasty"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    quick_looks(monkeypatch)
    monkeypatch.setattr(pdu_loop, "PDU", 3.0)


@pytest.mark.parametrize("reaped", [False, True], ids=["start", "reaper, extended, start"])
def test_who_is_at_work_is_not_cut_by_a_start(jackie, monkeypatch, reaped):
    """Lost: what jackie does; her sshd hangs, as it does where a machine swaps."""
    hangs(jackie, 0)
    before = [event.text for event in jackie.events(0, "power")]
    if reaped:
        jackie.expire()
        with monkeypatch.context() as patch:
            patch.setattr(Fake, "switch", lambda self, outlets, state: self._hang(dict(faults=dict(hang=True))))
            (turn,) = jackie.reap()
        assert turn["failed"], turn
        extended = jackie.lease(5)
        assert not extended.get("failed"), extended
        assert jackie.outlets()["1"] == "on"
    result = boot(jackie)
    after = [event.text for event in jackie.events(0, "power")]
    assert after == before, (jackie.record(0).state, after, result.get("msg"))
