# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that learned outlets lost its PDU before it gave an order, and said so: it was not killed, and no outlet was on
by it. Somebody plugs a server in there and switches it on by hand; the run is made again within half an hour, as one
that failed is. If this fails, it cuts that server's power, though "one that is on is never switched".
"""

from __future__ import annotations

import json

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling import learning
from ansible_collections.hetero.compute.tests.unit.boards.cabling.test_learning import learn, quick, verdicts
from ansible_collections.hetero.compute.tests.unit.boards.cabling.test_learning_of_what_was_cut_off_long_ago import (
    by_hand,
    lost_before_the_order,
)

__all__ = ["quick"]


def test_what_was_switched_on_by_hand_since_is_not_switched(lab, monkeypatch):
    """Lost: the power of a server that was plugged in and switched on since, by the operator's own hand."""
    monkeypatch.setattr(learning.Learning, "_listen", lambda self: None)
    failed = lost_before_the_order(lab, monkeypatch)
    by_hand(lab, "on")  # a server is plugged in there
    result = learn(lab, "pdu-a:1", "pdu-a:4")
    now = json.loads((lab.folder / "pdu-a.json").read_text())["outlets"]["4"]
    said = [line["text"] for line in result["lines"] if not isinstance(line, str)]
    assert (verdicts(result)[1][2], now) == ("on", "on"), (failed["msg"], said)
