# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stop lost its PDU, so the board is on and runs; module board_image, which refuses to remove what a board runs from,
goes by the state that the stop left. If this fails, it removes a root under a board at work, and says so as done.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import stop


def test_what_a_board_that_is_on_runs_from_stays(jackie, monkeypatch):
    """Lost: jackie's root, and with it what runs from it."""
    monkeypatch.setattr(pdu_loop, "PDU", 3.0)
    removal = dict(boards=[0], state="absent", instance="jackie")
    assert jackie.module("board_image", **removal).get("failed"), "it is running from it"
    with monkeypatch.context() as patch:
        patch.setattr(Fake, "switch", lambda self, outlets, state: self._hang(dict(faults=dict(hang=True))))
        assert stop(jackie)["failed"]
    assert (jackie.outlets()["1"], jackie.record(0).power) == ("on", "on")
    removed = jackie.module("board_image", **removal)
    assert jackie.root_is_whole(0), removed["lines"]
    assert not stop(jackie).get("failed")
    assert not jackie.module("board_image", **removal).get("failed"), "the way out"
