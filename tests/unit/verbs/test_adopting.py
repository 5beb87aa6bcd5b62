# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A state database that was lost, damaged or put back from an old backup. If these fail, tenants lose the boards that
they had since: switched off by whoever tidies up, or given to the next one.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import stat
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import backup
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.roots import Root, uuid_for
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.reconcile_table import reconcile_table


def reconcile(site, **given):
    return site.module("board_reconcile", **dict(dict(timeout=5), **given))


def found(result, board=0):
    return [(entry["found"], entry["done"]) for entry in result["boards"][board]["found"]]


def lose(site):
    """The database with its log, moved aside; an empty one was begun since."""
    for path in site.state.glob("state.db*"):
        path.unlink()
    Store(site.params["state_db"]).close()


def record(site, board=0):
    return site.state / "claims" / f"board{board}.json"


def rewrite(site, **fields):
    """A record as somebody else left it."""
    kept = json.loads(record(site).read_text())
    kept["claim"].update({key: value for key, value in fields.items() if key in kept["claim"]})
    kept.update({key: value for key, value in fields.items() if key in kept})
    record(site).write_text(json.dumps(kept))


def claim_of(site, name="jackie"):
    with site.proxy() as proxy:
        return proxy.store.claim_of(name)


def test_each_change_of_a_claim_is_in_its_record(jackie):
    """Lost: what the newest change was, with the one file that knew it."""
    assert stat.S_IMODE(record(jackie).stat().st_mode) == 0o600
    assert stat.S_IMODE(record(jackie).parent.stat().st_mode) == 0o700
    with jackie.proxy() as proxy:
        kept = proxy.store.kept(0)
        assert (kept.claim, kept.state) == (proxy.store.claim_of("jackie"), "running")
        proxy.store.put("jackie", expires=2e9)
        assert proxy.store.kept(0).claim.expires == 2e9
        with proxy.store.transaction(dry=True):
            proxy.store.put("jackie", expires=None)
        assert proxy.store.kept(0).claim.expires == 2e9
    assert not any(result.get("failed") for result in jackie.terminate())
    assert not record(jackie).exists()


@pytest.mark.parametrize("backup", [None, "before jackie", "of an older claim"])
def test_a_running_instance_is_adopted(site, backup):
    """Whatever the database says that is put back, her board shows her key and her root was made for her claim."""
    older = site.folder / "older.db"
    if backup:
        assert not any(result.get("failed") for result in site.provision("alice"))
        assert not any(result.get("failed") for result in site.terminate("alice")) or backup == "of an older claim"
        if backup == "of an older claim":
            assert not site.provision("alice")[0].get("failed")
        shutil.copy(backups.make(site.params["state_db"]), older)
        site.terminate("alice")
    assert not any(result.get("failed") for result in site.provision())
    there, before = site.what_is_there(), claim_of(site)
    lose(site)
    if backup:
        shutil.copy(older, site.params["state_db"])
    dry = reconcile(site, check=True)
    assert [done for text, done in found(dry)] == ["would be adopted"]
    result = reconcile(site)
    ((text, done),) = found(result)
    assert text == "is jackie's of jackie by its root and the record of its claim, it shows its own key"
    assert done == "adopted"
    assert claim_of(site) == before
    assert site.what_is_there() == there
    again = reconcile(site)
    assert (again["changed"], found(again)) == (False, [])
    assert any("adopted for jackie" in event.text for event in site.events(0, "claim"))
    assert site.record(0).since == before.created, "status would say that it runs since it was adopted"
    with site.proxy() as proxy:
        assert proxy.store.has_run(before), "nobody would keep her root when she does not come up"
    assert not any(result["changed"] for result in site.provision())
    assert not any(result.get("failed") for result in site.terminate())
    assert site.what_is_there() == site.clean()


@pytest.mark.parametrize("stopped", [True, False])
def test_a_stopped_instance_is_adopted(jackie, stopped):
    """Also one whose outlet went off since: her root says whose it is."""
    if stopped:
        assert not jackie.module("tilera_boot", boards=[0], state="stopped", keep=True, timeout=10).get("failed")
    else:
        jackie.cut(0)
    before = claim_of(jackie)
    lose(jackie)
    ((text, done),) = found(reconcile(jackie))[:1]
    assert (text.endswith("its outlet is off"), done) == (True, "adopted")
    assert claim_of(jackie) == before
    kept = jackie.record(0)
    assert (kept.state, kept.note) == ("power off", "stopped" if stopped else "found off")
    assert jackie.outlets()["1"] == "off"
    assert not jackie.module("tilera_boot", boards=[0], timeout=10, instance="jackie").get("failed")
    assert jackie.what_is_there() == jackie.running("jackie")


