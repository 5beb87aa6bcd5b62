# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As test_older_than_power.py: a backup from before the first power of jackie's board is put back. Since then her play
was killed while her board booted, a stop of it failed (the PDU stuck), so its record says "error"; the board came up,
and she wrote into her root. If these fail, the record's "error" counts as of one that never had power: her end leaves
the board on and removes her root under it, or her own request removes her work.
"""

from __future__ import annotations

import json
import shutil
import sqlite3

import pytest

from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import KEY
from ansible_collections.hetero.compute.tests.unit.verbs.quick_looks import quick_looks
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopted_unwatched import REQUEST, ask_again, data, verb
from ansible_collections.hetero.compute.tests.unit.verbs.test_older_than_power import is_safe
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import reconcile, record, stop
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty

__all__ = ["hasty"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    quick_looks(monkeypatch)


@pytest.fixture
def made(site):
    """Jackie's root is made, her board never had power; a backup of the database is in copy.db."""
    site.wire(0, fake=dict(tftp=0.0, nfs=300.0, running=300.0))
    image = dict(boards=[0], image="debian", ssh_public_key=KEY, instance="jackie")
    assert not site.module("board_claim", **REQUEST).get("failed")
    assert not site.module("board_image", **image).get("failed")
    with sqlite3.connect(site.params["state_db"]) as db, sqlite3.connect(site.folder / "copy.db") as to:
        db.backup(to)
    return site


def put_back(site):
    """The backup is put back; the claim's own record says "error"."""
    assert json.loads(record(site).read_text())["state"] == "error"
    for path in site.state.glob("state.db*"):
        path.unlink()
    shutil.copy(site.folder / "copy.db", site.params["state_db"])


@pytest.fixture
def older(made):
    assert not made.module("tilera_boot", boards=[0], timeout=10, instance="jackie", wait=False).get("failed")
    made.pdu(faults={"stuck": ["1"]})
    assert stop(made)["failed"]
    made.pdu()
    made.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=0.0))  # it is up by now
    assert made.outlets()["1"] == "on"
    data(made).write_text("her work")
    put_back(made)
    return made


def test_the_end_of_one_who_is_at_work_switches_her_board_off(older):
    """Lost: a board that runs without its root, and is on for nobody; an end that says that all is done."""
    result = verb(older, state="absent")
    said = result.get("failed"), result.get("msg"), [line["text"] for line in result["lines"]]
    assert is_safe(older), said
    assert "never started here" not in str(said), said


def test_her_stop_stops_it_and_keeps_her_root(older):
    """Lost: the stop that she asked for; or her work, by the command that its refusal prints in place of it."""
    stopped = verb(older, state="stopped")
    assert not stopped.get("failed"), stopped["msg"]
    assert (older.outlets()["1"], data(older).exists()) == ("off", True)


@pytest.mark.parametrize("then", ["at once", "power cut", "power cut, reconcile"])
def test_a_root_that_may_have_been_used_stays(older, then):
    """Lost: her work, by her own request for the same, where the image is slow to boot."""
    if "cut" in then:
        older.cut(0)
    told = reconcile(older)["boards"][0]["found"] if "reconcile" in then else None
    result = ask_again(older)
    said = result.get("failed"), result.get("msg"), [line["text"] for line in result["lines"]], told
    assert data(older).exists(), said


def test_who_is_at_work_on_a_board_that_was_on_for_nobody_is_not_cut(made):
    """Lost: somebody's power, where the fault was just that the outlet was on before her first power."""
    made.pdu(board0="on")
    started = made.module("tilera_boot", boards=[0], timeout=10, instance="jackie")
    assert "never started here" in started["msg"]
    put_back(made)
    result = verb(made, state="absent")
    assert not result.get("failed"), result["msg"]
    assert made.outlets()["1"] == "on"
