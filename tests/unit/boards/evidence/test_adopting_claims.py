# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of two words on a board counts: the database's, or that of the record of a claim. Whole reconciles are in
verbs/test_adopting.py.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence import adoption
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.presence import OTHER_KEY, OWN_KEY
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import misfiled_records
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import (
    ClaimRecords,
    Kept,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.looks import Look, Seen
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.tests.unit.boards.nodes import HASH, claimed


@pytest.fixture
def proxy(node):
    with node.proxy() as opened:
        yield opened


def look_at(proxy, board=0, power="off", ssh=None, check=False):
    look = Look(Seen(proxy, proxy.boards[board], Change(check)))
    look.work.read()
    look.begin()
    look.power, look.ssh = power, ssh
    return look


def write(node, claim, board=0, state="running", **more):
    ClaimRecords(str(node.state / "claims")).write(board, Kept(claim, state, **more))


def said(look):
    return [entry["found"] for entry in look.found]


# ---- when a claim was made


@pytest.mark.parametrize(("created", "adopted"), [(2.0, True), (1e10, False)])
def test_a_claim_of_a_time_to_come_is_not_adopted(node, proxy, created, adopted):
    """Lost: all verbs of the node, to everybody: no play takes an answer with such a claim."""
    (mine,) = claimed(proxy)
    eve = replace(mine, board=1, instance="eve", request="eve", created=created)
    node.root(1, eve, of=f"eve {created}")
    write(node, eve, 1)
    look = look_at(proxy, 1)
    adoption.propose(proxy, look, ())
    assert (look.kept is not None) == adopted, said(look)
    if not adopted:
        (found,) = said(look)
        assert "but it was claimed at 2286-11-20T17:46:40Z, which is still to come by the clock of node" in found
        assert "nothing of it is touched" in found


# ---- whose a record that cannot be read is


def test_a_record_that_says_nothing_is_nobody_elses_where_all_else_is_one_claims(node, proxy):
    """Lost: the only record of another board, ended with a claim beside it; or a record that stays for ever."""
    (mine,) = claimed(proxy)
    board = proxy.boards[0]
    assert not adoption.is_of_nobody_else(proxy, board, mine), "it can be read"
    node.record(0).write_text("{")
    assert not adoption.is_of_nobody_else(proxy, board, mine), "nothing bears out the claim"
    node.root(0, mine)
    assert adoption.is_of_nobody_else(proxy, board, mine)
    assert adoption.contradiction_of(proxy, board, mine) is None
    write(node, replace(mine, board=1))
    assert not adoption.is_of_nobody_else(proxy, board, mine), "it may be the only one of board1"
    write(node, replace(mine, board=1), 1)
    assert adoption.is_of_nobody_else(proxy, board, mine)
    node.root(0, mine, of="eve 1.0")
    assert not adoption.is_of_nobody_else(proxy, board, mine)
    assert "that of eve" in str(adoption.contradiction_of(proxy, board, mine))


@pytest.mark.parametrize(
    ("power", "root", "borne", "doubted"),
    [
        ("on", False, False, True),
        (None, False, False, True),
        ("off", False, False, False),
        ("off", True, False, True),
        ("on", True, True, False),
        ("on", False, True, False),
    ],
)
def test_a_claim_that_only_the_database_has_is_in_doubt_where_somebody_may_be_there(
    node, proxy, power, root, borne, doubted
):
    """Lost: somebody's power or root, by the word of an older copy."""
    (mine,) = claimed(proxy)
    if not borne:
        node.record(0).unlink()
    if root:
        node.root(0, mine, of="jackie 1.0")
    doubt = adoption.doubt_of(proxy, proxy.boards[0], mine, power)
    assert (doubt is not None) == doubted
    assert doubt is None or "jackie's" in doubt.what


def test_what_is_said_of_a_record_that_cannot_be_read(node, proxy):
    """Lost: the way out of it: a word that is not taken; or a record that may be the only one, written over by one."""
    (mine,) = claimed(proxy, boards=[0], made=False)
    board = proxy.boards[0]

    def tell(row, contradiction=None):
        with pytest.raises(HeteroError) as raised:
            proxy.store.kept(0)
        return misfiled_records.said_of(proxy, board, row, contradiction, raised.value)

    write(node, replace(mine, board=7))
    text, by_word = tell(mine)
    assert by_word is False
    assert f"{node.record(0)}: that is a record of board7, not of board0, and it may be the only one" in text
    assert f"mv --backup=numbered {node.record(0)} {node.record(7)}" in text
    assert text.endswith("nobody has board7")
    write(node, replace(mine, board=7), 7)
    text, by_word = tell(mine)
    assert (by_word, text.endswith(misfiled_records.WORD.format(name="jackie"))) == (True, True)
    node.record(0).write_text("{")
    found = f"{node.record(0)}: what it says of a claim cannot be read"
    assert tell(mine) == (f"{found}, {misfiled_records.WORD.format(name='jackie')}", True)
    for row, contradiction in ((None, None), (mine, Refused("x"))):
        text, by_word = tell(row, contradiction)
        assert (text.startswith(f"{found}: nothing of its board is touched"), by_word) == (True, False)
    made = replace(mine, image_hash=HASH)
    assert tell(made) == (f"{found}, {misfiled_records.NO_PROOF.format(name='jackie')}", False)
    node.root(0, made)
    assert tell(made)[1] is True
    text, by_word = tell(mine)
    assert (by_word, text.startswith("jackie has a root of which neither")) == (False, True)


# ---- which of both is the newer one


@pytest.mark.parametrize(
    ("of_record", "root", "stale"),
    [
        (dict(), "row", False),
        (dict(image_hash="cd"), "row", True),
        (dict(image_hash="cd"), None, False),
        (dict(image_hash="cd"), "other", False),
        (dict(created=1.0), None, True),
        (dict(created=1.0), "other", True),
        (dict(created=5e9), None, False),
        (dict(created=5e9), "row", True),
        (dict(instance="eve", created=1.0), "row", True),
    ],
)
def test_whether_the_database_knows_better(node, proxy, of_record, root, stale):
    """Lost: the newest claim of a board, written over by an older one; or the other way round."""
    (row,) = claimed(proxy)
    if root == "row":
        node.root(0, row)
    elif root == "other" and "created" not in of_record:
        node.root(0, row, of="eve 1.0")
    kept = replace(row, **of_record)
    assert adoption.is_stale(proxy, proxy.boards[0], row, None, kept) == stale
    assert adoption.is_stale(proxy, proxy.boards[0], row, Refused("x"), kept) is False


def test_a_record_that_is_older_says_more_where_a_root_is_there(node, proxy):
    """Lost: a tenant, whose root is on a board that an older copy of the database gives to the next one."""
    (row,) = claimed(proxy)
    kept = replace(row, instance="eve", created=1.0)
    node.root(0, kept)
    assert not adoption.is_stale(proxy, proxy.boards[0], row, None, kept)
    assert not adoption.is_stale(
        proxy, proxy.boards[0], replace(row, image_hash=None), None, replace(row, image_hash="x")
    )


def test_a_claim_catches_up_with_its_record(node, proxy):
    """Lost: the root of an instance, made anew, as the database was copied just after its claim."""
    (mine,) = claimed(proxy)
    bare = replace(mine, image_hash=None)
    assert adoption.catch_up(proxy, mine) is mine
    proxy.store._db._db.execute("UPDATE claims SET image_hash = NULL")
    assert adoption.catch_up(proxy, bare) == bare, "what it names is not there"
    node.root(0, mine)
    gone, proxy.boards[7] = proxy.boards.pop(0), None
    assert adoption.catch_up(proxy, bare) is bare, "of a board that is in no file"
    del proxy.boards[7]
    proxy.boards[0] = gone
    assert adoption.catch_up(proxy, bare) == mine
    assert proxy.store.claim_of("jackie") == mine
    (event,) = [event for event in proxy.store.events() if "adopted" in event.text]
    assert event.text.endswith("the root that its record names is there")


# ---- by an operator's word


def test_no_word_for_another_ends_a_claim(node, proxy):
    """Lost: a claim that nobody spoke of."""
    (mine,) = claimed(proxy)
    node.root(0, mine, of="eve 1.0")
    look = look_at(proxy)
    assert adoption.end_by_word(proxy, look, ["eve"]) is None
    assert adoption.end_by_word(proxy, look_at(proxy, 1), ["jackie"]) is None
    assert (look.found, proxy.store.claim_of("jackie")) == ([], mine)


@pytest.mark.parametrize("check", [True, False])
def test_a_claim_against_anothers_root_ends_by_a_word(node, proxy, check):
    """Lost: the board, for ever; or the claim, to a dry run."""
    (mine,) = claimed(proxy)
    node.root(0, mine, of="eve 1.0")
    look = look_at(proxy, check=check)
    assert adoption.end_by_word(proxy, look, ["jackie"]) == "jackie"
    ((entry),) = look.found
    done = "jackie's claim would be ended" if check else "jackie's claim was ended"
    assert (entry["found"], entry["done"]) == ("its root is that of eve, not of jackie", done)
    assert (look.settled, look.work.changed) == (check, True)
    (diff,) = look.work.change.diff
    shown = dict(vars(mine), flavor="tp64.8x8")
    assert (diff["before_header"], diff["before"], diff["after"]) == ("board0 claim", shown, {})
    assert proxy.store.claim_of("jackie") == (mine if check else None)
    if not check:
        assert (look.work.contradiction, look.work.claim) == (None, None)
        assert "its root is that of eve" in proxy.store.events()[-2].text


@pytest.mark.parametrize(
    ("power", "ssh", "ends"),
    [("on", None, True), ("on", OWN_KEY, False), ("off", None, False), ("on", OTHER_KEY, True)],
)
def test_a_claim_that_nothing_bears_out_ends_by_a_word(node, proxy, power, ssh, ends):
    """Lost: the claim of who runs there and shows its key; or the way out where an older copy brought it back."""
    claimed(proxy)
    node.record(0).unlink()
    look = look_at(proxy, power=power, ssh=ssh)
    assert adoption.end_by_word(proxy, look, ["jackie"]) == ("jackie" if ends else None)
    assert (proxy.store.claim_of("jackie") is None) == ends
    assert ends or said(look) == [adoption.NO_FORGETTING.format(name="jackie")]


def test_no_word_ends_the_claim_of_who_runs_there(node, proxy):
    """Lost: a tenant's claim, whose board shows its key and boots from its root, by a slip in the boards file."""
    (mine,) = claimed(proxy)
    node.root(0, mine)
    look = look_at(proxy, power="on", ssh=OWN_KEY)
    look.work.contradiction = Refused("is another's")
    assert adoption.end_by_word(proxy, look, ["jackie"]) is None
    assert said(look) == [adoption.RUNS.format(name="jackie")]
    assert proxy.store.claim_of("jackie") == mine
