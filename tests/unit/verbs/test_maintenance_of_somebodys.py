# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An operator takes a board out of use that somebody has, and the database does not know that, or not yet. If these
fail, the one way that is printed for its tenant afterwards is the end of her instance; or no verb leads out of it.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.maintenance_records import (
    MaintenanceRecords,
    OutOfUse,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import maintenance as maintaining
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back
from ansible_collections.hetero.compute.tests.unit.verbs.test_maintenance import found, maintenance, on, reconcile, said

OFF = "ansible-playbook hetero.compute.maintenance -e node=board0 -e state=off"


def verb(site, state):
    return site.module("instance", kind="board", instance="jackie", timeout=3, state=state)


def records(site):
    return MaintenanceRecords(str(site.state / "maintenance"))


@pytest.fixture
def older(site):
    """Jackie's instance runs on board 0; the database is a copy from before her claim. reconcile did not run yet."""
    copy = site.copy_when_off()
    assert not any(result.get("failed") for result in site.provision())
    put_back(site, copy)
    return site


@pytest.mark.parametrize("check", [True, False])
def test_a_board_with_somebodys_root_is_not_taken_out_of_use(older, check):
    """Lost: the tenant's start, from then on. status says of it: has the root of jackie, of which no claim is known."""
    note = older.module("board_info")["boards"][0]["note"]
    result = on(older, check=check)
    assert (result["failed"], result["changed"]) == (True, False)
    assert f"board0: {note}: have ansible-playbook hetero.compute.reconcile adopt it" in result["msg"]
    assert records(older).read(0) is None
    assert found(reconcile(older))[0][1] == "adopted"
    assert "jackie of jackie has it" in on(older)["msg"]


@pytest.mark.parametrize("state", ["maintenance", "error"])
def test_the_end_of_a_maintenance_lets_an_adopted_instance_start_again(older, state):
    """Lost: jackie's root: terminate_instance was the only way that was printed, for a database that is right."""
    assert found(reconcile(older))[0][1] == "adopted"
    records(older).write(0, OutOfUse("its fan rattles", 1.0, state))
    assert OFF in found(reconcile(older))[0][0]
    assert not verb(older, "stopped").get("failed")
    assert f"where it is right, {OFF} ends that record" in verb(older, "running")["msg"]
    assert maintenance(older, "off", check=True)["changed"]
    assert records(older).read(0).reason == "its fan rattles"
    result = maintenance(older, "off")
    assert result["changed"]
    words = "it is in state power off, and jackie of jackie has it"
    assert said(result) == [f"off: its own record of that is ended (its fan rattles); {words}"]
    assert said(maintenance(older, "off")) == [f"off already: {words}"]
    assert not verb(older, "running").get("failed")


def test_a_running_instance_goes_on_while_such_a_record_is_ended(jackie):
    """Lost: her power, or her state."""
    records(jackie).write(0, OutOfUse("its fan rattles", 1.0))
    assert maintenance(jackie, "off")["changed"]
    assert records(jackie).read(0) is None
    assert jackie.what_is_there() == jackie.running("jackie")


def test_a_board_that_was_claimed_meanwhile_is_not_taken_out_of_use(site, monkeypatch):
    """Lost: the board, claimed and in maintenance at once, with no record that says so. A claim needs no lock of it."""
    note = maintaining._note

    def claimed_meanwhile(*words):
        with site.proxy() as proxy:
            proxy.store.claim("jackie", ["jackie"], ClaimTerms("jackie", FLAVOR, "debian", KEY), [0])
        return note(*words)

    monkeypatch.setattr(maintaining, "_note", claimed_meanwhile)
    assert "board0: was claimed for jackie meanwhile: nothing of it is touched" in on(site)["msg"]
    assert site.what_is_there()["claims"] == {"jackie": 0}
    assert site.record(0).state == "power off"


def test_a_board_that_is_somebodys_and_in_maintenance_comes_back_with_its_root(jackie):
    """Lost: her root, by the remedy that was printed (board_image state=absent), where an earlier release led there."""
    assert not verb(jackie, "stopped").get("failed")
    with jackie.proxy() as proxy:
        proxy.store.move(0, "maintenance", "its fan rattles")
    assert OFF in verb(jackie, "running")["msg"]
    jackie.pdu(board0="on")
    refused = maintenance(jackie, "off")["msg"]
    assert refused.endswith("stays in maintenance: its outlet is on: switch pdu-a outlet 1 off (pdu_power)")
    jackie.pdu(board0="off")
    assert said(maintenance(jackie, "off")) == ["off: its outlet is off, and jackie of jackie has it"]
    assert not verb(jackie, "running").get("failed")
    assert jackie.what_is_there() == jackie.running("jackie")
