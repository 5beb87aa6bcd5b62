# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A backup of the database is put back which is from between board_image and the first power of jackie's board (boards
of a large request wait for their turn there for minutes). Her play was killed once the board was on; it came up, and
she wrote into her root. The claim's own record says "booting". If these fail, verbs say that she "was never started
here": her stop is refused, and the way that it prints removes her root under her running board, which stays on.
"""

from __future__ import annotations

import shutil
import sqlite3
import time

import pytest

from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import KEY
from ansible_collections.hetero.compute.tests.unit.verbs.quick_looks import quick_looks
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopted_unwatched import REQUEST, ask_again, data, verb
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty

__all__ = ["hasty"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    quick_looks(monkeypatch)


@pytest.fixture
def older(site):
    image = dict(boards=[0], image="debian", ssh_public_key=KEY, instance="jackie")
    assert not site.module("board_claim", **REQUEST).get("failed")
    assert not site.module("board_image", **image).get("failed")
    copy = site.folder / "copy.db"
    with sqlite3.connect(site.params["state_db"]) as db, sqlite3.connect(copy) as to:
        db.backup(to)
    assert not site.module("tilera_boot", boards=[0], timeout=10, instance="jackie", wait=False).get("failed")
    time.sleep(0.2)
    data(site).write_text("her work")
    for path in site.state.glob("state.db*"):
        path.unlink()
    shutil.copy(copy, site.params["state_db"])
    return site


def is_safe(site):
    """Her root is there, or her board is off."""
    return data(site).exists() or site.outlets()["1"] == "off"


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


def test_what_she_runs_from_is_not_removed_after_a_failed_request(older):
    """Module board_image, which refuses by "booting", removes the root once a request of hers has failed."""
    ask_again(older)
    removed = older.module("board_image", boards=[0], state="absent", instance="jackie")
    assert data(older).exists(), (removed.get("msg"), [line["text"] for line in removed["lines"]])


@pytest.mark.parametrize("reconciled", [False, True], ids=["asks at once", "after reconcile"])
def test_a_root_that_may_have_been_used_stays(older, reconciled):
    """Lost: her work, by her own request for the same, after the room lost its power: the image was slow to boot."""
    older.cut(0)
    told = reconcile(older)["boards"][0]["found"] if reconciled else None
    result = ask_again(older)
    said = result.get("failed"), result.get("msg"), [line["text"] for line in result["lines"]], told
    assert data(older).exists(), said
