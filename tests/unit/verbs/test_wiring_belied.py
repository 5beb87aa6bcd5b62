# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wiring against what is seen of the boards themselves. If these fail, reconcile, or a word that it offers, has the
power of a tenant's running board cut, by an outlet that the wiring gives to another board.
"""

from __future__ import annotations

import json
import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import (
    boot,
    found,
    is_refused,
    reconcile,
    stop,
    swap,
)


@pytest.fixture
def tenants(jackie):
    """Jackie on board 0, Carol on board 1, both running."""
    assert not any(result.get("failed") for result in jackie.provision("carol"))
    return jackie


@pytest.mark.parametrize("stopped", [True, False])
def test_no_word_takes_the_outlet_of_one_that_runs_by_it(tenants, stopped):
    """Lost: Carol's power, by the word that reconcile offered for Jackie, who is off, and by her next verb."""
    if stopped:
        assert not stop(tenants).get("failed")
    else:
        tenants.cut(0)
    boards = json.loads((tenants.folder / "proxy.json").read_text())["boards"]
    for board, other in ((0, 1), (1, 0)):
        tenants.wire(board, outlet=boards[str(other)]["outlet"], fake=dict(boards[str(board)]["fake"], feeds=[other]))
    for word in ([], ["jackie"], ["jackie", "carol"], []):
        result = reconcile(tenants, adopt=word)
        said = " ".join(text for board in (0, 1) for text, _done in found(result, board))
        assert "board1 answers while the outlet of its wiring is off, so no word is taken for that wiring" in said
        assert "adopt=" not in said
        assert result["not_adopted"] == word
    is_refused(boot(tenants, "rebooted", how="hard"), "pdu-a outlet 2")
    assert boot(tenants)["failed"]
    assert tenants.outlets() == {"1": "off", "2": "on"}


LOSSES = ["the claim", "claim and record", "database and records", "old database, no records"]


@pytest.mark.parametrize("silent", [False, True], ids=["answers", "silent"])
@pytest.mark.parametrize("lost", LOSSES)
def test_what_may_feed_a_board_of_lost_claims_is_not_switched(ten, lost, silent):
    """Lost: Jackie's power, to a reconcile after her claim was lost and outlets were swapped in the wiring."""
    assert not any(result.get("failed") for result in [*ten.provision("bob"), *ten.terminate("bob")])
    backups.make(ten.params["state_db"])
    copy = backups.copies(ten.params["state_db"])[-1]
    assert not any(result.get("failed") for result in ten.provision())
    if "claim" in lost:
        with ten.proxy() as proxy:
            proxy.store._db.write("DELETE FROM claims")
    else:
        for path in ten.state.glob("state.db*"):
            path.unlink()
        if lost.startswith("old"):
            shutil.copy(copy, ten.params["state_db"])
        shutil.rmtree(ten.state / "backups")
    if "record" in lost:
        shutil.rmtree(ten.state / "claims")
    swap(ten, 0, 2)
    if silent:
        wires = json.loads((ten.folder / "proxy.json").read_text())["boards"]
        ten.wire(0, fake=dict(wires["0"]["fake"], stall="running"))
    for check in (True, False, False):
        said = [text for text, done in found(reconcile(ten, check=check), 2) if done is None]
        assert any("it may feed board0: not switched" in text for text in said) or lost == "the claim", said
    assert reconcile(ten, boards=[2])["boards"][0]["name"] == "board2"
    assert ten.outlets()["1"] == "on"