def test_what_was_changed_since_a_backup_is_known_again(jackie):
    """Lost: a lease that was extended, and with it the instance, in the reaper's next turn."""
    jackie.expire()
    copy = backups.make(jackie.params["state_db"])
    with jackie.proxy() as proxy:
        proxy.store.put("jackie", expires=None)
    lose(jackie)
    shutil.copy(copy, jackie.params["state_db"])
    assert jackie.reap() == [{"said": [], "failed": False}]
    assert found(reconcile(jackie))[0][1] == "adopted"
    assert claim_of(jackie).expires is None
    assert jackie.what_is_there() == jackie.running("jackie")


ANOTHER = json.dumps({"claim": "eve 1.5", "image": "0" * 64, "kind": "overlay", "whole": True})


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("silent", "its outlet is on, and it does not show its key"),
        ("another key", "another host key answers at 10.0.2.1"),
        ("another board", "that is a record of board1"),
        ("another name", "its root is not there, or is not this claim's"),
        ("another root", "its root is not there, or is not this claim's"),
        ("damaged", "what it says of a claim cannot be read"),
        ("wrong types", "what it says of a claim cannot be read"),
        ("claimed elsewhere", "jackie has board1 by the database"),
        ("pdu", "its outlet is not known"),
    ],
)
def test_what_contradicts_itself_is_not_adopted_and_not_touched(jackie, how, said):
    lose(jackie)
    quick = {"tftp": 0.0, "nfs": 0.0, "running": 0.0}
    if how in ("silent", "another key"):
        jackie.wire(0, fake=dict(quick, running=86400.0) if how == "silent" else dict(quick, wrong_key=True))
    elif how == "another root":
        (jackie.state / "board-roots" / "fs_0" / "made.json").write_text(ANOTHER)
    elif how == "damaged":
        record(jackie).write_text('{"claim": {"board"')
    elif how == "pdu":
        jackie.pdu(faults={"hang": True})
    elif how == "claimed elsewhere":
        with jackie.proxy() as proxy:
            wanted = ClaimTerms("jackie", {"name": "x"}, "debian", "ssh-ed25519 AAAA x")
            proxy.store.claim("jackie", ["jackie"], wanted, [1])
    else:
        wrong = {"another board": {"board": 1}, "another name": {"instance": "bob"}, "wrong types": {"created": True}}
        rewrite(jackie, **wrong[how])
    before, mine = jackie.what_is_there(), record(jackie).read_text()
    result = reconcile(jackie, timeout=0.5 if how == "pdu" else 5)
    texts = [text for text, done in found(result) if done is None]
    assert any(said in text for text in texts), found(result)
    assert all(done is None for text, done in found(result)), found(result)
    assert not result["boards"][0]["changed"]
    assert jackie.what_is_there() == before
    assert record(jackie).read_text() == mine
    # Nobody else gets it meanwhile.
    jackie.pdu(board0="on")
    claimed = jackie.provision("carol")[0]
    assert claimed.get("failed") or [claim["board"] for claim in claimed["boards"]] == [1]


@pytest.mark.parametrize("how", ["silent", "another key"])
def test_an_operators_word_adopts_what_does_not_prove_itself(jackie, how):
    quick = {"tftp": 0.0, "nfs": 0.0, "running": 0.0}
    jackie.wire(0, fake=dict(quick, running=86400.0) if how == "silent" else dict(quick, wrong_key=True))
    before, there = claim_of(jackie), jackie.what_is_there()
    lose(jackie)
    assert "reconcile -e adopt=jackie takes its record's word" in found(reconcile(jackie, adopt=["bob"]))[0][0]
    result = reconcile(jackie, adopt=["jackie"])
    assert (found(result)[0][1], result["not_adopted"]) == ("adopted", [])
    assert claim_of(jackie) == before
    assert jackie.what_is_there() == there


def test_a_word_is_in_vain_while_an_outlet_is_not_known(jackie):
    """Lost: that the word is to be given again, for who was told of a PDU only."""
    lose(jackie)
    jackie.pdu(faults={"hang": True})
    assert reconcile(jackie, adopt=["jackie"], timeout=0.5)["not_adopted"] == ["jackie"]
    jackie.pdu(board0="on")
    assert reconcile(jackie, adopt=["jackie"])["not_adopted"] == []
    assert reconcile(jackie, adopt=["jackie"])["not_adopted"] == [], "it is hers already"


