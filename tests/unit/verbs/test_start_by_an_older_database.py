# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A backup of the database is put back which is from a time when jackie was stopped; she runs since, and her claim's
own record says so. If this fails, her next start or request, which leaves a board at work alone, cuts its power.
"""

from __future__ import annotations

import shutil
import sqlite3

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.quick_looks import quick_looks
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import boot, found, reconcile, record, stop
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty

__all__ = ["hasty"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    quick_looks(monkeypatch)


@pytest.fixture
def put_back(jackie):
    """A function that puts the older database back; jackie hangs."""
    assert not stop(jackie).get("failed")
    copy = jackie.folder / "copy.db"
    with sqlite3.connect(jackie.params["state_db"]) as db, sqlite3.connect(copy) as to:
        db.backup(to)
    assert not boot(jackie).get("failed")
    hangs(jackie, 0)

    def put():
        for path in jackie.state.glob("state.db*"):
            path.unlink(missing_ok=True)  # whoever had the database open last takes it along
        shutil.copy(copy, jackie.params["state_db"])

    return put


@pytest.mark.parametrize("older", ["", "older", "older, reconcile"])
def test_who_is_at_work_is_not_cut_by_a_start(jackie, put_back, older):
    """Lost: what jackie does; her sshd hangs, as it does where a machine swaps."""
    if older:
        put_back()
    told = reconcile(jackie) if "reconcile" in older else None
    before = [event.text for event in jackie.events(0, "power")]
    assert '"running"' in record(jackie).read_text()
    assert jackie.record(0).state == ("power off" if older == "older" else "running"), told and found(told)
    result = boot(jackie)
    after = [event.text for event in jackie.events(0, "power")]
    assert after == before, (jackie.record(0).state, after, told and found(told), result.get("msg"))
    assert "its tenant's work goes on" in result["msg"]


def test_her_stop_comes_into_her_record(jackie, put_back):
    """Lost: the way out of what is refused because she runs by her record, which no later stop would correct."""
    put_back()
    assert '"running"' in record(jackie).read_text()
    assert not stop(jackie).get("failed")
    assert '"power off"' in record(jackie).read_text()


def test_a_hard_reboot_boots_her(jackie, put_back):
    """Lost: the way out that is printed where her board is left alone."""
    put_back()
    assert "how=hard" in boot(jackie)["msg"]
    before = len(jackie.events(0, "power"))
    jackie.module("tilera_boot", boards=[0], state="rebooted", how="hard", instance="jackie", timeout=1, retries=0)
    assert "on → off → on, read back" in jackie.events(0, "power")[before].text
