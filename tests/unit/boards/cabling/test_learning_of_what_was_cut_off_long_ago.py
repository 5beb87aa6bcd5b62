# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that learned outlets was killed; its outlet was then switched off by hand, and feeds a server since. If this
fails, the next run cuts that server's power, though "one that is on is never switched": all it has is an old event.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling import learning
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets
from ansible_collections.hetero.compute.tests.unit.boards.cabling.test_learning import killed, learn, quick, verdicts

__all__ = ["quick"]


def by_hand(lab, state):
    """What module pdu_power does: the session that it has with the PDU, on this node, in the same run folder."""
    with lab.proxy() as proxy:
        settings, secrets = proxy.pdu("pdu-a")
        deadline = Deadline(10)
        with outlets.session("pdu-a", settings, secrets, deadline, str(lab.folder / "run")) as opened:
            outlets.set_outlets(opened, {"4": state}, deadline)


def lost_before_the_order(lab, monkeypatch):
    """A run that learns outlet 4, and whose PDU goes away once it has said that this is off; returns its result."""
    status = learning.Learning._status

    def goes_away(self, work):
        state = status(self, work)
        lab.pdu("pdu-a", hang=True)
        return state

    with monkeypatch.context() as patch:
        patch.setattr(learning.Learning, "_status", goes_away)
        failed = learn(lab, "pdu-a:4")
    assert failed["failed"]
    lab.pdu("pdu-a")
    assert lab.on == []
    return failed


@pytest.mark.parametrize("how", ["switched off by hand", "the PDU was away"])
def test_what_is_on_now_is_not_switched_for_an_event_of_long_ago(lab, monkeypatch, how):
    """Lost: the power of a server that was plugged in and switched on since, by the operator's own hand."""
    monkeypatch.setattr(learning.Learning, "_listen", lambda self: None)
    if how == "the PDU was away":
        # no kill at all: the PDU is lost before the order, and answers again a day later; the outlet was never on
        lost_before_the_order(lab, monkeypatch)
    else:
        assert killed(lab, "pdu-a:4") == [("pdu-a", "4")]
        by_hand(lab, "off")
    with lab.proxy() as proxy:  # a month ago
        proxy.store._db.write("UPDATE events SET time = time - 2600000")
    by_hand(lab, "on")  # a server is plugged in there
    assert lab.on == [("pdu-a", "4")]
    result = learn(lab, "pdu-a:1", "pdu-a:4")
    now = json.loads((lab.folder / "pdu-a.json").read_text())["outlets"]["4"]
    said = [line["text"] for line in result["lines"] if not isinstance(line, str)]
    assert (verdicts(result)[1][2], now) == ("on", "on"), said
