# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the database, a claim's own record and what lies beside a root do not agree. If these fail, a root is made anew
or removed that holds somebody's work, by a guess at which of them is right.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.images import Node
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.disk_files import DiskFiles, Made
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.roots import made_of
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY

TOKEN = "eve 1.5"


def request():
    return dict(instance="jackie", owner="jackie", flavor=FLAVOR, image="debian", ssh_public_key=KEY)


def root_file(site):
    return site.state / "board-roots" / "fs_0" / "root.ext4"


def forget(site, *changes):
    """The database as an older copy of it has it."""
    with closing(sqlite3.connect(site.params["state_db"])) as db:
        for change in changes:
            db.execute(change)
        db.commit()


def forget_events(site):
    forget(
        site, "DELETE FROM events WHERE phase != 'records' AND id > (SELECT min(id) FROM events WHERE phase = 'claim')"
    )


def test_who_has_a_root_on_the_boards_disk_is_asked_for_as_well(jackie):
    """Lost: an instance's disk, formatted for the claim of an older database."""
    DiskFiles(str(jackie.state / "disks"), 0).create(b"own", Made(TOKEN, "0" * 64, "0" * 64, "key"))
    before = jackie.what_is_there()
    for results in (jackie.provision(), jackie.terminate()):
        text = next(result["msg"] for result in results if result.get("failed"))
        assert "its root on its disk is that of eve, not of jackie" in text
    assert jackie.what_is_there() == before


@pytest.mark.parametrize("damage", ["text", "types", "folder"])
def test_a_damaged_word_beside_a_disks_root_is_somebodys(site, damage):
    """Lost: a board with somebody's disk, given to the next one because a file cannot be read."""
    made = site.state / "disks" / "fs_0" / "made.json"
    DiskFiles(str(site.state / "disks"), 0).create(b"own", Made(TOKEN, "0" * 64, "0" * 64, "key"))
    made.unlink()
    if damage == "folder":
        made.mkdir()
    else:
        made.write_text("{" if damage == "text" else json.dumps(dict(vars(Made(TOKEN, "", "", "key")), claim=7)))
    results = site.provision("carol")
    assert [board["board"] for board in results[0]["boards"]] == [1]
    assert "board0  nobody has a claim" not in str(results[0])


def test_what_cannot_be_read_is_no_traceback(tmp_path, monkeypatch):
    """Lost: each verb on all boards, by one file on a bad sector."""

    def broken(*_args, **_options):
        raise OSError(5, "Input/output error")

    folder = tmp_path / "fs_0"
    DiskFiles(str(tmp_path), 0).create(b"own", Made(TOKEN, "0" * 64, "0" * 64, "key"))
    monkeypatch.setattr("builtins.open", broken)
    assert DiskFiles(str(tmp_path), 0).made() is None
    assert made_of(str(folder)) is None


def test_a_root_whose_word_cannot_be_read_is_not_made_anew_by_an_older_database(jackie):
    """Lost: a root, where both the database is older and made.json is damaged."""
    (jackie.state / "board-roots" / "fs_0" / "made.json").write_text("{")
    forget(jackie, "UPDATE claims SET image_hash = NULL, host_key = NULL", "UPDATE boards SET state = 'power off'")
    forget_events(jackie)
    before = root_file(jackie).stat().st_ino, jackie.outlets()
    assert not any(result.get("failed") for result in jackie.provision()), "her record and the key in it bear it out"
    assert (root_file(jackie).stat().st_ino, jackie.outlets()) == before


def test_what_ran_is_known_to_have_run_without_its_events(jackie):
    """Lost: a root, by a board that does not come up: an older database says that nobody was ever there."""
    forget_events(jackie)
    jackie.cut(0)
    jackie.pdu(faults={"stuck": ["1"]})
    before = root_file(jackie).stat().st_ino
    result = jackie.provision()[-1]
    assert result["failed"]
    assert result["blame"] == "instance", result
    assert root_file(jackie).stat().st_ino == before


