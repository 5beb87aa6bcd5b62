# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the record of a claim says after each change, and what is known by it (boards/records/claim_copies.py).

Tests boards/records/claim_copies.py.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict, replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.board_records import (
    MAY_HAVE_RUN,
    NO_USE_SEEN,
    NOBODYS,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_copies import (
    is_of_before,
    tells_of_power,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import (
    ClaimRecords,
    Fed,
    Kept,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError

HASH = "ab" * 32


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "claims"


@pytest.fixture
def store(tmp_path, folder):
    with Store(str(tmp_path / "state.db"), "test", records=str(folder)) as opened:
        yield opened


def claim(store, name="jackie", board=0, made=True):
    store.claim(name, [name], ClaimTerms("ann", {"name": "x"}, "debian", "ssh-ed25519 AAAA x"), [board])
    if made:
        store.put(name, image_hash=HASH)
    return store.claim_of(name)


def damage(folder, board=0, text="{"):
    (folder / f"board{board}.json").write_text(text)


def forget_claims(store):
    """An older copy of the database, which knows of no claim, is put back."""
    store._db._db.execute("DELETE FROM claims")


def test_a_store_without_records_has_none(tmp_path):
    """Lost: every verb of a node that keeps none, to a traceback."""
    with Store(str(tmp_path / "state.db"), "test") as store:
        mine = claim(store)
        assert (store.kept(0), store.kept_anywhere(), store.kept_boards(), store.strays()) == (None, [], [], [])
        assert (store.lost(), store.has_run(mine), store.had_power(mine)) == ([], False, False)
        assert not os.path.exists(tmp_path / "claims")


def test_each_change_is_in_the_record_and_nothing_else(store):
    """Lost: what an instance has, where the database is put back from an older copy."""
    mine = claim(store)
    kept = store.kept(0)
    assert (kept.claim, kept.state, kept.note, kept.ran, kept.fed, kept.anew) == (
        mine, "power off", "", False, None, False,
    )  # fmt: skip
    store.feed(0, Fed("pdu-a", "1"))
    assert store.kept(0) == replace(kept, fed=Fed("pdu-a", "1"))
    store.move(0, "booting")
    store.move(0, "running", "busy")
    assert store.kept(0) == replace(kept, state="running", note="busy", ran=True, fed=Fed("pdu-a", "1"))
    store.put("jackie", expires=5e9)
    assert store.kept(0).claim == replace(mine, expires=5e9)
    assert store.kept(0).fed == Fed("pdu-a", "1")


def test_what_an_older_database_does_not_know_is_not_forgotten(store):
    """Lost: a longer lease, or the state that a board was in, which the record alone knows of."""
    claim(store)
    store.move(0, "booting")
    store.put("jackie", expires=5e9)
    store._db._db.execute("UPDATE claims SET expires = 1")
    store._db._db.execute("UPDATE boards SET state = 'power off'")
    store.put("jackie", host_key="ssh-ed25519 H")
    kept = store.kept(0)
    assert (kept.claim.expires, kept.claim.host_key, kept.state) == (5e9, "ssh-ed25519 H", "booting")
    store.move(0, "maintenance", "fan")
    kept = store.kept(0)
    assert (kept.claim.expires, kept.state, kept.note) == (5e9, "maintenance", "fan")
    store.feed(0, Fed("pdu-b", "7"))
    assert (store.kept(0).claim.expires, store.kept(0).fed) == (5e9, Fed("pdu-b", "7"))


def test_another_claims_record_stays(store):
    """Lost: the only word of an instance that the database does not know any more."""
    claim(store)
    forget_claims(store)
    before = store.kept(0)
    claim(store, "eve", made=False)
    assert store.kept(0) == before
    store.release(0, store.claim_of("eve"))
    assert store.kept(0) == before
    store.move(0, "maintenance", "fan")
    assert store.kept(0) == before


def test_what_feeds_a_board_that_nobody_has_is_in_its_record(store):
    """Lost: which outlet feeds a running tenant's board whose claim is yet to be adopted."""
    claim(store)
    forget_claims(store)
    before = store.kept(0)
    store.feed(0, Fed("pdu-b", "7"))
    assert store.kept(0) == replace(before, fed=Fed("pdu-b", "7"))


def test_a_record_of_one_that_was_cut_off_goes_to_the_next(store):
    """Lost: a board, for as long as nobody removes the record of a claim for which nothing was ever made."""
    claim(store, made=False)
    forget_claims(store)
    eve = claim(store, "eve", made=False)
    assert store.kept(0).claim == eve
    store.release(0, eve)
    assert store.kept_boards() == []


@pytest.mark.parametrize("damaged", [True, False])
def test_a_new_root_has_a_record_again(store, folder, damaged):
    """Lost: the only other word of a claim, after its owner had a new root made."""
    claim(store)
    if damaged:
        damage(folder)
    else:
        (folder / "board0.json").unlink()
    store.put("jackie", image_hash="cd" * 32)
    kept = store.kept(0)
    assert (kept.claim, kept.anew) == (store.claim_of("jackie"), True)
    store.feed(0, Fed("pdu-a", "1"))
    assert (store.kept(0).anew, store.kept(0).fed) == (False, Fed("pdu-a", "1"))


@pytest.mark.parametrize("harm", ["lost", "damaged", "older", "fed"])
def test_a_record_is_written_anew_by_a_word(store, folder, harm):
    """Lost: the way out of a record that says nothing; or what only that one knew."""
    mine = claim(store)
    if harm == "fed":
        store.feed(0, Fed("pdu-a", "1"))
    elif harm == "lost":
        (folder / "board0.json").unlink()
    elif harm == "damaged":
        damage(folder)
    else:
        kept = store.kept(0)
        ClaimRecords(str(folder)).write(0, replace(kept, claim=replace(mine, created=1.0)))
    store.keep_anew(0)
    kept = store.kept(0)
    assert (kept.claim, kept.anew) == (mine, harm != "fed")
    assert kept.fed == (Fed("pdu-a", "1") if harm == "fed" else None)


def test_a_record_of_nobody_is_removed_by_a_word(store, folder):
    """Lost: a board, to a record that nobody can read and that no claim stands behind."""
    store.keep_anew(1)
    folder.mkdir(exist_ok=True)
    damage(folder, 1)
    store.keep_anew(1)
    assert store.kept_boards() == []


def test_records_of_claims_of_an_earlier_release_are_written_once(tmp_path, folder):
    """Lost: that a record was lost: one that is missing later would be written by an older database."""
    with Store(str(tmp_path / "state.db"), "test") as before:
        claim(before)
        claim(before, "eve", 1)
        before.move(1, "booting")
    with Store(str(tmp_path / "state.db"), "test", records=str(folder)) as store:
        assert store.lost() == []
        store.keep_missing()
        assert store.kept_boards() == [0, 1]
        assert (store.kept(1).state, store.kept(1).anew, store.kept(1).claim) == (
            "booting", False, store.claim_of("eve"),
        )  # fmt: skip
        assert [(one.board, one.phase) for one in store.events() if one.phase == "records"] == [(None, "records")]
        (folder / "board1.json").unlink()
        store.keep_missing()
        assert store.kept_boards() == [0]
        assert [lost.instance for lost in store.lost()] == ["eve"]
        (folder / "board0.json").unlink()
        store.move(2, "maintenance")
        assert store.kept_boards() == []
        assert [lost.instance for lost in store.lost()] == ["jackie", "eve"]
        assert len([one for one in store.events() if one.phase == "records"]) == 1


def test_where_some_are_there_none_is_taken_for_an_earlier_releases(tmp_path, folder):
    """Lost: the same, on a node whose database is older than its records."""
    with Store(str(tmp_path / "state.db"), "test") as before:
        claim(before)
        kept = before._as_kept(before.record(0), before.claim_of("jackie"), None)
    ClaimRecords(str(folder)).write(5, replace(kept, claim=replace(kept.claim, board=5)))
    with Store(str(tmp_path / "state.db"), "test", records=str(folder)) as store:
        assert [lost.instance for lost in store.lost()] == ["jackie"]
        store.keep_missing()
        assert store.kept_boards() == [5]


@pytest.mark.parametrize(
    ("events", "ran", "power"),
    [
        ([], False, False),
        ([("running", "ssh answers")], True, True),
        ([("state", "booting → running")], True, True),
        ([("state", "booting → running: busy")], True, True),
        ([("unwatched", "it had power and nobody looked")], True, True),
        ([("state", "power off → booting")], False, False),
        ([("switch", "pdu-a outlet 1 is to be switched on")], False, True),
        ([("switch", "pdu-a outlet 1 is to be switched off")], False, False),
        ([("switch", "is to be told by ssh to reboot")], False, False),
    ],
)
def test_what_shows_that_an_instance_ran(store, events, ran, power):
    """Lost: a tenant's root, removed as one in which nothing was ever done; or a board that nobody gets."""
    mine = claim(store)
    for phase, text in events:
        store.event(0, phase, text)
    assert (store.has_run(mine), store.had_power(mine)) == (ran, power)


@pytest.mark.parametrize(
    ("harm", "made", "ran"),
    [
        ("damaged", False, True),
        ("lost", True, True),
        ("lost", False, False),
        ("ran", True, True),
        ("of before", True, True),
        ("of before", False, False),
        ("of later", True, False),
        (None, True, False),
    ],
)
def test_what_a_record_says_of_whether_an_instance_ran(store, folder, harm, made, ran):
    """Lost: the same, where the events are those of an older copy."""
    mine = claim(store, made=made)
    if harm == "damaged":
        damage(folder)
    elif harm == "lost":
        (folder / "board0.json").unlink()
    elif harm:
        kept = replace(store.kept(0), ran=True)
        created = {"of before": 1.0, "of later": 1e10}.get(harm, mine.created)
        ClaimRecords(str(folder)).write(0, replace(kept, claim=replace(mine, created=created)))
    assert store.has_run(mine) == ran


UNUSED, USED = ("unwatched", NO_USE_SEEN.format(name="jackie")), ("unwatched", MAY_HAVE_RUN.format(name="jackie"))


@pytest.mark.parametrize(
    ("events", "harm", "no_use"),
    [
        ([], None, False),
        ([UNUSED], None, True),
        ([UNUSED, UNUSED, ("state", "power off → booting")], None, True),
        ([UNUSED, USED], None, False),
        ([USED], None, False),
        ([UNUSED, ("running", "ssh answers")], None, False),
        ([UNUSED, ("state", "booting → running")], None, False),
        ([UNUSED], "damaged", False),
        ([UNUSED], "lost", False),
        ([UNUSED], "of before", False),
        ([UNUSED], "newer", False),
    ],
)
def test_what_shows_that_an_instance_was_never_at_work(store, folder, events, harm, no_use):
    """Lost: the power of a board at work, by events of an older copy; and the root in any of these cases."""
    mine = claim(store)
    for phase, text in events:
        store.event(0, phase, text)
    kept = store.kept(0)
    if harm == "damaged":
        damage(folder)
    elif harm == "lost":
        (folder / "board0.json").unlink()
    elif harm == "of before":
        ClaimRecords(str(folder)).write(0, replace(kept, claim=replace(mine, created=1.0)))
    elif harm == "newer":
        ClaimRecords(str(folder)).write(0, replace(kept, state="running"))
    assert store.has_shown_no_use(mine) == no_use
    assert store.has_run(mine) == bool(events)


def test_a_copy_of_a_record_is_known_from_the_only_one(store, folder):
    """Lost: the only record of a board, removed as a copy from where somebody moved it."""
    claim(store)
    text = (folder / "board0.json").read_text()
    for board in (1, 2):
        damage(folder, board, text)

    def error(board):
        with pytest.raises(HeteroError) as raised:
            store.kept(board)
        return raised.value

    assert store.is_copy(error(1))
    (folder / "board0.json").unlink()
    assert not store.is_copy(error(1))
    damage(folder)
    assert not store.is_copy(error(1))
    assert not store.is_copy(error(0))


def test_the_way_back_moves_a_record_and_keeps_what_lies_in_its_place(store, folder):
    """Lost: one record under another; or a command that is none in a folder with a blank in its name."""
    claim(store)
    stray = folder / "board 0.bak"
    (folder / "board0.json").rename(stray)
    command = store.way_back(str(stray), 0).partition(": ")[2]
    damage(folder)  # since it was said
    subprocess.run(["sh", "-ec", command], check=True)
    assert store.kept(0).claim == store.claim_of("jackie")
    assert (folder / "board0.json.~1~").read_text() == "{"
    assert store.path_of_kept(0) == str(folder / "board0.json")


def test_records_are_found_wherever_they_lie(store, folder):
    """Lost: whose a board is, where somebody called the record by another name."""
    claim(store)
    claim(store, "eve", 1)
    stray = folder / "board1.json.bak"
    (folder / "board1.json").rename(stray)
    (folder / "notes").write_text("none")
    (folder / ".board2.json.77~").write_text(json.dumps(asdict(store.kept(0))))
    damage(folder, 7)
    assert [(path, kept.claim.instance) for path, kept in store.kept_anywhere()] == [
        (str(folder / "board0.json"), "jackie"),
        (str(stray), "eve"),
    ]
    assert store.strays() == [str(stray), str(folder / "notes")]
    assert store.kept_boards() == [0, 7]


def test_a_database_that_is_open_without_records_tells_no_place_of_one(tmp_path):
    """Lost: a record looked for, or written, where none is kept, said as a fault of this collection's own."""
    with Store(str(tmp_path / "state.db"), "test") as store, pytest.raises(ValueError, match="open without records"):
        store.path_of_kept(0)


@pytest.mark.parametrize(
    ("state", "note", "told"),
    [
        ("running", "", True),
        ("shutting down", "", True),
        ("power off", "", False),
        ("error", "stalled at tftp", True),
        ("error", NOBODYS.format(name="jackie"), False),
    ],
)
def test_a_record_tells_by_its_state_whether_the_board_had_power(store, state, note, told):
    """Lost: the root of an instance that ran, by a record that counts as of one that never did; or a board, kept for
    one that never had its power.
    """
    mine = claim(store)
    assert tells_of_power(Kept(mine, state, note)) is told


def test_only_an_older_claims_record_counts_as_one_of_before(store):
    """Lost: the newer claim, which a database that was put back does not know: its record would count as lost."""
    mine = claim(store)
    older, newer = (replace(mine, instance="eve", created=mine.created + by) for by in (-1, 1))
    assert [is_of_before(Kept(one, "running"), mine) for one in (older, mine, newer)] == [True, False, False]