def test_no_word_adopts_what_has_no_root_of_its_own(jackie):
    lose(jackie)
    (jackie.state / "board-roots" / "fs_0" / "made.json").write_text(ANOTHER)
    result = reconcile(jackie, adopt=["jackie", "bob"])
    assert found(result)[0][1] is None
    assert result["not_adopted"] == ["jackie"], "an operator would go home"
    assert claim_of(jackie) is None


def test_who_asks_again_gets_no_empty_board_instead(jackie):
    """Lost: a tenant's work, by an instance of the same name that has none of it."""
    there = jackie.what_is_there()
    lose(jackie)
    (result,) = jackie.provision()
    assert "jackie: no claim of it is in the database of node" in result["msg"]
    assert "run ansible-playbook hetero.compute.reconcile" in result["msg"]
    assert found(reconcile(jackie))[0][1] == "adopted"
    assert jackie.what_is_there() == there
    assert not any(result["changed"] for result in jackie.provision())


def test_cabling_which_is_named_as_the_way_out_switches_nothing_of_it(jackie):
    """Lost: a stopped instance's board, switched on and off by whoever looks for the right outlet."""
    assert not jackie.module("tilera_boot", boards=[0], state="stopped", keep=True, timeout=10).get("failed")
    lose(jackie)
    result = jackie.module("board_cabling", boards=[0], timeout=1)
    assert [board["verdict"] for board in result["boards"]] == ["skipped"]
    assert "has the root of jackie, of which no claim is known" in result["boards"][0]["text"]
    assert jackie.outlets()["1"] == "off"


def test_a_claim_for_which_nothing_was_made_is_given_back(site):
    """Nothing of anybody is on its board: who asked asks again."""
    wanted = ClaimTerms("jackie", {"name": "x"}, "debian", "ssh-ed25519 AAAA x")
    with site.proxy() as proxy:
        proxy.store.claim("jackie", ["jackie"], wanted, [0])
    lose(site)
    assert found(reconcile(site)) == [("was claimed for jackie, for whom nothing was made yet", "given back")]
    assert not record(site).exists()
    assert found(reconcile(site)) == []


def test_a_record_that_is_damaged_or_gone_is_written_anew_for_a_claim_that_is_known(jackie):
    before = record(jackie).read_text()
    for damage in ("unlink", "text"):
        record(jackie).unlink() if damage == "unlink" else record(jackie).write_text("{")
        # One that cannot be read may have known more than the database: an operator says that it did not.
        result = reconcile(jackie, adopt=["jackie"] if damage == "text" else [])
        assert (result["changed"], json.loads(record(jackie).read_text())["claim"]) == (
            True,
            json.loads(before)["claim"],
        )
        # What feeds it nobody knows now; that the wiring does is a word of its own.
        assert reconcile(jackie, adopt=["jackie"])["changed"]
        assert record(jackie).read_text() == before
    assert not reconcile(jackie)["changed"]


def cleaned(site):
    """What the last step of the way out says that is printed for a board that nobody claims; None if it is done."""
    done = site.module("board_image", boards=[0], state="absent")
    return done["msg"] if done.get("failed") else None


def test_cleaning_a_board_that_nobody_claims_ends_its_record(jackie):
    """The way out that is printed: once its owner agrees, the board is stopped and cleaned, and is free again.

    A root that is not that of its folder may be all that another tenant has: it goes to another place first, by hand.
    """
    lose(jackie)
    root = jackie.state / "board-roots" / "fs_0" / "root.ext4"
    (root.parent / "made.json").write_text(ANOTHER)
    ((text, done),) = found(reconcile(jackie))
    assert "modules tilera_boot with state=stopped, board_image with state=absent" in text
    done = jackie.module("tilera_boot", boards=[0], state="stopped", timeout=60)
    assert not done.get("failed"), done["msg"]
    assert f"{root}: is the root of another instance, not of eve: nothing is touched" in cleaned(jackie)
    aside = root.rename(jackie.folder / "aside")
    assert cleaned(jackie) is None
    reconcile(jackie)
    assert jackie.what_is_there() == jackie.clean()
    assert not record(jackie).exists()
    assert aside.exists()


def test_cleaning_a_board_that_nobody_claims_removes_the_root_that_is_its_folders(jackie):
    """Lost: the board, until somebody removes files by hand that the tool has made."""
    lose(jackie)
    root = Root(str(jackie.state), 0)
    (jackie.state / "board-roots" / "fs_0" / "made.json").write_text(ANOTHER)
    jackie.module("tilera_boot", boards=[0], state="stopped", timeout=60)
    root.unmount(Deadline(60))
    for words in (["e2fsck", "-f", "-y"], ["tune2fs", "-U", uuid_for("eve 1.5")]):  # it wants one just checked
        subprocess.run([*words, root.file], check=True, capture_output=True)
    assert cleaned(jackie) is None
    assert not Path(root.file).exists()


