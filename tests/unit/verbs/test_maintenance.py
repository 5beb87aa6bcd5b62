# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, somebody opens a board that is running, or a broken one is handed out again."""

from __future__ import annotations

import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back


def maintenance(site, state, board=0, **given):
    return site.module("board_maintenance", boards=[board], state=state, **given)


def said(result):
    return [line["text"] for line in result["lines"]]


def on(site, **given):
    return maintenance(site, "on", reason="its fan rattles", **given)


def test_taken_out_it_is_given_to_nobody_and_comes_back(site):
    assert on(site, check=True)["changed"]
    assert site.record(0).state == "power off"
    assert on(site)["changed"]
    again = on(site)
    assert (again["changed"], said(again)) == (False, ["on already: its fan rattles"])
    record = site.record(0)
    assert (record.state, record.note) == ("maintenance", "its fan rattles")
    (claimed, *_others) = site.provision()
    assert claimed["boards"][0]["board"] == 1
    assert claimed["rejected"]["board0"] == ["maintenance: its fan rattles"]
    way = "end its maintenance first: ansible-playbook hetero.compute.maintenance -e node=board0 -e state=off"
    stop = site.module("tilera_boot", boards=[0], state="stopped", timeout=10)
    assert f"is in maintenance: its fan rattles: {way}" in stop["msg"]
    assert maintenance(site, "off", check=True)["changed"]
    back = maintenance(site, "off")
    assert (back["changed"], back["boards"][0]["state"]) == (True, "power off")
    assert (site.record(0).state, site.record(0).note, site.record(0).power) == ("power off", "", "off")
    assert said(back) == ["off: its outlet is off, nothing is left on it"]
    again = maintenance(site, "off")
    assert (again["changed"], said(again)) == (False, ["off already: it is in state power off"])


def test_a_board_that_somebody_has_is_refused_and_named(jackie):
    assert "is running, and jackie of jackie has it" in on(jackie)["msg"]
    assert said(maintenance(jackie, "off")) == ["off already: it is in state running, and jackie of jackie has it"]
    assert jackie.what_is_there() == jackie.running("jackie")


@pytest.mark.parametrize("power", ["on", "off"])
@pytest.mark.parametrize("made", [True, False])
def test_one_in_error_whose_root_is_gone_is_free_for_it_by_what_is_printed(jackie, made, power):
    """Lost: the way out, where there is nothing left to end."""
    with jackie.proxy() as proxy:
        proxy.store.move(0, "error", "its fan rattles")
        if not made:
            proxy.store.put("jackie", image_hash=None, host_key=None, boot_source=None)
    for point in mounts_below(str(jackie.state / "board-roots")):
        unmount(point)
    shutil.rmtree(jackie.state / "board-roots" / "fs_0")
    jackie.cut(0)
    jackie.pdu(board0=power)
    assert "hetero.compute.terminate_instance -e instance=jackie ends it; then run this again" in on(jackie)["msg"]
    assert not any(result.get("failed") for result in jackie.terminate())
    assert on(jackie)["boards"][0]["state"] == "maintenance"
    assert jackie.outlets()["1"] == "off"


def test_a_board_in_error_goes(site):
    with site.proxy() as proxy:
        proxy.store.move(0, "error", "no boot request within 41 s, twice")
    left = maintenance(site, "off")
    assert (left["changed"], left["boards"][0]["state"]) == (False, "error"), "it would be called free"
    repair = "ansible-playbook hetero.compute.repair -e node=board0 frees it"
    assert said(left) == [f"off already: it is in state error: {repair}"]
    assert on(site)["changed"]
    assert maintenance(site, "off")["changed"]


def test_it_comes_back_only_off_and_clean(site):
    """Lost: a board handed out with an operator's own system running on it, or with the last tenant's files."""
    on(site)
    site.pdu(board0="on")
    left = site.tftp / "10.0.2.1"
    left.mkdir(parents=True)
    result = maintenance(site, "off")
    assert f"stays in maintenance: its outlet is on; folder {left}" in result["msg"]
    assert "switch pdu-a outlet 1 off" in result["msg"]
    site.pdu(board0="off")
    left.rmdir()
    site.pdu(faults={"hang": True})
    assert "its outlet is not known" in maintenance(site, "off", timeout=0.3)["msg"]
    assert site.record(0).state == "maintenance"
    site.pdu()
    assert maintenance(site, "off")["changed"]


# ---- a database that is older than the maintenance


def reconcile(site, **given):
    result = site.module("board_reconcile", timeout=5, **given)
    assert not result.get("failed"), result
    return result


def found(result):
    return [(one["found"], one["done"]) for one in result["boards"][0]["found"]]


KEPT = (
    "kept out of use (maintenance: its fan rattles): ansible-playbook hetero.compute.maintenance -e node=board0 -e "
    "state=off makes it free again"
)


@pytest.fixture
def older(site):
    """Board 0 is in maintenance since the copy of the database that was put back."""
    with site.proxy() as proxy:
        proxy.store.power_seen(1, "off")
    copy = backups.make(site.params["state_db"])
    on(site)
    put_back(site, copy)
    assert site.record(0).state == "power off"
    return site