def test_one_that_never_ran_is_still_nobodys(site):
    """Lost: the next board for each request whose board fails: its claim could not be moved."""
    site.pdu(faults={"stuck": ["1", "2"]})
    result = site.provision()[-1]
    assert result["failed"]
    assert result["blame"] == "board"
    with site.proxy() as proxy:
        (claim,) = proxy.store.claims()
        assert not proxy.store.has_run(claim)
        assert not proxy.store.kept(0).ran


# ---- a verb between the older database and reconcile


def put_back(site, copy):
    for path in site.state.glob("state.db*"):
        path.unlink()
    shutil.copy(copy, site.params["state_db"])


def record(site):
    return site.state / "claims" / "board0.json"


def test_a_verb_on_an_older_database_forgets_nothing_of_a_newer_record(jackie):
    """Lost: an instance whose lease was extended since the backup, at its reboot."""
    jackie.expire()
    copy = backups.make(jackie.params["state_db"])
    with jackie.proxy() as proxy:
        proxy.store.put("jackie", expires=None)
    put_back(jackie, copy)
    assert jackie.reap()[0]["said"] == []
    before = json.loads(record(jackie).read_text())["claim"]
    assert not any(result.get("failed") for result in jackie.reboot())
    assert json.loads(record(jackie).read_text())["claim"] == before
    assert jackie.reap()[0]["said"] == []
    assert jackie.what_is_there() == jackie.running("jackie")


@pytest.mark.parametrize("how", ["gone", "unreadable"])
def test_a_root_is_not_made_anew_where_database_and_record_are_both_behind(jackie, how):
    """Lost: the root under a running board, by one damaged file beside a backup of its first second."""
    forget(jackie, "UPDATE claims SET image_hash = NULL, host_key = NULL", "UPDATE boards SET state = 'power off'")
    forget_events(jackie)
    record(jackie).unlink() if how == "gone" else record(jackie).write_text("{")
    before = root_file(jackie).stat().st_ino, jackie.outlets()
    assert "jackie has a root of which" in str(jackie.module("board_reconcile", timeout=5)["boards"][0]["found"])
    result = jackie.module("board_image", boards=[0])
    assert "jackie has a root of which neither the database nor the record of its claim know" in result["msg"]
    assert (root_file(jackie).stat().st_ino, jackie.outlets()) == before
    # the way out, by her word
    assert not any(result.get("failed") for result in jackie.rebuild())


def test_a_record_of_an_earlier_release_counts_as_one_that_ran(jackie):
    """Lost: a root, by a board that fails just after the update."""
    kept = json.loads(record(jackie).read_text())
    del kept["ran"]
    record(jackie).write_text(json.dumps(kept))
    with jackie.proxy() as proxy:
        assert proxy.store.kept(0).ran
    kept["claim"].update(image_hash=None, created=10**400)
    record(jackie).write_text(json.dumps(kept))
    with jackie.proxy() as proxy, pytest.raises(HeteroError, match="cannot be read"):
        proxy.store.kept(0)


def test_a_rebuild_that_was_cut_off_leaves_its_board_somebodys(jackie):
    """Lost: a tenant's disk, read by the next one: its root was being made anew when the database went."""
    kept = json.loads(record(jackie).read_text())
    kept["claim"]["image_hash"] = None
    record(jackie).write_text(json.dumps(kept))
    shutil.rmtree(jackie.state / "board-roots" / "fs_0", ignore_errors=True)
    for path in jackie.state.glob("state.db*"):
        path.unlink()
    Store(jackie.params["state_db"]).close()
    jackie.cut(0)
    assert [board["board"] for board in jackie.provision("carol")[0]["boards"]] == [1]