# ---- the remedy, as it is printed


@pytest.mark.parametrize("copied", [True, False])
def test_the_remedy_for_a_damaged_database_is_safe_as_printed(site, copied):
    """Lost: each instance made since the backup, by following what our own error said."""
    if copied:
        with site.proxy() as proxy:
            proxy.store.power_seen(1, "off")
        backups.make(site.params["state_db"])
    assert not any(result.get("failed") for result in site.provision())
    there = site.what_is_there()
    path = Path(site.params["state_db"])
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(HeteroError) as error, site.proxy() as proxy:
        proxy.store.claims()
    follow(str(error.value), path)
    result = reconcile(site)
    assert not result.get("failed"), result
    assert found(result)[0][1] == "adopted"
    assert site.what_is_there() == there


def follow(text, path):
    """Type what an error about a damaged database says, up to the playbook; nothing of it is lost by that."""
    damaged = path.read_bytes()
    assert "and then, where the inventory is: ansible-playbook hetero.compute.reconcile, which says" in text
    subprocess.run(["sh", "-ec", re.search(r"run on node \S+: (.+?) and then", text)[1]], check=True)
    assert (path.parent / "backups" / "aside" / path.name).read_bytes() == damaged


def test_a_database_with_damaged_pages_is_said_before_anything_is_touched(jackie):
    """Lost: what the damaged pages held, when the copy from before the damage is not kept any more."""
    with jackie.proxy() as proxy:
        for number in range(400):
            proxy.store.event(1, "note", f"{number} " + "x" * 100)
    path = Path(jackie.params["state_db"])
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with open(path, "r+b") as file:
        file.seek(path.stat().st_size - 3 * 4096)
        file.write(b"\xff" * 4096)
    jackie.pdu(board1="on")
    result = reconcile(jackie)
    assert result["failed"]
    assert "is damaged (SQLite:" in result["msg"]
    assert jackie.outlets() == {"1": "on", "2": "on"}
    with pytest.raises(HeteroError, match="was not copied"):
        backup.main(["--config", jackie.params["config"]])
    # As the error says.
    there = jackie.mounts(), jackie.exports()
    follow(result["msg"], path)
    assert found(reconcile(jackie))[0][1] == "adopted"
    assert (jackie.mounts(), jackie.exports()) == there


def test_the_hourly_backup_writes_the_records_of_an_earlier_release_and_copies_no_newer_database(jackie, capsys):
    before = dict(json.loads(record(jackie).read_text()), fed=None)  # which only a look at the board tells
    record(jackie).unlink()
    with jackie.proxy() as proxy:
        proxy.store._db.write("DELETE FROM events WHERE phase = 'records'")
    assert backup.main(["--config", jackie.params["config"]]) == 0
    assert json.loads(record(jackie).read_text()) == before
    made = [capsys.readouterr().out.strip()]
    with closing(sqlite3.connect(jackie.params["state_db"])) as db:
        db.execute("PRAGMA user_version = 99")
        db.execute("PRAGMA application_id = 3002001")
    with pytest.raises(HeteroError, match=r"release 3\.2\.1"):
        backup.main(["--config", jackie.params["config"]])
    assert backups.copies(jackie.params["state_db"]) == made


