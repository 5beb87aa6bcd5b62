# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lies here for boards that no boards file names, each kind by itself. Whole nodes are in
verbs/test_gone_boards.py and verbs/test_forgotten_claims.py.

Tests boards/evidence/unnamed_boards.py, boards/records/misfiled_records.py.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence import unnamed_boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import misfiled_records
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import (
    ClaimRecords,
    Kept,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.tests.unit.boards.nodes import claimed


def write(node, claim, board, **more):
    ClaimRecords(str(node.state / "claims")).write(board, Kept(claim, "running", **more))


def forget(proxy):
    proxy.store._db._db.execute("DELETE FROM claims")


@pytest.fixture
def gone(node):
    """jackie has board 0, bob board 1, eve board 2; only board 0 is in the boards file."""
    with node.proxy() as proxy:
        claimed(proxy)
        claimed(proxy, "bob", [1])
        claimed(proxy, "eve", [2])
    node.name_boards([0])
    return node


def test_nothing_is_said_of_boards_of_the_file(node):
    """Lost: the truth of each tenant's root, called one that nobody wants."""
    with node.proxy() as proxy:
        (mine,) = claimed(proxy)
        node.root(0, mine)
        (node.folder / "tftpboot" / "10.0.2.1").mkdir(parents=True)
        (node.folder / "tftpboot" / "pxelinux.cfg").mkdir()
        path = str(node.state / "board-roots" / "fs_0" / "root")
        export = dict(path=path, pseudo="/tftpboot/fs_0", clients=["10.0.2.1"])
        elsewhere = dict(path="/srv/board-roots/fs_9/root", pseudo="/srv", clients=[])
        (node.folder / "ganesha.json").write_text(json.dumps({"1": export, "7": elsewhere}))
        assert unnamed_boards.others(proxy, {}) == []


def test_what_lies_there_for_others_is_said_with_what_to_do(gone):
    """Lost: a tenant of a board whose row was lost; or room for what nobody has any more."""
    with gone.proxy() as proxy:
        (bob,) = [claim for claim in proxy.store.claims() if claim.instance == "bob"]
        proxy.store._db._db.execute("DELETE FROM claims WHERE instance = 'eve'")
        gone.root(1, bob)
        (gone.state / "roots" / "fs_2").mkdir(parents=True)
        (gone.state / "disks" / "fs_7").mkdir(parents=True)
        (gone.state / "disks" / "notes").mkdir()
        for name in ("10.0.2.1", "10.0.2.9", "images"):
            (gone.folder / "tftpboot" / name).mkdir(parents=True)
        stray = gone.state / "claims" / "board1.json.bak"
        stray.write_text("")
        exports = {
            "2": dict(path=str(gone.state / "board-roots" / "fs_1" / "root"), pseudo="/b", clients=["10.0.2.2"]),
            "3": dict(path=str(gone.state / "roots" / "x" / "y"), pseudo="/a", clients=[]),
            "4": dict(path=str(gone.state / "board-roots" / "fs_0" / "root"), pseudo="/c", clients=["10.0.2.1"]),
        }
        (gone.folder / "ganesha.json").write_text(json.dumps(exports))
        found = unnamed_boards.others(proxy, {})
    board1, board2, board7 = [unnamed_boards.UNWANTED.format(number=number) for number in (1, 2, 7)]
    assert "hetero.compute.reconcile -e remove=board7" in board7
    assert found == [
        f"claim of bob (ann) on board1: {unnamed_boards.LEFT.format(name='bob')}",
        f"record of the claim of eve on board2: {unnamed_boards.LEFT.format(name='eve')}",
        f"file {stray}: {unnamed_boards.STRAY}",
        f"folder {gone.state / 'board-roots' / 'fs_1'}, made for bob: {board1}",
        f"folder {gone.state / 'roots' / 'fs_2'}: {board2}",
        f"folder {gone.state / 'disks' / 'fs_7'}: {board7}",
        f"folder {gone.folder / 'tftpboot' / '10.0.2.9'}: {unnamed_boards.BOOT_FILES}",
        f"export 2 /b: {board1}",
        "export 3 /a: look who made it",
    ]


def test_an_nfs_server_that_does_not_answer_hides_nothing_else(gone):
    """Lost: the claims and roots of boards that are gone, behind a server that is down."""
    (gone.folder / "bin" / "busctl").write_text("#!/bin/sh\necho no such service >&2\nexit 1\n")
    with gone.proxy() as proxy:
        found = unnamed_boards.others(proxy, {})
    assert [text.partition(":")[0] for text in found[:2]] == [
        "claim of bob (ann) on board1",
        "claim of eve (ann) on board2",
    ]
    assert "no such service" in found[2]
    assert len(found) == 3


def test_a_record_that_says_nothing_of_its_board_is_said(gone):
    """Lost: the only record of a board, removed as one that nobody wants; or the room of a copy."""
    with gone.proxy() as proxy:
        mine = proxy.store.claim_of("jackie")
        forget(proxy)
        write(gone, mine, 1)
        gone.record(2).write_text("{")
        gone.record(0).unlink()
        moved, damaged = unnamed_boards.others(proxy, {})
        assert moved.startswith(
            f"record on board1: {gone.record(1)}: that is a record of board0, not of board1: run on "
        )
        assert (
            f"mv --backup=numbered {gone.record(1)} {gone.record(0)}, or, where nobody has board0 any more, remove it"
            in moved
        )
        said = f"record on board2: {gone.record(2)}: what it says of a claim cannot be read: {unnamed_boards.UNREAD}"
        assert damaged == said
        write(gone, mine, 0)
        copy = unnamed_boards.others(proxy, {})[0]
        assert copy.endswith(f"not of board1: {misfiled_records.SAME}")


def test_both_are_said_where_record_and_database_name_two_claims(gone):
    """Lost: one of two instances of a board that is gone."""
    with gone.proxy() as proxy:
        bob = proxy.store.claim_of("bob")
        write(gone, replace(bob, instance="carol", created=1.0), 1)
        assert [text.partition(" on ")[0] for text in unnamed_boards.others(proxy, {})] == [
            "claim of bob (ann)",
            "record of the claim of carol",
            "claim of eve (ann)",
        ]


@pytest.mark.parametrize("check", [True, False])
def test_a_claim_of_a_board_that_is_gone_ends_by_a_word(gone, check):
    """Lost: a name, for ever; or a claim, to a dry run or a slip in a name."""
    change = Change(check)
    with gone.proxy() as proxy:
        proxy.store._db._db.execute("DELETE FROM claims WHERE instance = 'eve'")
        assert unnamed_boards.let_go(proxy, ["jackie", "carol"], change, Deadline(5)) == ([], {})
        assert change.diff == []
        assert unnamed_boards.let_go(proxy, ["bob", "eve"], change, Deadline(5)) == (["bob", "eve"], {})
        assert [(one["before_header"], one["before"], one["after"]) for one in change.diff] == [
            ("bob", {"board": "board1"}, {}),
            ("eve", {"board": "board2"}, {}),
        ]
        assert [claim.instance for claim in proxy.store.claims()] == ["jackie", *(["bob"] if check else [])]
        assert proxy.store.kept_boards() == ([0, 1, 2] if check else [0])
        released = [
            (one.board, one.instance, one.text.rpartition(" ")[0])
            for one in proxy.store.events()
            if one.phase == "release"
        ]
        why = "claim is ended by an operator's word: "
        assert released == (
            []
            if check
            else [
                (1, "bob", f"bob's {why}board1 is not in the boards"),
                (2, "eve", f"eve's {why}its board is not in the boards"),
            ]
        )


def test_a_record_that_goes_meanwhile_leaves_its_board_to_be_looked_at(gone, monkeypatch):
    """Lost: the look whether the board has power, before a claim ends; or all that the call would say."""
    with gone.proxy() as proxy:
        monkeypatch.setattr(proxy.store, "kept", lambda board: None)
        assert unnamed_boards._is_anothers(proxy, 9, None) is False


def test_which_words_were_in_vain(gone):
    """Lost: that a name was mistyped, where somebody gives an operator's word; or that it was ended before."""
    with gone.proxy() as proxy:
        proxy.store.forget(proxy.store.claim_of("bob"), "its board burnt")
        proxy.store._db._db.execute("DELETE FROM claims WHERE instance = 'eve'")
        gone.record(0).write_text("{")
        # the name of a request for several, which had no board: its instances have
        proxy.store.event(None, "choice", "wants 2 tp64.8x8", instance="lab")
        names = ["jackie", "bob", "eve", "carol", "lab"]
        assert unnamed_boards.not_ended(proxy, names, []) == dict(kept=["jackie", "eve"], gone=["bob"])
        assert unnamed_boards.not_ended(proxy, names, ["jackie", "bob"]) == dict(kept=["eve"], gone=[])
