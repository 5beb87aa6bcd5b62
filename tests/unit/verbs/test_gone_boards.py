# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a board that is gone for good has left goes by an operator's word. If these fail, it takes the proxy's room for
ever, or somebody's root goes with it.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_another_boards_file import deploy
from ansible_collections.hetero.compute.tests.unit.verbs.test_ways_out import tenants

__all__ = ["tenants"]


def gone_board(tenants):
    """board1, which the boards file no longer names; carol's root is there, and an older database knows of no claim."""
    deploy(tenants, {0})
    with tenants.proxy() as proxy:
        proxy.store._db.write("DELETE FROM claims WHERE board = 1")
    return tenants.state / "board-roots" / "fs_1"


def of_board1(result):
    """What was said of board1, which no boards file names."""
    return " ".join(line["text"] for line in result["lines"] if line["node"] == "board1")


def test_what_a_board_that_is_gone_left_goes_by_a_word(tenants):
    """Lost: the space of its root, for ever: each verb asks for a board that the boards file names."""
    deploy(tenants, {0})
    mine = tenants.running("jackie")
    said = tenants.module("board_reconcile", timeout=5, remove=["board1"])
    assert said["failed"]
    way = "ansible-playbook hetero.compute.reconcile -e forget=carol"
    assert f"is claimed for carol: nothing is removed: {way} ends its claim" in said["msg"]
    (tenants.folder / "record").write_text(record(tenants, 1).read_text())
    tenants.cut(1)
    reconcile(tenants, forget=["carol"])
    shutil.copy(tenants.folder / "record", record(tenants, 1))
    assert "has a record of a claim" in tenants.module("board_reconcile", timeout=5, remove=["board1"])["msg"]
    record(tenants, 1).unlink()
    left = [text for text in reconcile(tenants)["others"] if "remove=board1 removes it" in text]
    assert [text.split()[0] for text in left] == ["folder", "export"]
    assert f"folder {tenants.state / 'board-roots' / 'fs_1'}, made for carol: " in left[0]
    for name, why in (("board0", "is in the boards file"), ("../x", "is no name of a board")):
        assert why in tenants.module("board_reconcile", timeout=5, remove=[name])["msg"]
    dry = reconcile(tenants, remove=["board1"], check=True)
    assert (dry["removed"], (tenants.state / "board-roots" / "fs_1").exists()) == (["board1"], True)
    assert re.match(r"would be removed: export 2 .*; folder .*/fs_1, made for carol; ", of_board1(dry))
    archive = tenants.state / "disks" / "fs_1"
    archive.mkdir(parents=True)
    (archive / "own.tar").write_bytes(b"")
    archive.rename(tenants.folder / "big")
    archive.symlink_to(tenants.folder / "big")
    refused = tenants.module("board_reconcile", timeout=5, remove=["board1"])["msg"]
    assert f"{archive}: is a link to {tenants.folder / 'big'}, and what belongs here" in refused
    assert (tenants.state / "board-roots" / "fs_1").exists()
    archive.unlink()
    (tenants.folder / "big").rename(archive)
    result = reconcile(tenants, remove=["board1"])
    assert (result["removed"], result["changed"], archive.exists()) == (["board1"], True, False)
    assert re.match(r"removed: export 2 .*; folder .*/fs_1, made for carol; ", of_board1(result))
    (files,) = result["others"]
    assert files.startswith(f"folder {tenants.tftp / '10.0.2.2'}: copies of what a board boots, and no data: remove it")
    shutil.rmtree(tenants.tftp / "10.0.2.2")
    there = tenants.what_is_there()
    assert {key: there[key] for key in ("exports", "mounts", "loops", "roots", "restore", "records", "tftp")} == {
        key: mine[key] for key in ("exports", "mounts", "loops", "roots", "restore", "records", "tftp")
    }
    again = reconcile(tenants, remove=["board1"])
    assert (again["removed"], again["others"], again["changed"]) == ([], [], False)


def unread(root):
    (root / "made.json").write_text("{")


