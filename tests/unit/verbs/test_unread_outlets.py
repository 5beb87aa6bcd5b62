# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outlets of which their PDU does not say whether they are on. If these fail, a root goes under a board that runs, by
an outlet that nobody could read; or one dead plug ends reconcile and cabling of the whole proxy node with a traceback.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import record
from ansible_collections.hetero.compute.tests.unit.verbs.test_gone_boards import gone_board
from ansible_collections.hetero.compute.tests.unit.verbs.test_ways_out import tenants

__all__ = ["tenants"]

#: What drivers http, snmp and fence say of such an outlet, and what driver apc says of one that is switched later.
WORDS = ["unknown (answers 404: Not Found)", "pending"]
VERBS = {
    "reconcile": ("board_reconcile", dict(timeout=5), 1),
    "cabling": ("board_cabling", dict(boards=[1], timeout=2), 1),
    "start": ("tilera_boot", dict(boards=[0], timeout=3), 0),
    "reboot": ("tilera_boot", dict(boards=[0], state="rebooted", how="hard", timeout=3), 0),
}


def tell(site, board, state):
    path = site.folder / "pdu-a.json"
    told = json.loads(path.read_text())
    told["outlets"][str(board + 1)] = state
    path.write_text(json.dumps(told))


@pytest.mark.parametrize("state", WORDS)
def test_a_board_that_is_gone_from_the_file_and_may_have_power_keeps_its_root(tenants, state):
    """Lost: the root under a machine that runs from it and is silent, as its row fell out of the boards file."""
    root = gone_board(tenants)
    record(tenants, 1).unlink()
    tell(tenants, 1, state)
    result = tenants.module("board_reconcile", timeout=5, remove=["board1"])
    assert root.exists(), result["removed"]
    assert result.get("failed")


@pytest.mark.parametrize("state", WORDS)
def test_a_claim_on_a_board_that_may_have_power_is_not_let_go(tenants, state):
    """Lost: the claim and its record, likewise."""
    gone_board(tenants)
    tell(tenants, 1, state)
    result = tenants.module("board_reconcile", timeout=5, forget=["carol"])
    assert record(tenants, 1).exists(), result["ended"]


@pytest.mark.parametrize("state", WORDS)
def test_a_board_without_a_claim_that_may_have_power_keeps_its_root(tenants, state):
    """Lost: the same where the database is older, by the modules that are named for it."""
    with tenants.proxy() as proxy:
        proxy.store._db.write("DELETE FROM claims WHERE board = 1")
        proxy.store._db.write("UPDATE boards SET state = 'power off' WHERE board = 1")
    tell(tenants, 1, state)
    result = tenants.module("board_image", boards=[1], state="absent")
    assert (tenants.state / "board-roots" / "fs_1").exists(), result["boards"]
    assert result.get("failed")


@pytest.mark.parametrize("state", WORDS)
@pytest.mark.parametrize("verb", VERBS)
def test_it_is_said_and_not_a_traceback(jackie, verb, state):
    """Lost: what reconcile mends on all other boards."""
    module, given, board = VERBS[verb]
    tell(jackie, board, state)
    assert f"pdu-a outlet {board + 1} cannot be read: {state}" in json.dumps(jackie.module(module, **given))


def test_an_outlet_that_cannot_be_read_hides_no_other_of_its_pdu(ten):
    """Lost: the check of all other cables of a PDU, for one outlet that it does not know."""
    tell(ten, 1, WORDS[0])
    result = ten.module("board_cabling", boards=[1, 2], timeout=2)
    assert [board["verdict"] for board in result["boards"]] == ["failed", "right"]