def test_a_move_takes_nothing_that_was_made_on_the_old_board_along(site):
    """Lost: the new board, for ever, where the move was cut off between record and database."""
    assert not site.provision()[0].get("failed")
    with site.proxy() as proxy:
        proxy.store._db.write("DELETE FROM events WHERE phase IN ('running', 'state')")
        record(site).write_text(json.dumps(dict(json.loads(record(site).read_text()), ran=False)))
        for state in ("shutting down", "error"):
            proxy.store.move(0, state)
        assert proxy.store.move_claim("jackie", [1]).image_hash is None
        assert not proxy.store.kept(1).is_somebodys
        assert proxy.store.kept(0) is None


def test_an_image_is_used_by_a_root_of_which_the_database_does_not_know(site):
    """Lost: the lower layer of a stopped instance's root, removed as one that nobody uses."""
    with site.proxy() as proxy:
        proxy.store.power_seen(1, "off")
    copy = backups.make(site.params["state_db"])
    assert not any(result.get("failed") for result in site.provision())
    put_back(site, copy)
    with Node("proxy", site.params["config"], []) as node:
        assert {row["name"]: row["used_by"] for row in node.listed()}["debian"] == ["jackie"]
        with pytest.raises(Refused, match="is used by jackie"):
            node.remove("debian", Change(), Deadline(5))


def test_a_lease_whose_record_cannot_be_read_is_not_ended(jackie):
    """Lost: an instance whose lease was extended since the backup that was put back."""
    jackie.expire()
    record(jackie).write_text("{")
    (turn,) = jackie.reap()
    assert turn["failed"]
    assert "what it says of a claim cannot be read" in turn["said"][0]
    assert jackie.what_is_there() == jackie.running("jackie")
    # Reconcile does not know better either, until an operator says that the database is right.
    for adopt in ([], ["bob"]):
        result = jackie.module("board_reconcile", timeout=5, adopt=adopt)
        ((entry,),) = [board["found"] for board in result["boards"] if board["found"]]
        assert entry["done"] is None
        assert "and the database may be older than what it said: nothing is touched" in entry["found"]
        assert "reconcile -e adopt=jackie has it written anew" in entry["found"]
        assert record(jackie).read_text() == "{"
        assert jackie.reap()[0]["failed"]
    assert jackie.what_is_there() == jackie.running("jackie")
    jackie.module("board_reconcile", timeout=5, adopt=["jackie"], check=True)
    assert record(jackie).read_text() == "{"
    result = jackie.module("board_reconcile", timeout=5, adopt=["jackie"])
    assert result["boards"][0]["found"][0]["done"] == "written anew, the record only (root and board are not touched)"
    assert not jackie.reap()[0]["failed"]
    assert jackie.what_is_there() == jackie.clean()


def test_what_another_play_started_meanwhile_is_not_taken_back(site):
    """Lost: a running instance, by a play that asked for the same name, lost the race and tidied up after itself."""
    (board,) = site.module("board_claim", **request())["boards"]
    assert (board["ran"], board["image_hash"]) == (False, None)
    assert not any(result.get("failed") for result in site.provision())
    there = site.what_is_there()
    mine = dict(boards=[0], instance="jackie", created=[board["created"]], never_ran=True)
    for name, state in (("tilera_boot", "stopped"), ("board_image", "absent")):
        result = site.module(name, state=state, **mine, **(dict(timeout=10) if name == "tilera_boot" else {}))
        assert "runs jackie, or ran it, since it was looked at: nothing of it is taken back" in result["msg"]
    assert site.what_is_there() == there