@pytest.mark.parametrize(
    ("harm", "words"), [(unread, "made for somebody (what made.json says cannot be read)"), (shutil.rmtree, None)]
)
def test_whose_root_it_is_is_said_before_it_goes(tenants, harm, words):
    """Lost: somebody's root, by a word of which nobody said whose it is."""
    root = gone_board(tenants)
    record(tenants, 1).unlink()
    tenants.cut(1)
    subprocess.run(["umount", "--lazy", root / "root"], check=True)
    harm(root)
    said = [text for text in reconcile(tenants)["others"] if text.startswith(f"folder {root}")]
    dry = of_board1(reconcile(tenants, remove=["board1"], check=True))
    assert (
        [words in text for text in [*said, dry]] == [True, True] if words else (said, str(root) in dry) == ([], False)
    )


@pytest.mark.parametrize("check", [True, False])
def test_what_has_power_is_not_removed(tenants, answering, check):
    """Lost: the root under a machine that runs from it, as its row fell out of the boards file."""
    root = gone_board(tenants)
    record(tenants, 1).unlink()

    def said():
        return tenants.module("board_reconcile", timeout=5, remove=["board1"], check=check)

    assert "board1: its outlet 2 of pdu-a is on: nothing is removed: " in said()["msg"]
    pdu = tenants.folder / "pdu-a.json"
    away = pdu.rename(pdu.with_suffix(".away"))
    assert "whether its outlet 2 of pdu-a is off is not known (" in said()["msg"]
    away.rename(pdu)
    tenants.cut(1)
    answering.add("10.0.2.2")
    assert "something answers at 10.0.2.2, to which its root is exported: nothing is removed" in said()["msg"]
    answering.clear()
    assert (root / "made.json").exists()
    tenants.pdu(board1="on")
    tenants.wire(0, outlet="2")
    assert not said().get("failed"), "the outlet is another board's now"


def test_a_claim_may_be_ended_and_its_remains_removed_by_one_call(tenants):
    """Lost: the dry run that looks at all nodes first, which refused what the run itself does."""
    deploy(tenants, {0})
    tenants.cut(1)
    words = dict(forget=["carol"], remove=["board1"])
    dry = reconcile(tenants, check=True, **words)
    assert (dry["ended"], dry["removed"]) == (["carol"], ["board1"])
    done = reconcile(tenants, **words)
    assert (done["ended"], done["removed"]) == (["carol"], ["board1"])


@pytest.mark.parametrize("words", ['"board": 1', "{"])
def test_a_root_whose_record_lies_elsewhere_is_not_removed(tenants, words):
    """Lost: a running tenant's root, as its record was moved to another board's place, and may be damaged there."""
    root = gone_board(tenants)
    record(tenants, 1).rename(record(tenants, 99))
    if words == "{":
        record(tenants, 99).write_text(words)
    said = tenants.module("board_reconcile", timeout=5, remove=["board1"])
    assert said["failed"]
    assert f"{record(tenants, 99)}: " in said["msg"]
    assert "it may be of board1: nothing is removed" in said["msg"]
    assert (root / "made.json").exists()


def test_a_root_beside_a_file_that_may_be_its_record_is_not_removed(tenants):
    """Lost: a running tenant's root, as somebody called its record by another name."""
    root = gone_board(tenants)
    stray = record(tenants, 1).rename(record(tenants, 1).with_suffix(".json.bak"))
    said = tenants.module("board_reconcile", timeout=5, remove=["board1"])
    assert f"{stray}: record of carol's claim on board1" in said["msg"]
    assert "nothing is removed" in said["msg"]
    assert (root / "made.json").exists()


def test_a_root_that_is_exported_to_a_board_of_the_file_is_not_removed(tenants):
    """Lost: the root of a board that runs, as it has another number in a new boards file."""
    path = tenants.folder / "tilera_boards"
    rows = path.read_text().splitlines(keepends=True)
    path.write_text("".join(re.sub(r"^(\s*)1\b", r"\g<1>11", row) for row in rows))
    with tenants.proxy() as proxy:
        proxy.store._db.write("DELETE FROM claims WHERE board = 1")
    record(tenants, 1).unlink()
    said = tenants.module("board_reconcile", timeout=5, remove=["board1"])
    assert "its root is exported to 10.0.2.2, which is board11 in the boards file: nothing is removed" in said["msg"]
    assert (tenants.state / "board-roots" / "fs_1" / "made.json").exists()