def test_an_older_database_gives_nobody_a_board_in_maintenance(older):
    """Lost: the open board under an operator's hands, which a restored database calls free and a tenant gets."""
    (board, _other) = older.module("board_info")["boards"]
    assert board["note"].startswith("is in maintenance by its own record: its fan rattles (ansible-playbook ")
    (claimed, *_others) = older.provision()
    assert claimed["boards"][0]["board"] == 1
    assert claimed["rejected"]["board0"] == [board["note"]]


def test_reconcile_takes_the_maintenance_from_its_record(older):
    """Lost: the board's reason and state in status, and its outlet, where an operator has it on."""
    older.pdu(board0="on")
    mended = "in maintenance by its own record (its fan rattles)"
    kept_on = KEPT.replace(": ansible", ", its outlet is on: once it is known that nobody is at work there, ansible")
    assert found(reconcile(older, check=True)) == [(mended, "would be out of use again"), (kept_on, None)]
    assert older.record(0).state == "power off"
    assert found(reconcile(older)) == [(mended, "out of use again"), (kept_on, None)]
    assert older.outlets()["1"] == "on"
    record = older.record(0)
    assert (record.state, record.note) == ("maintenance", "its fan rattles")
    assert found(reconcile(older)) == [(kept_on, None)]
    assert "outlet is on" in maintenance(older, "off")["msg"]
    older.pdu(board0="off")
    assert maintenance(older, "off")["changed"]
    assert found(reconcile(older)) == []


def test_its_end_needs_no_reconcile_first(older):
    """Lost: the word that puts a board back into use, which an older database takes for said already."""
    assert maintenance(older, "off", check=True)["changed"]
    assert maintenance(older, "off")["changed"]
    assert not maintenance(older, "off")["changed"]
    assert older.module("board_info")["boards"][0]["note"] == ""


def test_a_record_that_cannot_be_read_keeps_its_board_out(older):
    """Lost: the open board, where a disk's fault took the reason, too."""
    path = older.state / "maintenance" / "board0.json"
    path.write_text("{")
    reconcile(older)
    record = older.record(0)
    assert (record.state, record.note) == ("maintenance", f"{path} cannot be read")


def test_a_record_that_cannot_be_written_keeps_no_other_board_from_reconcile(older):
    """Lost: what reconcile does for all boards of a node, by one file on a bad disk; or the power of who is at it."""
    path = older.state / "maintenance" / "board0.json"
    path.unlink()
    path.mkdir()
    older.pdu(board0="on", board1="on")
    first, second = reconcile(older)["boards"]
    assert ["cannot be read or written" in one["found"] for one in first["found"]] == [True]
    assert second["changed"]
    assert older.outlets() == {"1": "on", "2": "off"}


def test_an_older_database_switches_no_board_in_maintenance(older):
    """Lost: the power of who is at work at a board, to a repair of one that a restored database calls free."""
    older.pdu(board0="on")
    for state in ("stopped", "running"):
        said = older.module("tilera_boot", boards=[0], state=state, timeout=10)["msg"]
        assert "is in maintenance: its fan rattles: end its maintenance first: ansible-playbook " in said
        assert older.outlets()["1"] == "on"


def test_a_claim_of_an_older_database_gives_no_power_to_a_board_in_maintenance(site):
    """Lost: the health of who has the board open, at the next request of an instance that ended since the copy."""
    request = dict(instance="jackie", owner="jackie", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
    assert not site.module("board_claim", **request).get("failed")
    copy = backups.make(site.params["state_db"])
    assert not any(result.get("failed") for result in [*site.provision(), *site.terminate()])
    on(site)
    put_back(site, copy)
    last = site.provision()[-1]
    assert last["blame"] == "instance"
    said = "an operator took it out of use by its own record (its fan rattles): jackie has it by the database"
    assert said in last["msg"]
    assert site.outlets()["1"] == "off"
    assert not any(result.get("failed") for result in site.terminate())
    reconcile(site)
    assert site.record(0).state == "maintenance"


def test_maintenance_of_an_earlier_release_gets_its_record(site):
    """Lost: the maintenance that began before the update, at the first copy that is put back."""
    on(site)
    path = site.state / "maintenance" / "board0.json"
    path.unlink()
    alone = "in maintenance by the database only (its fan rattles)"
    assert found(reconcile(site, check=True)) == [(alone, "would be written beside it"), (KEPT, None)]
    assert not path.exists()
    assert found(reconcile(site)) == [(alone, "written beside it"), (KEPT, None)]
    assert "its fan rattles" in path.read_text()
    assert found(reconcile(site)) == [(KEPT, None)]


def test_an_instance_that_ended_since_the_copy_does_not_free_the_board(jackie):
    """Lost: the board, at the terminate that clears the older database of an instance that ended."""
    copy = backups.make(jackie.params["state_db"])
    assert not any(result.get("failed") for result in jackie.terminate())
    on(jackie)
    put_back(jackie, copy)
    said = "an operator took it out of use by its own record (its fan rattles): jackie has it by the database"
    assert any(text.startswith(said) for text, _done in found(reconcile(jackie)))
    assert not any(result.get("failed") for result in jackie.terminate())
    assert ("in maintenance by its own record (its fan rattles)", "out of use again") in found(reconcile(jackie))
    assert jackie.record(0).state == "maintenance"
