# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A start was killed, or lost its PDU, once the outlet was on and before that was read back: the database has the board
as booting, and the last that was seen of its outlet is "off". If this fails, set-up writes a boards file that gives
jackie's board, which is on, another address, and jackie's address to another board.
"""

from __future__ import annotations

import os
import signal

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import preflight
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import found, reconcile, stop


@pytest.mark.parametrize("how", ["killed", "PDU lost"])
def test_a_board_that_may_be_on_keeps_its_row(jackie, monkeypatch, how):
    """Lost: jackie's address."""
    assert not stop(jackie).get("failed")
    switch = Fake.switch

    def last(self, outlets, state):
        switch(self, outlets, state)
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        jackie.pdu(faults={"hang": True})
        self._hang(self._read())

    with monkeypatch.context() as patch:
        patch.setattr(Fake, "switch", last)
        patch.setattr("ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.pdu_loop.PDU", 3.0)
        given = dict(boards=[0], state="running", instance="jackie", timeout=10)
        jackie._module("tilera_boot", **given)
    jackie.pdu()
    assert jackie.outlets()["1"] == "on"
    record = jackie.record(0)
    assert said_of_a_move(jackie), (record.state, record.power, record.note)
    assert not stop(jackie).get("failed")
    assert said_of_a_move(jackie) == [], "the way out"


def said_of_a_move(site):
    """What set-up says against a file that gives board 0 another address, and hers to board 1."""
    rows = (site.folder / "tilera_boards").read_text()
    (site.tftp / "tilera_boards").write_text(rows)
    plan = Plan(
        server="10.0.2.254",
        state_folder=str(site.state),
        tftp_root=str(site.tftp),
        config=str(site.folder / "proxy.json"),
        boards_source="files/tilera_boards",
        boards_text=rows.replace("10.0.2.1 ", "10.0.2.9 ").replace("10.0.2.2 ", "10.0.2.1 "),
    )
    return [str(one) for one in preflight.look(plan).defects if "gives board0" in str(one)]


def test_so_does_one_that_runs_by_another_outlet(jackie):
    """Lost: jackie's address; her board answers and shows its key while the outlet of its wiring is off."""
    jackie.pdu(board0="off")
    told = found(reconcile(jackie))
    record = jackie.record(0)
    assert record.state == "running"
    assert said_of_a_move(jackie), (record.state, record.power, told)