def test_a_wrong_name_is_refused_before_anything_is_done(tenants):
    """Lost: what was mended in the same call, of which the error says nothing."""
    deploy(tenants, {0})
    (tenants.tftp / "10.0.2.1").rename(tenants.tftp / "aside")
    for name, why in (
        ("bord1", "is no name of a board"),
        ("board0", "is in the boards file"),
        ("board" + "9" * 5000, ""),
    ):
        said = tenants.module("board_reconcile", timeout=5, remove=[name])
        assert said["failed"]
        assert why in said["msg"]
    assert not (tenants.tftp / "10.0.2.1").exists()


@pytest.mark.parametrize("known", ["database", "record"])
def test_an_empty_boards_file_is_said_where_there_are_instances(tenants, known):
    """Lost: every board of a node at once, to a file that was cut off: each verb took them for gone, with rc 0."""
    Path(tenants.params["boards_file"]).write_text("# none\n")
    if known == "record":
        with closing(sqlite3.connect(tenants.params["state_db"])) as db:
            db.execute("DELETE FROM claims")
            db.commit()
    for name, given in (
        ("board_info", {}),
        ("board_reconcile", {}),
        ("board_reconcile", {"check": True}),
        ("board_lease", {"instance": "jackie", "hours": 1}),
    ):
        result = tenants.module(name, **given)
        assert "is empty, and instances were made on" in result["msg"], (name, result)
        assert "nothing is touched or freed: bring it back" in result["msg"]
    assert tenants.outlets()["1"] == "on"
    # the word for boards that are gone for good is taken, and one that has power is not
    assert reconcile(tenants, forget=["jackie"], check=True)["ended"] == []
    tenants.cut(0)
    assert reconcile(tenants, forget=["jackie"], check=True)["ended"] == ["jackie"]


@pytest.mark.parametrize("known", ["claim", "record"])
def test_a_claim_is_not_ended_while_its_board_has_power(tenants, answering, known):
    """Lost: a running instance's owner and record, for a row that fell out of the boards file by mistake."""
    deploy(tenants, {0})
    if known == "record":
        with tenants.proxy() as proxy:
            proxy.store._db.write("DELETE FROM claims WHERE board = 1")
    kept = record(tenants, 1).read_text()

    def said(check=False):
        result = reconcile(tenants, forget=["carol"], check=check)
        (text,) = [text for text in result["others"] if "board1" in text.partition(":")[0] and "carol" in text]
        return result["ended"], result["kept"], text

    for check in (True, False):
        ended, left, text = said(check)
        assert (ended, left) == ([], ["carol"])
        assert (
            "not ended: its outlet 2 of pdu-a is on: add it to the boards file; or, where it is gone for good: " in text
        )
    config = json.loads((tenants.folder / "proxy.json").read_text())
    wire = config["boards"].pop("1")
    (tenants.folder / "proxy.json").write_text(json.dumps(config))
    assert "its outlet 2 of pdu-a is on" in said()[2], "by which it had its power last"
    tenants.pdu(board1="off")
    answering.add("10.0.2.2")
    assert "not ended: something answers at 10.0.2.2, to which its root is exported: " in said()[2]
    answering.clear()
    assert record(tenants, 1).read_text() == kept
    ended, left, text = said(check=True)
    assert (ended, text.rpartition(": ")[2]) == (["carol"], "would be ended")
    config["boards"]["1"] = wire
    assert reconcile(tenants, forget=["carol"])["ended"] == ["carol"]


def test_the_root_of_a_board_that_is_there_does_not_go_with_one_that_is_gone(tenants):
    """Lost: jackie's only root, where both boards' files came into each other's places and no made.json is left."""
    gone = gone_board(tenants)
    record(tenants, 1).unlink()
    tenants.cut(1)
    subprocess.run(["umount", "--lazy", gone / "root"], check=True)
    jackies = tenants.state / "board-roots" / "fs_0"
    for folder in (gone, jackies):
        (folder / "made.json").unlink()
        (folder / "root.ext4").rename(folder / "aside")
    (gone / "aside").rename(jackies / "root.ext4")
    (jackies / "aside").rename(gone / "root.ext4")
    said = tenants.module("board_reconcile", timeout=5, remove=["board1"])
    assert said["failed"]
    assert "is the root of jackie, not of who has its folder" in said["msg"]
    assert (gone / "root.ext4").exists()