def test_who_moved_since_the_backup_has_the_board_that_has_its_root(site):
    """Lost: a root, by an empty instance of the same name on the board that it had before; and reconcile for ever."""
    assert not site.module("board_claim", **request()).get("failed")
    copy = backups.make(site.params["state_db"])
    with site.proxy() as proxy:
        proxy.store.move(0, "error", "its relay sticks")
        proxy.store.move_claim("jackie", [1])
    assert not site.module("board_image", boards=[1]).get("failed")
    assert not site.module("tilera_boot", boards=[1], timeout=10).get("failed")
    there = {board: site.record(board).claim for board in (0, 1)}
    put_back(site, copy)
    (refused,) = site.provision()
    assert "board1 is jackie's by the record of its claim, though the database has it on board0" in refused["msg"]
    result = site.module("board_reconcile", timeout=5)
    assert [entry["done"] for entry in result["boards"][1]["found"]] == ["adopted"]
    assert {board: site.record(board).claim for board in (0, 1)} == there
    assert not site.module("board_reconcile", timeout=5)["changed"]
    assert not any(result["changed"] for result in site.provision())


def test_the_dry_run_of_a_rebuild_goes_to_its_end(jackie):
    """Lost: what a rebuild would do, told beforehand: its dry run is refused as if the root were unknown."""
    dry = jackie.module("board_image", boards=[0], image="debian-13", rebuilt=[0], instance="jackie", check=True)
    assert not dry.get("failed"), dry


@pytest.mark.parametrize("of_record", ["gone", "unreadable"])
@pytest.mark.parametrize("of_root", ["gone", "damaged"])
def test_an_older_database_and_two_lost_files_make_no_root_anew(jackie, of_record, of_root):
    """Lost: a root, where claims/ and the folder of the root are damaged beside a database that was put back."""
    forget(jackie, "UPDATE claims SET image_hash = NULL, host_key = NULL", "UPDATE boards SET state = 'power off'")
    forget_events(jackie)
    record(jackie).unlink() if of_record == "gone" else record(jackie).write_text("{")
    made = jackie.state / "board-roots" / "fs_0" / "made.json"
    made.unlink() if of_root == "gone" else made.write_text("{")
    before = root_file(jackie).stat().st_ino, jackie.outlets()
    for _turn in ("as it is", "after reconcile"):
        text = next(result["msg"] for result in jackie.provision() if result.get("failed"))
        assert "what it says of whom it was made for cannot be read" in text
        assert (root_file(jackie).stat().st_ino, jackie.outlets()) == before
        jackie.module("board_reconcile", timeout=5)


def test_a_root_whose_file_system_is_not_mounted_is_not_made_anew(jackie):
    """Lost: a stopped instance, replaced by an empty one of its name without a word."""
    assert not jackie.module("tilera_boot", boards=[0], state="stopped", keep=True, timeout=10).get("failed")
    for point in reversed(mounts_below(str(jackie.state / "board-roots"))):
        unmount(point)
    roots, key = jackie.state / "board-roots", jackie.record(0).claim.host_key
    roots.rename(jackie.state / "elsewhere")
    result = jackie.module("board_image", boards=[0], instance="jackie")
    assert f"jackie ran from {roots / 'fs_0'}, which is not there: nothing is made: mount the file" in result["msg"]
    assert jackie.module("tilera_boot", boards=[0], instance="jackie", timeout=10)["failed"]
    assert (jackie.record(0).claim.host_key, jackie.outlets()["1"]) == (key, "off")
    (jackie.state / "elsewhere").rename(roots) if not roots.exists() else None
    assert not jackie.module("board_image", boards=[0], instance="jackie").get("failed")
    assert not jackie.module("tilera_boot", boards=[0], instance="jackie", timeout=10).get("failed")
    assert jackie.record(0).claim.host_key == key


@pytest.mark.parametrize("reconciled", [False, True])
def test_where_the_record_was_lost_what_was_made_may_have_run(jackie, reconciled):
    """Lost: a root, by a stuck relay, where the backup is of the seconds between its making and its first boot."""
    forget(jackie, "UPDATE boards SET state = 'power off', power = NULL")
    forget_events(jackie)
    record(jackie).unlink()
    jackie.cut(0)
    if reconciled:
        jackie.module("board_reconcile", timeout=5)
    jackie.pdu(faults={"stuck": ["1"]})
    assert jackie.provision()[-1]["blame"] == "instance"
    given = dict(boards=[0], instance="jackie", never_ran=True, state="absent")
    assert "runs jackie, or ran it" in jackie.module("board_image", **given)["msg"]
    assert root_file(jackie).exists()


