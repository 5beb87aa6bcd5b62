# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A start was killed once the outlet was on and before that was read back, so what was last seen of the outlet of a
board that boots is "off"; then its row was changed in the boards file. If these fail, the root of jackie, who is at
work, is exported to another address, and her files are served and removed by a file that moved her board.
"""

from __future__ import annotations

import os
import signal

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence.changed_addresses import (
    address_at_work,
    changed_address,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.restore import restore
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import stop


@pytest.fixture
def booting(jackie, monkeypatch):
    """Jackie's board has power, and her start was killed by then; her address is 10.0.2.9 by a new boards file."""
    assert not stop(jackie).get("failed")
    switch = Fake.switch

    def last(self, outlets, state):
        switch(self, outlets, state)
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(Fake, "switch", last)
        assert jackie._module("tilera_boot", boards=[0], state="running", instance="jackie", timeout=10) is None
    assert jackie.outlets()["1"] == "on"
    assert jackie.exports()["1"]["clients"] == ["10.0.2.1"]
    rows = (jackie.folder / "tilera_boards").read_text()
    (jackie.folder / "tilera_boards").write_text(rows.replace("10.0.2.1 ", "10.0.2.9 "))
    return jackie


def test_her_root_is_exported_to_where_she_is(booting):
    """Lost: jackie's root, to whoever has that address, once the proxy node is started anew."""
    with booting.proxy() as proxy:
        said = []
        clients = [export.clients for export in restore(proxy, said.append)]
        assert address_at_work(proxy, proxy.board(0)) == "10.0.2.1", (clients, said)
        assert clients == [("10.0.2.1",)], said


def test_no_verb_touches_her_board(booting):
    """Lost: the boot files at her address, by a verb that looks for her at another one."""
    with booting.proxy() as proxy:
        assert changed_address(proxy, proxy.board(0)) is not None
    assert booting.module("tilera_boot", boards=[0], state="running", instance="jackie", timeout=10).get("failed")
