# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What shows that a proxy's database was lost, and what is said then. Whole nodes: verbs/test_lost_database.py.

Tests boards/records/lost_database.py.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import lost_database
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.disk_files import DiskFiles, Made
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.ownership import token_of
from ansible_collections.hetero.compute.tests.unit.boards.nodes import claimed


@pytest.fixture
def database(node):
    """Its path; jackie has board 0 and eve board 1 by a copy of it, by records, and jackie's root is there."""
    with node.proxy() as proxy:
        (mine,) = claimed(proxy)
        claimed(proxy, "eve", [1])
        node.root(0, mine)
    return node.params["state_db"]


def lose(node):
    for path in node.state.glob("state.db*"):
        path.unlink()


def told(node, database):
    with pytest.raises(HeteroError) as error:
        lost_database.must_not_be_lost(database, str(node.state))
    return str(error.value)


def test_what_shows_that_there_was_one(node, database):
    """Lost: every instance of a node, to an empty database in the place of one that knew them."""
    lost_database.must_not_be_lost(database, str(node.state))
    lose(node)
    (node.state / "roots" / "fs_7").mkdir(parents=True)
    (node.state / "roots" / "lost+found").mkdir()
    (node.state / "board-roots" / ".lock").write_text("")
    there, besides = lost_database._signs(database, str(node.state))
    assert (there, besides) == (
        [
            f"record of a claim {node.record(0)}",
            f"record of a claim {node.record(1)}",
            f"root {node.state / 'board-roots' / 'fs_0'}",
            f"root {node.state / 'roots' / 'fs_7'}",
        ],
        "",
    )
    said = told(node, database)
    assert said.startswith(f"{database}: is not there, and instances were made on ")
    assert f"(record of a claim {node.record(0)}, " in said
    for folder in ("claims", "board-roots", "roots"):
        shutil.rmtree(node.state / folder)
        there = lost_database._signs(database, str(node.state))[0]
    assert there == []
    lost_database.must_not_be_lost(database, str(node.state))


def test_what_a_copy_does_not_make_good_by_itself(node, database):
    """Lost: the instance of whom only the copy tells, for want of the word that it is to be believed."""
    (node.state / "claims" / "board1.json").write_text("{")
    lose(node)
    assert "takes the copy's word" not in told(node, database), "there is no copy"
    with node.proxy(lost=True):
        pass
    backups.make(database)
    lose(node)
    said = told(node, database)
    way = "takes the copy's word for it by ansible-playbook hetero.compute.reconcile -e adopt=INSTANCE)"
    assert said.endswith(f" (which cannot read {node.record(1)}, and {way}")
    shutil.copy(node.record(0), node.record(1))
    assert f"cannot read {node.record(1)}" in told(node, database), "it is board 0's"
    node.record(1).unlink()
    assert "cannot read" not in told(node, database)


def test_an_empty_boards_file_is_not_taken_for_a_node_without_boards(node, database):
    """Lost: each claim of a node, to a file that was cut off."""

    def tell(claims):
        with pytest.raises(HeteroError) as error:
            lost_database.must_name_boards("/etc/boards", claims, database, str(node.state))
        return error.value

    with node.proxy() as proxy:
        claims = proxy.store.claims()
    error = tell(claims)
    assert error.thing == "/etc/boards"
    assert error.what.endswith("(claim of jackie on board0, claim of eve on board1)")
    assert "-e forget=INSTANCE ends the claims" in error.remedy
    assert f"(record of a claim {node.record(0)}, " in tell([]).what
    for folder in ("claims", "board-roots"):
        shutil.rmtree(node.state / folder)
    lost_database.must_name_boards("/etc/boards", [], database, str(node.state))


def test_what_reconcile_says_of_a_database_that_it_makes_anew(node, database):
    """Lost: that boards which were out of use are free; or the copy that knows of them."""
    params = dict(config=node.params["config"], state_db=database)
    assert lost_database.said_if_lost(params) is None
    backups.make(database)
    lose(node)
    with pytest.raises(HeteroError, match="is not there, and instances were made on "):
        lost_database.said_if_lost(params)
    shutil.rmtree(node.state / "backups")
    said = lost_database.said_if_lost(params)
    assert said.startswith(f"{database}: is not there, ")
    assert said.endswith(f": an empty one is begun; {lost_database.BEGUN}")
    assert f": an empty one would be begun; {lost_database.BEGUN}" in lost_database.said_if_lost(params, check=True)


def test_the_newest_copy_in_which_somebody_has_a_board(node, database):
    """Lost: whose a board is, where the newest copies are those of a database that was begun anew."""
    with node.proxy() as proxy:
        assert lost_database.way_by_copy(proxy, 0) == ""
        knows = backups.make(database)
        proxy.store.release(1, proxy.store.claim_of("eve"))
        later = backups.make(database)
        (node.state / "backups" / "state-99990101T000000Z.db").write_text("this is no database at all")
        assert lost_database.way_by_copy(proxy, 0) == "", "the database in place says that, too"
        proxy.store.release(0, proxy.store.claim_of("jackie"))
        way = lost_database.way_by_copy(proxy, 0)
        assert way.startswith(f"; or, as the copy {later} says that it is jackie's: ")
        assert way.endswith("ansible-playbook hetero.compute.reconcile -e adopt=jackie then")
        assert f"cp -p {later} {database}" in way
        assert lost_database.way_by_copy(proxy, 1).startswith(f"; or, as the copy {knows} says that it is eve's: ")
        assert lost_database.way_by_copy(proxy, 2) == ""


@pytest.mark.parametrize("of", ["root", "archive"])
def test_only_a_copy_that_has_the_claim_of_what_was_made_for_a_board(node, database, of):
    """Lost: a running instance, to a copy with an older one of its name, put back as the message said."""
    with node.proxy() as proxy:
        older = backups.make(database)
        proxy.store.release(0, proxy.store.claim_of("jackie"))
        (mine,) = claimed(proxy)
        right = backups.make(database)
        proxy.store.release(0, mine)
        backups.make(database)
        if of == "root":
            node.root(0, mine)
        else:
            shutil.rmtree(node.state / "board-roots")
            DiskFiles(proxy.folder("disks"), 0).create(b"own", Made(token_of(mine), "0" * 64, "0" * 64, "key"))
        assert lost_database.way_by_copy(proxy, 0).startswith(f"; or, as the copy {right} says that it is jackie's: ")
        Path(right).unlink()
        assert lost_database.way_by_copy(proxy, 0) == ""
        shutil.rmtree(node.state / ("board-roots" if of == "root" else "disks"))
        assert f"the copy {older} says" in lost_database.way_by_copy(proxy, 0), "nothing tells that it is another"


def test_one_that_is_made_meanwhile_is_not_lost(node, database, monkeypatch):
    """Lost: all but the first of several requests that a new node gets at once."""
    text = (node.state / "state.db").read_bytes()
    lose(node)
    signs = lost_database._signs

    def first(*given):
        (node.state / "state.db").write_bytes(text)
        return signs(*given)

    monkeypatch.setattr(lost_database, "_signs", first)
    lost_database.must_not_be_lost(database, str(node.state))
