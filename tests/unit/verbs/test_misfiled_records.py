# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A claim's own record that lies where another board's belongs: copied or moved by a hand, or by a backup that was put
back. If these fail, a tenant can do nothing with her board any more, or is given up for a record that is not hers.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile, record


@pytest.fixture
def misfiled(jackie):
    """jackie on board 0 and bob on board 1, whose record lies at board 0 as well."""
    assert not any(result.get("failed") for result in jackie.provision("bob"))
    shutil.copy(record(jackie, 1), record(jackie))
    return jackie


def test_a_record_of_another_board_is_written_anew_by_an_operators_word(misfiled):
    """Lost: a tenant's way to anything, for what was printed to do was refused; or a lease that only the record that
    was copied over knew of.
    """
    theirs, there = record(misfiled).read_text(), misfiled.what_is_there()
    for adopt in ([], ["bob"]):
        ((text, done),) = found(reconcile(misfiled, adopt=adopt))
        assert f"{record(misfiled)}: that is a record of board1, not of board0, and the database may be older" in text
        assert (text.endswith("reconcile -e adopt=jackie has it written anew"), done) == (True, None)
    assert (
        found(reconcile(misfiled, adopt=["jackie"], check=True))[0][1]
        == "would be written anew, the record only (root and board are not touched)"
    )
    assert record(misfiled).read_text() == theirs
    assert (
        found(reconcile(misfiled, adopt=["jackie"]))[0][1]
        == "written anew, the record only (root and board are not touched)"
    )
    with misfiled.proxy() as proxy:
        assert proxy.store.kept(0).claim == proxy.store.claim_of("jackie")
    assert misfiled.what_is_there() == there
    # What feeds it is a word of its own.
    assert found(reconcile(misfiled, adopt=["jackie"]))[0][1] == "noted, by an operator's word"
    again = reconcile(misfiled)
    assert (again["changed"], found(again), found(again, 1)) == (False, [], [])


def test_a_record_of_another_board_says_nothing_about_this_one(misfiled):
    """Lost: what a tenant may do with her own board, and her neighbour with his, until somebody finds that file."""
    for name in ("jackie", "bob"):
        assert not any(result.get("failed") for result in misfiled.reboot(name)), name
    misfiled.expire()
    (turn,) = misfiled.reap()
    assert (turn["failed"], "that is a record of board1" in turn["said"][0]) == (True, True), (
        "it may have been extended"
    )
    assert misfiled.what_is_there() == misfiled.running("jackie", "bob")
    assert not any(result.get("failed") for result in misfiled.terminate())
    assert found(reconcile(misfiled)) == [], "its end takes the copy with it"
    assert not any(result.get("failed") for result in misfiled.provision("carol"))
    assert misfiled.what_is_there() == misfiled.running("carol", "bob")


@pytest.mark.parametrize("there", ["nothing", "damaged"])
def test_a_record_that_was_moved_to_another_board_is_not_written_over(misfiled, there):
    """Lost: the only word of an instance that the database does not know, by another one's being put right."""
    record(misfiled, 1).unlink()
    with closing(sqlite3.connect(misfiled.params["state_db"])) as db:
        db.execute("DELETE FROM claims WHERE board = 1")
        db.commit()
    if there == "damaged":
        record(misfiled, 1).write_text("{")
    before = misfiled.what_is_there()
    for adopt in ([], ["jackie"]):
        ((text, done),) = found(reconcile(misfiled, adopt=adopt))
        assert "it may be the only one: nothing of either is touched: run on node " in text
        assert done is None
    assert text in misfiled.module("board_info")["boards"][0]["note"]
    assert misfiled.what_is_there() == before
    follow_move(text)
    result = reconcile(misfiled)
    assert [found(result, board)[0][1] for board in (0, 1)] == ["written beside it, too", "adopted"]
    if there == "damaged":
        (stray,) = (text for text in result["others"] if "no record of a claim by its name" in text)
        Path(stray.split()[1].rstrip(":")).unlink()
    assert misfiled.what_is_there() == misfiled.running("jackie", "bob")


def test_a_record_that_was_moved_to_a_board_of_no_boards_file_says_how_to_move_it_back(misfiled):
    """Lost: the same, by another slip of the hand."""
    with misfiled.proxy() as proxy:
        proxy.store.keep_anew(0)
        proxy.store._db.write("DELETE FROM claims WHERE board = 1")
    record(misfiled, 1).rename(record(misfiled, 99))
    (text,) = (text for text in reconcile(misfiled)["others"] if text.startswith("record on board99"))
    follow_move(text)
    result = reconcile(misfiled)
    assert (found(result, 1)[0][1], result["others"]) == ("adopted", [])


def follow_move(text):
    """Type what a text says to move a record back."""
    subprocess.run(["sh", "-ec", re.search(r"run on node \S+: (mv .+?json\S*) *(?:,|$)", text)[1]], check=True)


@pytest.mark.parametrize("how", ["another board's", "unreadable"])
def test_no_word_writes_a_record_anew_that_nothing_bears_out(misfiled, how):
    """Lost: who has a board in truth, where the database is from before and what lies there is not its claim's."""
    if how == "unreadable":
        record(misfiled).write_text("{")
    rewritten = record(misfiled).read_text()
    (misfiled.state / "board-roots" / "fs_0").rename(misfiled.folder / "aside")
    for adopt in ([], ["jackie"]):
        ((text, done),) = found(reconcile(misfiled, adopt=adopt))
        typed = "ansible-playbook hetero.compute.reconcile -e adopt=jackie"
        way = f"where the database is right, remove the record; {typed} has it written anew then"
        assert (text.endswith(way), done) == (True, None)
    assert record(misfiled).read_text() == rewritten
    record(misfiled).unlink()
    assert found(reconcile(misfiled))[0][1] is None
    assert found(reconcile(misfiled, adopt=["jackie"]))[0][1] == "written beside it, too"