def test_a_rebuild_that_could_not_stop_its_board_makes_no_root_under_it(jackie):
    """Lost: the root of a board that is still on: a start, which is printed, after a rebuild that its relay cut off."""
    jackie.pdu(faults={"stuck": ["1"]})
    assert jackie.rebuild()[-1]["failed"]
    before = root_file(jackie).stat().st_ino
    result = jackie.module("board_image", boards=[0], instance="jackie")
    first = "stop it first (ansible-playbook hetero.compute.stop_instance -e instance=jackie)"
    assert f"and jackie is to get a new root there: {first}" in result["msg"]
    assert (root_file(jackie).stat().st_ino, jackie.outlets()["1"]) == (before, "on")
    jackie.pdu()
    # an inode that nobody has open is given to the next file
    with root_file(jackie).open("rb"):
        assert not jackie.module("tilera_boot", boards=[0], state="stopped", keep=True, timeout=10).get("failed")
        assert not jackie.module("board_image", boards=[0], instance="jackie").get("failed")
        assert not jackie.module("tilera_boot", boards=[0], instance="jackie", timeout=10).get("failed")
        assert root_file(jackie).stat().st_ino != before


@pytest.mark.parametrize("mounted", [True, False])
def test_a_folder_in_place_of_a_roots_file_is_said_and_left(jackie, mounted):
    """Lost: what reconcile says of all boards, to a traceback for one; and which file it is."""
    assert not jackie.module("tilera_boot", boards=[0], state="stopped", keep=True, timeout=10).get("failed")
    if not mounted:
        for point in reversed(mounts_below(str(jackie.state / "board-roots"))):
            unmount(point)
    file = jackie.state / "board-roots" / "fs_0" / "root.ext4"
    aside = file.rename(jackie.folder / "aside.ext4")
    file.mkdir()
    result = jackie.module("board_reconcile", timeout=5)
    said = [entry["found"] for entry in result["boards"][0]["found"]]
    said.append(jackie.module("board_image", boards=[0], instance="jackie")["msg"])
    assert [f"{file}: cannot be read (Is a directory): look at what lies there" in text for text in said] == [True] * 2
    file.rmdir()
    aside.rename(file)
    for name, given in (("board_image", {}), ("tilera_boot", dict(timeout=10))):
        assert not jackie.module(name, boards=[0], instance="jackie", **given).get("failed")
    assert jackie.what_is_there() == jackie.running("jackie")


def test_a_terminate_that_was_cut_off_and_an_older_database_have_a_way_out(jackie):
    """Lost: the board, for ever: the record of who was being ended is newer than the older database's claim."""
    copy = backups.make(jackie.params["state_db"])
    assert not any(result.get("failed") for result in jackie.terminate())
    assert not any(result.get("failed") for result in jackie.provision("carol"))
    assert not jackie.module("tilera_boot", boards=[0], state="stopped", timeout=10, instance="carol").get("failed")
    assert not jackie.module("board_image", boards=[0], state="absent", instance="carol").get("failed")
    put_back(jackie, copy)  # carol's claim was not ended yet
    (entry,) = jackie.module("board_reconcile", timeout=5)["boards"][0]["found"]
    assert "reconcile -e adopt=jackie says that the database is right" in entry["found"]
    assert entry["done"] is None
    assert jackie.terminate()[-1]["failed"]
    assert jackie.module("board_reconcile", timeout=5, adopt=["jackie"])["boards"][0]["found"][0]["done"]
    assert not any(result.get("failed") for result in jackie.terminate())
    assert jackie.what_is_there() == jackie.clean()


