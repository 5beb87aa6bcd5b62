# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds the state folder is not mounted. reconcile, requests and pdu_mgr leave a board with boot files alone then;
if these fail, cabling boots a stopped tenant's board and cuts it, playbook repair cuts, cleans and wipes one that runs,
and maintenance takes it and prints the modules that do that.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states


@pytest.fixture
def away(jackie):
    """jackie has board 0, and does not answer ssh (her firewall)."""
    jackie.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=0.0, stall="running"))

    def take():
        jackie.state.rename(jackie.folder / "not mounted")
        jackie.state.mkdir()
        return f"see that the file system of {jackie.state} is mounted"

    return take


def test_cabling_does_not_boot_a_stopped_tenants_board(jackie, away):
    """Lost: what a file system loses that is cut in the middle of a boot."""
    assert not jackie.module("instance", kind="board", instance="jackie", state="stopped", timeout=10).get("failed")
    way = away()
    result = jackie.module("board_cabling", boards=[0], timeout=2)
    said = str(result["lines"])
    assert "on, read back" not in said
    assert way in said


def test_repair_refuses_at_its_first_step(jackie, away):
    """Lost: jackie's power, her export, and by a later step of the playbook (board_wipe) her disks."""
    way = away()
    assert way in jackie.module("board_claim", board=0, state="absent", check=True).get("msg", "")
    assert jackie.outlets()["1"] == "on"
    assert jackie.exports()


def test_maintenance_does_not_take_it(jackie, away):
    """Lost: the same, by the modules that maintenance names for a board that is to be free again."""
    way = away()
    assert way in jackie.module("board_maintenance", boards=[0], state="on", reason="fans").get("msg", "")


def test_maintenance_of_an_earlier_release_prints_no_way_that_takes_it(jackie, away):
    way = away()
    with jackie.proxy() as proxy:
        proxy.store.move(0, board_states.MAINTENANCE, "fans")
    text = jackie.module("board_maintenance", boards=[0], state="off")["msg"]
    assert way in text
    assert "board_wipe" not in text
