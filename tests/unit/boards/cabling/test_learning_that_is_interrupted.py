# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who sees that he has named a wrong outlet ends the play with Ctrl-C. What is on is finished; if this fails, the next
outlets, of which nobody knows what they feed, are switched on all the same, one after the other, with nobody there.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling import learning
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import askers
from ansible_collections.hetero.compute.tests.unit.boards.cabling.test_learning import learn, quick, verdicts

__all__ = ["quick"]


class Asker:
    """Who is there until he is silent, and gone `left` looks later."""

    def __init__(self):
        self.silent, self.left = False, 3

    @property
    def is_there(self):
        return not self.silent

    @property
    def is_gone(self):
        self.left -= self.silent
        return self.left < 0


@pytest.mark.parametrize("comes_back", [False, True])
def test_no_further_outlet_is_switched_on_once_nobody_waits(lab, monkeypatch, comes_back):
    """Lost: what must not get power, named by a slip, although the slip was seen in time."""
    asker, look = Asker(), learning.Learning._look

    def ended_meanwhile(self, finding):
        asker.silent = True
        look(self, finding)
        asker.silent = not comes_back

    monkeypatch.setattr(askers, "_asker", asker)
    monkeypatch.setattr(learning.Learning, "_listen", lambda self: None)
    monkeypatch.setattr(learning.Learning, "_look", ended_meanwhile)
    result = learn(lab, "pdu-a:1-3")
    assert lab.on == []
    if comes_back:
        assert sorted(result["wiring"]) == [0, 7, 9]
        return
    assert lab.switched() == [
        "pdu-a outlet 1 is to be switched on for the cabling check",
        "pdu-a outlet 1 was switched off again",
    ]
    assert [verdict for *_where, verdict, _found in verdicts(result)] == ["skipped"] * 3
    assert result["outlets"][1]["text"].startswith("not tested: nobody waits for it any more (the play was ended")