def test_ten_running_instances_and_no_database(ten):
    """What is adopted, what is asked, what is lost; and that nothing is touched meanwhile. The table: pytest -rP."""
    names = [f"lab-{number}" for number in range(10)]
    for name in names:
        assert not any(result.get("failed") for result in ten.provision(name)), name
    quick = {"tftp": 0.0, "nfs": 0.0, "running": 0.0}
    ten.wire(3, fake=dict(quick, running=86400.0))  # hangs
    ten.wire(5, fake=dict(quick, wrong_key=True))  # its tenant made another host key
    ten.cut(7)  # its outlet went off
    (ten.state / "claims" / "board9.json").write_text("{")
    there = ten.what_is_there()
    with ten.proxy() as proxy:
        claims = {claim.instance: claim for claim in proxy.store.claims()}
        events = len(proxy.store.events(limit=10**6))
    lose(ten)
    result = reconcile(ten)
    with ten.proxy() as proxy:
        adopted = {claim.instance: claim for claim in proxy.store.claims()}
        left = [event for event in proxy.store.events(limit=10**6) if event.phase not in ("claim", "running")]
    asked = [f"lab-{board}" for board in range(10) if f"lab-{board}" not in adopted]
    print("\n".join(reconcile_table([result])))
    print(
        f"adopted {', '.join(adopted)}; asked {', '.join(asked)}; lost: {events} events but {len(left)} of reconcile's"
    )
    assert adopted == {name: claim for name, claim in claims.items() if name not in ("lab-3", "lab-5", "lab-9")}
    for board, said in ((3, "does not show its key"), (5, "another host key"), (9, "cannot be read")):
        assert [done for text, done in found(result, board)] == [None]
        assert said in found(result, board)[0][0]
    after = ten.what_is_there()
    same = ("power", "exports", "mounts", "loops", "roots", "restore", "images")
    assert {key: after[key] for key in same} == {key: there[key] for key in same}
    again = reconcile(ten)
    assert not again["changed"]
    assert ten.what_is_there() == after
    # What was asked is answered by an operator, and nothing is lost of it.
    assert found(reconcile(ten, adopt=["lab-3", "lab-5"]), 3)[0][1] == "adopted"
    with ten.proxy() as proxy:
        assert {claim.instance for claim in proxy.store.claims()} == set(names) - {"lab-9"}
        assert {claim.instance: claim for claim in proxy.store.claims()}["lab-5"] == claims["lab-5"]


# ---- a backup from just after the claim: the claim is known, and of its root nothing


def put_back_from_before_its_root(site):
    """The database as it was when jackie had her claim, and nothing else."""
    with closing(sqlite3.connect(site.params["state_db"])) as db:
        db.execute("UPDATE claims SET image_hash = NULL, host_key = NULL")
        db.execute("DELETE FROM events WHERE id > (SELECT min(id) FROM events WHERE phase = 'claim')")
        db.execute("UPDATE boards SET state = 'power off', note = ''")
        db.commit()


@pytest.mark.parametrize("first", [None, "extended", "asked for ready"])
def test_a_backup_from_just_after_a_claim_costs_no_root(jackie, first):
    """Lost: a running instance's root, made anew by whoever asks for it again before reconcile."""
    file = jackie.state / "board-roots" / "fs_0" / "root.ext4"
    before, there = (file.stat().st_ino, claim_of(jackie)), jackie.what_is_there()
    put_back_from_before_its_root(jackie)
    if first == "extended":
        with jackie.proxy() as proxy:
            proxy.store.put("jackie", expires=before[1].expires)
        assert json.loads(record(jackie).read_text())["claim"]["image_hash"] == before[1].image_hash
    if first == "asked for ready":
        assert not jackie.module("board_image", boards=[0], image="debian").get("failed")
    results = jackie.provision()
    assert not any(result.get("failed") for result in results), results
    assert results[0]["boards"][0]["ran"], "it would be taken back as one that never ran"
    assert (file.stat().st_ino, claim_of(jackie)) == before
    assert jackie.what_is_there() == there


def test_a_rebuild_is_no_backup(jackie):
    """A claim whose root is to be made anew, by its owner's word, gets a new one."""
    before = claim_of(jackie).host_key
    assert not any(result.get("failed") for result in jackie.rebuild())
    assert claim_of(jackie).host_key != before


@pytest.mark.parametrize("how", ["lost", "another name"])
def test_a_disk_that_a_tenant_used_is_wiped_before_the_next_one_gets_its_board(site, how):
    """Lost: a tenant's disk, read by the next one: our remedy for a lost database cleaned the board but for that."""
    site.wire(0, disk="/dev/sda")
    assert not any(result.get("failed") for result in site.provision())
    lose(site)
    if how == "lost":
        record(site).unlink()
    else:
        rewrite(site, instance="bob")
    texts = [text for text, _done in found(reconcile(site))]
    assert any("stop and clean the board (modules tilera_boot" in text for text in texts), texts
    assert not site.module("tilera_boot", boards=[0], state="stopped", timeout=10).get("failed")
    assert not site.module("board_image", boards=[0], state="absent").get("failed")
    assert site.what_is_there() == site.clean()
    why = "disk /dev/sda was used by jackie, and is not proven to be wiped since "
    why += "(ansible-playbook hetero.compute.repair -e node=board0 wipes it)"
    assert why in site.module("board_info")["boards"][0]["note"]
    claimed = site.provision("carol")[0]
    assert [claim["board"] for claim in claimed["boards"]] == [1]
    assert why in claimed["rejected"]["board0"][0]
    assert site.module("board_maintenance", boards=[0], state="on", reason="its disk is used")["changed"]
    assert "not proven to be wiped since" in site.module("board_maintenance", boards=[0], state="off")["msg"]
