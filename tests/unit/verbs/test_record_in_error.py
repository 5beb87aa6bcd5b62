# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A backup of the database is put back which is from a time when jackie was stopped and her outlet off. Since then she
ran, and a stop failed (the PDU stuck, or was lost): her board is on and at work, and the claim's own record says
"error" or "shutting down", not "running". If these fail, boards/records/at_rest.py takes that for rest: set-up writes a
file that moves her board, and `hetero restore` exports her root, under the board that runs from it, to the other
address.
"""

from __future__ import annotations

import json
import shutil
import sqlite3

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence.changed_addresses import (
    changed_address,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.restore import restore
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import KEY
from ansible_collections.hetero.compute.tests.unit.verbs.quick_looks import quick_looks
from ansible_collections.hetero.compute.tests.unit.verbs.test_moved_while_booting import said_of_a_move
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import boot, record, stop
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty, lives

__all__ = ["hasty"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    quick_looks(monkeypatch)


@pytest.fixture(params=["stuck", "PDU lost", "control: no failed stop"])
def at_work(request, jackie, monkeypatch):
    """Jackie's board is on and runs; the database is from before, when it was off."""
    assert not stop(jackie).get("failed")
    copy = jackie.folder / "copy.db"
    with sqlite3.connect(jackie.params["state_db"]) as db, sqlite3.connect(copy) as to:
        db.backup(to)
    assert not boot(jackie).get("failed")
    if request.param == "stuck":
        jackie.pdu(faults={"stuck": ["1"]})
        assert "still on" in stop(jackie)["msg"]
    elif request.param == "PDU lost":
        with monkeypatch.context() as patch:
            patch.setattr(pdu_loop, "PDU", 3.0)
            patch.setattr(Fake, "switch", lambda self, outlets, state: self._hang(dict(faults=dict(hang=True))))
            assert stop(jackie)["failed"]
    jackie.pdu()
    for path in jackie.state.glob("state.db*"):
        path.unlink()
    shutil.copy(copy, jackie.params["state_db"])
    assert (jackie.outlets()["1"], lives(jackie, 0), jackie.record(0).state) == ("on", True, "power off")
    return jackie


def test_who_is_at_work_keeps_row_and_export(at_work):
    """Lost: jackie's address, and her root to whoever has the new one."""
    kept = json.loads(record(at_work).read_text())["state"]
    moves = said_of_a_move(at_work)
    rows = (at_work.folder / "tilera_boards").read_text()
    (at_work.folder / "tilera_boards").write_text(rows.replace("10.0.2.1 ", "10.0.2.9 "))
    with at_work.proxy() as proxy:
        said = []
        changed = changed_address(proxy, proxy.board(0))
        clients = [export.clients for export in restore(proxy, said.append)]
    assert (bool(moves), changed is not None, clients) == (True, True, [("10.0.2.1",)]), (kept, said)


def test_a_request_moves_no_export_under_her(at_work):
    """Lost: jackie's NFS root while she works: `provision_instance` again makes ready at the new address."""
    rows = (at_work.folder / "tilera_boards").read_text()
    (at_work.folder / "tilera_boards").write_text(rows.replace("10.0.2.1 ", "10.0.2.9 "))
    result = at_work.module("board_image", boards=[0], image="debian", ssh_public_key=KEY, instance="jackie")
    assert at_work.exports()["1"]["clients"] == ["10.0.2.1"], result.get("msg")