def test_an_instance_in_error_is_stopped_whatever_key_answers(jackie):
    """Lost: a root, by new host keys of an innocent tenant: stop names reboot how=hard, which names stop."""
    jackie.pdu(faults={"stuck": ["1"]})
    given = dict(boards=[0], instance="jackie", timeout=5)
    assert jackie.module("tilera_boot", state="rebooted", how="hard", **given)["failed"]
    assert jackie.record(0).state == "error"
    jackie.pdu()
    jackie.wire(0, fake={"tftp": 0.0, "nfs": 0.0, "running": 0.0, "wrong_key": True})
    assert not jackie.module("tilera_boot", state="stopped", keep=True, **given).get("failed")
    assert jackie.outlets()["1"] == "off"


def test_a_rebuild_that_is_refused_changes_no_claim(jackie):
    """Lost: host key and image of a claim whose board is refused to all verbs."""
    kept = json.loads(record(jackie).read_text())
    kept["claim"].update(instance="carol", request="carol", created=kept["claim"]["created"] + 100)
    record(jackie).write_text(json.dumps(kept))
    before = jackie.record(0).claim
    assert jackie.rebuild()[-1]["failed"]
    assert jackie.record(0).claim == before


@pytest.mark.parametrize("way", ["terminate", "rebuild"])
def test_what_ended_since_the_backup_that_was_put_back_is_said_to_be_left_over(jackie, way):
    """Lost: a board, for as long as its operator believes that somebody's instance is down on it."""
    copy = backups.make(jackie.params["state_db"])
    assert not any(result.get("failed") for result in jackie.terminate())
    for path in jackie.state.glob("state.db*"):
        path.unlink()
    shutil.copy(copy, jackie.params["state_db"])
    dry = jackie.module("board_reconcile", timeout=5, check=True)
    assert jackie.record(0).state == "running"
    first = jackie.module("board_reconcile", timeout=5)
    for result in (dry, first):
        (state, left) = result["boards"][0]["found"]
        assert (state["found"], state["done"]) == ("recorded as running, its outlet is off", "recorded as power off")
        assert left["done"] is None
        assert left["found"].startswith("jackie's root is gone and its outlet is off: it ended since the backup")
        assert "terminate_instance -e instance=jackie gives the board back" in left["found"]
    assert (jackie.record(0).state, jackie.record(0).claim.instance) == ("power off", "jackie")
    assert "its root is gone" in jackie.module("board_info")["boards"][0]["note"]
    (again,) = jackie.module("board_reconcile", timeout=5)["boards"][0]["found"]
    assert again["found"] == left["found"]
    if way == "terminate":
        assert not any(result.get("failed") for result in jackie.terminate())
        assert jackie.what_is_there() == jackie.clean()
    else:
        assert jackie.module("board_rebuild", instance="jackie", fresh=True)["to_rebuild"] == [0]
        for name, given in (("board_image", {}), ("tilera_boot", {"timeout": 10})):
            result = jackie.module(name, boards=[0], instance="jackie", **given)
            assert not result.get("failed"), result
        assert jackie.what_is_there() == jackie.running("jackie")


def test_a_stop_that_was_cut_off_and_a_lost_made_json_are_no_end(jackie):
    """Lost: a tenant's root, taken for what a killed terminate has left, as its board is recorded as shutting down."""
    folder = jackie.state / "board-roots" / "fs_0"
    before = root_file(jackie).stat().st_ino
    assert not jackie.module("tilera_boot", boards=[0], state="stopped", keep=True, timeout=10).get("failed")
    with jackie.proxy() as proxy:
        proxy.store._db.write("UPDATE boards SET state = 'shutting down' WHERE board = 0")
    (folder / "made.json").unlink()
    assert not any(result.get("failed") for result in jackie.provision())
    assert root_file(jackie).stat().st_ino == before
