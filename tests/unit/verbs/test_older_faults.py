# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards at fault that nobody has, and a database that is older than the fault, or new. If these fail, the next tenant
gets a board that is known to be broken.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.maintenance_records import (
    MaintenanceRecords,
    OutOfUse,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back
from ansible_collections.hetero.compute.tests.unit.verbs.test_maintenance import found, maintenance, on, reconcile

WHY = "no boot request within 41 s, twice"
BY_RECORD = f"in error by its own record ({WHY})"
KEPT = f"kept out of use (error: {WHY}): ansible-playbook hetero.compute.repair -e node=board0 makes it free again"


def at_fault(site, board=0):
    with site.proxy() as proxy:
        proxy.store.move(board, "error", WHY)


def kept(site, board=0):
    """Return the board's own record of being out of use, None without one."""
    path = site.state / "maintenance" / f"board{board}.json"
    return json.loads(path.read_text()) if path.exists() else None


def repair(site):
    """Do what the playbook repair does, without a look at its hardware; return the failures."""
    steps = [
        site.module("tilera_boot", boards=[0], state="stopped", timeout=10),
        site.module("board_image", boards=[0], state="absent"),
        site.module("board_claim", board=0, state="absent"),
    ]
    return [step["msg"] for step in steps if step.get("failed")]


@pytest.fixture
def older(site):
    """Board 0 is at fault since the copy of the database that was put back."""
    with site.proxy() as proxy:
        for board in (0, 1):
            proxy.store.power_seen(board, "off")
    copy = backups.make(site.params["state_db"])
    at_fault(site)
    put_back(site, copy)
    assert site.record(0).state == "power off"
    return site


@pytest.fixture
def anew(site):
    """Board 0 was at fault when the database was lost, of which there is no copy."""
    at_fault(site)
    database = Path(site.params["state_db"])
    for path in database.parent.glob(f"{database.name}*"):
        path.unlink()
    return site


def test_a_look_from_before_the_fault_tells_nothing_of_its_outlet(older):
    """Lost: a board that its fault left on, freed by what an older database has seen of its outlet."""
    with older.proxy() as proxy:
        assert proxy.store.take_out(0) is True
    assert [event.text for event in older.events(0, "state")] == [f"power off → error: {WHY} (by its own record)"]
    assert [(older.record(board).state, older.record(board).power) for board in (0, 1)] == [
        ("error", None), ("power off", "off"),
    ]  # fmt: skip


@pytest.mark.parametrize("lost", ["older", "anew"])
def test_a_board_at_fault_is_given_to_nobody_by_a_database_that_does_not_know_of_it(lost, request):
    """Lost: an hour of a tenant, on a board that stalls at each boot, by the restore of a database."""
    site = request.getfixturevalue(lost)
    (board, _other) = site.module("board_info")["boards"]
    assert board["note"].startswith(f"is in error by its own record: {WHY} (ansible-playbook ")
    (claimed, *_others) = site.provision()
    assert claimed["boards"][0]["board"] == 1
    assert claimed["rejected"]["board0"] == [board["note"]]


@pytest.mark.parametrize("lost", ["older", "anew"])
def test_reconcile_takes_the_fault_from_its_record(lost, request):
    """Lost: the reason why a board is out of use, in status, once its database was put back."""
    site = request.getfixturevalue(lost)
    assert found(reconcile(site, check=True)) == [(BY_RECORD, "would be out of use again"), (KEPT, None)]
    assert site.record(0).state == "power off"
    assert found(reconcile(site)) == [(BY_RECORD, "out of use again"), (KEPT, None)]
    record = site.record(0)
    assert (record.state, record.note) == ("error", WHY)
    assert found(reconcile(site)) == [(KEPT, None)]
    assert repair(site) == []
    assert (site.record(0).state, kept(site)) == ("power off", None)
    assert found(reconcile(site)) == []


def test_its_repair_needs_no_reconcile_first(older):
    """Lost: the word that makes a board free again, which an older database takes for said already."""
    assert repair(older) == []
    assert (older.record(0).state, kept(older)) == ("power off", None)
    assert older.module("board_info")["boards"][0]["note"] == ""


def test_it_gets_no_power_by_an_older_database(older):
    """Lost: the board, or what is beside it, where the fault is in its supply."""
    said = older.module("tilera_boot", boards=[0], state="running", timeout=10)["msg"]
    assert f"is out of use: {WHY}" in said
    assert older.outlets()["1"] == "off"


def test_an_instance_that_ended_since_the_copy_does_not_free_the_board(jackie):
    """Lost: the fault, at the terminate that clears the older database of an instance that ended."""
    copy = backups.make(jackie.params["state_db"])
    assert not any(result.get("failed") for result in jackie.terminate())
    at_fault(jackie)
    put_back(jackie, copy)
    said = f"it is kept out of use for a fault by its own record ({WHY}): jackie has it by the database"
    assert any(text.startswith(said) for text, _done in found(reconcile(jackie)))
    assert not any(result.get("failed") for result in jackie.terminate())
    assert (BY_RECORD, "out of use again") in found(reconcile(jackie))
    assert jackie.record(0).state == "error"


def test_the_fault_of_an_instances_board_has_its_record_once_the_instance_is_elsewhere(site):
    """Lost: the same, for the board from which an instance moved, or whose claim ended while it was at fault."""
    site.provision()
    at_fault(site)
    assert kept(site) is None, "the record of the claim has it"
    with site.proxy() as proxy:
        proxy.store.forget(proxy.store.claim_of("jackie"), "gone")
    assert (kept(site)["state"], kept(site)["reason"]) == ("error", WHY)


def test_a_fault_of_an_earlier_release_gets_its_record(site):
    """Lost: the fault that was seen before the update, at the first copy that is put back."""
    at_fault(site)
    (site.state / "maintenance" / "board0.json").unlink()
    alone = f"in error by the database only ({WHY})"
    assert found(reconcile(site, check=True)) == [(alone, "would be written beside it"), (KEPT, None)]
    assert kept(site) is None
    assert found(reconcile(site)) == [(alone, "written beside it"), (KEPT, None)]
    assert kept(site)["reason"] == WHY


def test_a_fault_by_an_older_database_ends_no_maintenance(site):
    """Lost: an operator's word, and the board under his hands, to a repair: the fault was mended before he gave it."""
    at_fault(site)
    copy = backups.make(site.params["state_db"])
    on(site)
    put_back(site, copy)
    assert site.record(0).state == "error"
    assert "is in maintenance: its fan rattles" in repair(site)[0]
    with site.proxy() as proxy:
        for state in ("error", "shutting down"):
            proxy.store.move(0, state, "another")
            assert kept(site)["state"] == "maintenance"
    reconcile(site)
    assert site.record(0).state == "maintenance"
    assert maintenance(site, "off")["changed"]
    assert kept(site) is None


def test_the_end_of_a_maintenance_by_an_older_database_ends_no_fault(site):
    """Lost: the fault that was seen since, where the copy that was put back has a maintenance that ended."""
    on(site)
    copy = backups.make(site.params["state_db"])
    assert maintenance(site, "off")["changed"]
    at_fault(site)
    put_back(site, copy)
    ended = maintenance(site, "off")
    assert (ended["changed"], ended["boards"][0]["state"]) == (False, "error")
    assert kept(site)["state"] == "error"


def test_a_record_of_an_earlier_release_is_of_maintenance(site):
    """Lost: the open board, at the update: a record named no state then."""
    on(site)
    path = site.state / "maintenance" / "board0.json"
    path.write_text(json.dumps(dict(reason="its fan rattles", since=1.0)))
    assert found(reconcile(site))[0][0].startswith("kept out of use (maintenance: its fan rattles)")


@pytest.fixture
def mended(site):
    """Board 0 was at fault, was repaired, and has jackie running; the database is the copy of the fault's time."""
    at_fault(site)
    copy = backups.make(site.params["state_db"])
    assert repair(site) == []
    assert not any(result.get("failed") for result in site.provision())
    put_back(site, copy)
    record = site.record(0)
    assert (record.state, record.claim, kept(site)) == ("error", None, None)
    return site


def test_a_fault_that_is_over_is_not_written_beside_a_board_whose_tenant_is_not_adopted_yet(mended):
    """Lost: each later start of an instance, to a fault that was mended before it came."""
    with mended.proxy() as proxy:
        assert proxy.store.take_out(0) is False
    assert kept(mended) is None


def test_what_an_adopted_instance_was_started_after_is_over(mended):
    """Lost: the same, where a reconcile before wrote the fault beside the board."""
    folder = mended.state / "maintenance"
    folder.mkdir(exist_ok=True)
    (folder / "board0.json").write_text(json.dumps(dict(reason=WHY, since=1.0, state="error")))
    reconcile(mended)
    assert (mended.record(0).claim.instance, mended.record(0).state) == ("jackie", "running")
    assert kept(mended) is None
    assert not mended.module("tilera_boot", boards=[0], state="stopped", timeout=10).get("failed")
    assert not mended.module("tilera_boot", boards=[0], state="running", timeout=10).get("failed")


@pytest.mark.parametrize("own", [True, False])
def test_a_fault_that_was_written_down_before_a_move_was_cut_off(site, own):
    """Lost: each start of the instance that stayed; or a later fault, to an older database."""
    site.provision()
    at_fault(site)
    record = site.record(0)
    with site.proxy() as proxy:
        out = OutOfUse(record.note if own else "another", record.since, "error")
        MaintenanceRecords(str(site.state / "maintenance")).write(0, out)
        proxy.store.move(0, "shutting down", "its end")
    assert (kept(site) is None) == own
