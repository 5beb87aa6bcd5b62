# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reconcile proposes and decides of a board that two words give to two claims. Whole reconciles are in
verbs/test_adopting.py.

Tests boards/evidence/unserved_boards.py.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence import adoption
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence.unserved_boards import ASK, SERVE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.presence import OTHER_KEY, OWN_KEY
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import (
    ClaimRecords,
    Kept,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.looks import Look, Seen
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
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


def forget(proxy):
    """An older copy of the database, which knows of no claim, is put back."""
    proxy.store._db._db.execute("DELETE FROM claims")


def write(node, claim, board=0, state="running", **more):
    ClaimRecords(str(node.state / "claims")).write(board, Kept(claim, state, **more))


def said(look):
    return [entry["found"] for entry in look.found]


# ---- what is proposed, and decided


def test_a_board_whose_record_and_row_agree_is_not_proposed(node, proxy):
    """Lost: the time of everybody, for boards of which nothing is to be said."""
    claimed(proxy)
    for board in (0, 1):
        look = look_at(proxy, board)
        adoption.propose(proxy, look, [])
        assert (look.found, look.kept, look.settled, look.left) == ([], None, False, False)
    look.work.contradiction, look = Refused("is another's"), look_at(proxy)
    look.work.contradiction = Refused("is another's")
    adoption.propose(proxy, look, [])
    assert said(look) == [f"is another's: {adoption.FORGET.format(name='jackie')}"]
    assert (look.settled, look.left) == (True, True)


@pytest.mark.parametrize(
    ("leased", "wanted", "power", "text", "done"),
    [
        (False, [], "off", "jackie's claim is in the database only", "written beside it, too"),
        (True, [], "off", adoption.LOST.format(name="jackie"), None),
        (True, ["eve"], "off", adoption.LOST.format(name="jackie"), None),
        (True, ["jackie"], "off", "the record of jackie's claim is lost", adoption.ANEW),
        (False, ["jackie"], "on", "jackie's claim is in the database only", "written beside it, too"),
        (False, [], "on", "neither the record of its claim nor its root bears out", None),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_a_lost_record_is_written_anew_where_it_can_have_known_nothing_more(
    node, proxy, leased, wanted, power, text, done, check
):
    """Lost: the longer lease that it knew of; or the record, for ever."""
    (mine,) = claimed(proxy, **(dict(lease_hours=1) if leased else {}))
    if power == "off":
        node.root(0, mine)
    node.record(0).unlink()
    look = look_at(proxy, power=power, check=check)
    adoption.propose(proxy, look, wanted)
    ((entry),) = look.found
    assert text in entry["found"]
    assert entry["done"] == (f"would be {done}" if check and done else done)
    assert (look.settled, look.left) == (done is None, done is None)
    assert node.record(0).exists() == (done is not None and not check)
    assert look.work.changed == (done is not None)


def test_nothing_is_written_for_one_of_which_nothing_is_left(node, proxy):
    """Lost: a word that is true: a claim of which neither root nor power is there would get a record again."""
    claimed(proxy)
    node.record(0).unlink()
    look = look_at(proxy)
    adoption.propose(proxy, look, [])
    assert (look.found, node.record(0).exists()) == ([], False)
    adoption.propose(proxy, look, ["jackie"])
    assert node.record(0).exists()


def test_a_root_that_the_database_forgot_is_left(node, proxy):
    """Lost: a tenant's root, made anew for a claim that names none, with a record that says so too."""
    (mine,) = claimed(proxy)
    node.root(0, mine)
    proxy.store._db._db.execute("UPDATE claims SET image_hash = NULL")
    node.record(0).unlink()
    look = look_at(proxy)
    adoption.propose(proxy, look, ["jackie"])
    assert said(look)[0].startswith("jackie has a root of which neither the database nor the record")
    assert (look.left, node.record(0).exists()) == (True, False)


@pytest.mark.parametrize("check", [True, False])
def test_a_record_that_is_older_is_corrected(node, proxy, check):
    """Lost: the claim of today, at the next loss of the database, to one that ended long ago."""
    (mine,) = claimed(proxy)
    node.root(0, mine)
    write(node, replace(mine, instance="eve", created=1.0))
    look = look_at(proxy, check=check)
    adoption.propose(proxy, look, [])
    done = "would be corrected" if check else "corrected"
    assert look.found == [dict(found="the record of eve's claim is older than the database's", done=done)]
    assert proxy.store.kept(0).claim.instance == ("eve" if check else "jackie")
    assert look.kept is None


@pytest.mark.parametrize("power", ["on", "off"])
def test_a_claim_for_which_nothing_was_made_is_given_back(node, proxy, power):
    """Lost: a board, for a request that was cut off; or somebody's power that is on there."""
    claimed(proxy, made=False)
    forget(proxy)
    look = look_at(proxy, power=power)
    adoption.propose(proxy, look, [])
    if power == "off":
        assert look.found == [dict(found="was claimed for jackie, for whom nothing was made yet", done="given back")]
    else:
        assert said(look)[0].startswith("is claimed for jackie by its record, by which its root was yet to be made")
    assert (node.record(0).exists(), look.left) == (power == "on", power == "on")


def test_a_claim_for_which_nothing_was_made_is_left_where_a_root_is(node, proxy):
    """Lost: that root."""
    (mine,) = claimed(proxy, made=False)
    node.root(0, mine)
    forget(proxy)
    look = look_at(proxy)
    adoption.propose(proxy, look, [])
    assert (node.record(0).exists(), look.left) == (True, True)


@pytest.mark.parametrize("wanted", [[], ["eve"], ["jackie"]])
def test_a_record_whose_root_is_not_here_beside_another_claim(node, proxy, wanted):
    """Lost: the way out where two claims of a board contradict each other, and neither has a root."""
    (row,) = claimed(proxy, "eve")
    kept = replace(row, instance="jackie", request="jackie", created=time.time() + 50)
    write(node, kept)
    look = look_at(proxy)
    look.work.contradiction = None
    adoption.propose(proxy, look, wanted)
    found = f"is jackie's by {node.record(0)}, but its root is not there, or is not this claim's"
    if wanted == ["eve"]:
        assert look.found == [dict(found=found, done=adoption.ANEW)]
        assert proxy.store.kept(0).claim == row
    else:
        assert said(look)[0].startswith(f"{found}: {adoption.NOT}: ")
        assert (
            said(look)[0].endswith("-e adopt=eve takes its record's word") or "-e adopt=eve says that" in said(look)[0]
        )
        assert look.left
        assert proxy.store.kept(0).claim == kept


def test_a_record_that_is_nobodys_row_and_has_no_root_is_left(node, proxy):
    """Lost: the record of a tenant whose root is on a file system that is not mounted."""
    claimed(proxy)
    forget(proxy)
    look = look_at(proxy)
    adoption.propose(proxy, look, ["jackie"])
    assert said(look) == [
        f"is jackie's by {node.record(0)}, but its root is not there, or is not this claim's: "
        f"{adoption.NOT}: {adoption.PUT_BACK}"
    ]
    assert (look.left, look.kept) == (True, None)


@pytest.mark.parametrize("harm", ["unreadable", "copy"])
@pytest.mark.parametrize("wanted", [[], ["jackie"]])
def test_an_unreadable_record_is_written_anew_by_a_word(node, proxy, harm, wanted):
    """Lost: the way out of it; or the word that somebody is to give."""
    (mine,) = claimed(proxy)
    node.root(0, mine)
    if harm == "copy":
        write(node, replace(mine, board=1), 1)
        write(node, replace(mine, board=1), 0)
    else:
        node.record(0).write_text("{")
    look = look_at(proxy)
    adoption.propose(proxy, look, wanted)
    ((entry),) = look.found
    assert entry["found"].startswith(f"{node.record(0)}: ")
    assert (entry["done"], look.left) == (adoption.ANEW if wanted else None, not wanted)
    if wanted:
        assert proxy.store.kept(0).claim == mine


def proposed(node, proxy, power="off", ssh=None, check=False, made=True, state="running"):
    (mine,) = claimed(proxy)
    proxy.store.keep_anew(0)
    node.root(0, mine)
    write(node, mine, state=state, ran=True)
    forget(proxy)
    look = look_at(proxy, power=power, ssh=ssh, check=check)
    adoption.propose(proxy, look, [])
    assert (look.kept.claim, look.work.claim) == (mine, mine), "it is asked as its record's"
    return look, mine


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    ("power", "ssh", "state", "proof"),
    [("on", OWN_KEY, "running", "it shows its own key"), ("off", None, "power off", "its outlet is off")],
)
def test_what_bears_itself_out_is_adopted(node, proxy, check, power, ssh, state, proof):
    """Lost: a tenant, of whom the database does not know any more."""
    look, mine = proposed(node, proxy, power, ssh, check)
    adoption.decide(proxy, look, look.kept, [])
    found = f"is jackie's of ann by its root and the record of its claim, {proof}"
    assert look.found == [dict(found=found, done="would be adopted" if check else "adopted")]
    assert look.settled == check
    (diff,) = look.work.change.diff
    assert (diff["before"], diff["after"]) == ({}, dict(vars(mine), flavor="tp64.8x8"))
    assert proxy.store.claim_of("jackie") == (None if check else mine)
    if not check:
        assert (look.work.claim, look.work.state, look.work.contradiction) == (mine, state, None)
        assert any(event.text.endswith(f": {proof}") for event in proxy.store.events())


@pytest.mark.parametrize(
    ("power", "ssh", "word", "why"),
    [
        (None, None, [], "its outlet is not known"),
        (None, None, ["jackie"], "its outlet is not known"),
        ("on", None, [], "its outlet is on, and it does not show its key"),
        ("on", OTHER_KEY, ["eve"], "another host key answers at 10.0.2.1"),
        ("on", None, ["jackie"], None),
    ],
)
def test_what_contradicts_itself_is_adopted_by_a_word_only(node, proxy, power, ssh, word, why):
    """Lost: another's board, taken for jackie's; or the way in where no proof is to be had."""
    look, mine = proposed(node, proxy, power, ssh)
    adoption.decide(proxy, look, look.kept, word)
    unserved = dict(name="jackie", missing="mounted and not exported", unit="nfs-ganesha")
    way = SERVE.format(**unserved) if (power, ssh) == ("on", None) else ASK.format(name="jackie")
    if why:
        assert said(look) == [f"is jackie's by the record of its claim, but {why}: {way}"]
        assert (look.left, look.work.claim, proxy.store.claims()) == (True, None, [])
    else:
        assert look.found[0]["done"] == "adopted"
        assert "its outlet is on, and it does not show its key" in look.found[0]["found"]
        assert proxy.store.claims() == [mine]


# ---- one that has another board by the database


@pytest.mark.parametrize(
    ("made", "left", "named", "why"),
    [
        (False, False, True, None),
        (True, False, True, "jackie has board1 by the database"),
        (False, True, True, "jackie has board1 by the database"),
        (False, False, False, "jackie has board1 by the database"),
    ],
)
def test_who_moved_since_a_copy_was_made(node, proxy, made, left, named, why):
    """Lost: an instance whose root is on the board that it moved to; or two boards for one name."""
    (there,) = claimed(proxy, boards=[1], made=made)
    if left:
        node.root(1, there)
    moved = replace(there, board=0, image_hash=HASH)
    node.root(0, moved)
    if not named:
        del proxy.boards[1]
    look = look_at(proxy)
    assert adoption._objection(proxy, look.work, Kept(moved, "running")) == why
    other = replace(moved, created=1.0)
    assert adoption._objection(proxy, look.work, Kept(other, "running")) == "jackie has board1 by the database"


def test_a_claim_whose_root_is_yet_to_be_made_is_as_good_as_its_record(node, proxy):
    """Lost: a rebuild that was begun, of which the database has the old root still."""
    (row,) = claimed(proxy)
    look = look_at(proxy)
    assert adoption._objection(proxy, look.work, Kept(replace(row, image_hash=None), "running")) is None
    why = "its root is not there, or is not this claim's"
    assert adoption._objection(proxy, look.work, Kept(row, "running")) == why
    bare = replace(row, created=1.0, image_hash=None)
    look.work.record = replace(look.work.record, claim=None)
    assert adoption._objection(proxy, look.work, Kept(bare, "running")) is None
    assert json.loads(json.dumps(asdict(bare)))
