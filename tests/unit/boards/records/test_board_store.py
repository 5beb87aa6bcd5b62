# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What boards/records/store.py writes down with a claim or a state, value by value. Its promises are in
store/test_store.py.

Tests boards/records/board_records.py.
"""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import store as stores
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.board_records import NOBODYS, Record
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Claim, Kept
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import (
    ClaimTerms,
    Store,
    must_be_of,
    why_not_free,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree, Refused

MINE = Claim(0, "lab-1", "lab", "ann", {"name": "x"}, "debian", "ssh-ed25519 AAAA x", 100.0)


@pytest.fixture
def store(tmp_path):
    with Store(str(tmp_path / "state.db"), "test", records=str(tmp_path / "claims")) as opened:
        yield opened


def claim(store, request="jackie", instances=None, boards=(0, 1, 2), lease_hours=None, partial=False, **more):
    wanted = replace(ClaimTerms("ann", {"name": "x"}, "debian", "ssh-ed25519 AAAA x"), **more)
    return store.claim(request, instances or [request], wanted, list(boards), lease_hours, partial)


def told(store, board):
    return [(event.phase, event.text, event.instance) for event in store.events(boards=[board])]


@pytest.mark.parametrize(
    ("held", "instance", "created", "why"),
    [
        (None, "lab", (1.0,), None),
        (None, stores.NOBODY, (), None),
        (MINE, None, (), None),
        (MINE, None, (100.0,), None),
        (MINE, "lab", (), None),
        (MINE, "lab-1", (1.0, 100.0), None),
        (MINE, "lab-2", (), "board0: is not lab-2's any more, it was given to lab-1 meanwhile: run this again"),
        (MINE, stores.NOBODY, (), "board0: was claimed for lab-1 meanwhile: nothing of it is touched"),
        (MINE, "lab", (1.0,), "lab-1: was given back meanwhile, and claimed anew by ann"),
        (MINE, None, (1.0,), "lab-1: was given back meanwhile, and claimed anew by ann"),
    ],
)
def test_whose_a_board_is_to_be(held, instance, created, why):
    """Lost: the board of whoever got it since a verb looked whose it is."""
    if why is None:
        must_be_of(held, instance, "board0", created)
    else:
        with pytest.raises(Refused) as error:
            must_be_of(held, instance, "board0", created)
        assert str(error.value).startswith(why)


def test_since_when_a_board_is_not_free():
    """Lost: how long somebody waits already for a board, or has it."""
    assert why_not_free(Record(0, "power off", since=10.0, claim=MINE), 280.0) == "claimed for lab-1 since 3 min"
    assert why_not_free(Record(0, "running", since=160.0, claim=MINE), 280.0) == "running lab-1 since 2 min"
    assert why_not_free(Record(0, "shutting down", since=None), 280.0) == "shutting down since 0 s"
    assert why_not_free(Record(0, "power off", since=10.0), 280.0) is None


def test_an_outlet_is_looked_at_anew_where_a_board_changes_hands_or_fails(store):
    """Lost: power, to a board that is given back by what its outlet said before somebody had it."""
    for board in (0, 1, 2):
        store.power_seen(board, "off")
    claim(store)
    claim(store, "eve", boards=[2])
    assert [(store.record(board).power, store.record(board).power_seen is None) for board in (0, 1)] == [
        (None, True),
        ("off", False),
    ]
    store.power_seen(0, "on")
    store.move(0, "error", "it smells")
    assert (store.record(0).power, store.record(0).power_seen) == (None, None)
    store.power_seen(0, "on")
    store.move_claim("jackie", [0, 1])
    assert (store.record(1).power, store.record(1).power_seen) == (None, None)
    assert store.record(0).power == "on"
    assert store.record(2).power is None


def test_what_is_told_of_a_claim_from_its_begin_to_its_end(store):
    """Lost: who had a board, when something was found in it that nobody wants to have done."""
    claim(store)
    store.put("jackie", image_hash="ab")
    store.move(0, "error", "it smells")
    store.move_claim("jackie", [0, 1])
    store.release(1, store.claim_of("jackie"))
    assert told(store, 0) == [
        ("claim", "claimed for jackie by ann", "jackie"),
        ("state", "power off → error: it smells", "jackie"),
        ("claim", "jackie moved to board1", "jackie"),
    ]
    assert told(store, 1) == [
        ("claim", "jackie moved here from board0", "jackie"),
        ("release", "released by jackie", "jackie"),
    ]
    (mine,) = claim(store, boards=[2])
    assert store.has_ended(replace(mine, board=1, created=mine.created - 1))
    assert not store.has_ended(mine)
    store.forget(mine, "its root is another's")
    phase, text, instance = told(store, 2)[-1]
    assert (phase, instance, text.endswith(": its root is another's")) == ("release", "jackie", True)
    assert store.claim_of("jackie") is None
    assert store.kept_boards() == []


def test_a_record_goes_with_the_board(store):
    """Lost: a board, to the record of an instance that moved from it; or the claim that only its record knows."""
    claim(store)
    assert store.kept(0).claim == store.claim_of("jackie")
    store.move(0, "error", "it smells")
    assert (store.kept(0).state, store.kept(0).note) == ("error", "it smells")
    store.move_claim("jackie", [0, 1])
    assert (store.kept_boards(), store.kept(1).claim) == ([1], store.claim_of("jackie"))


@pytest.mark.parametrize("word", ["on", "off"])
def test_what_an_outlet_may_be(store, word):
    """Lost: whether a board has power."""
    store.power_seen(0, word)
    assert store.record(0).power == word


def test_the_end_of_a_lease_is_counted_in_hours(store):
    """Lost: an instance, minutes after it was asked for."""
    begun = time.time()
    (mine,) = claim(store, lease_hours=0.5)
    assert begun + 1800 <= mine.expires <= time.time() + 1800
    assert claim(store, "bob")[0].expires is None


@pytest.mark.parametrize(
    ("there", "free", "partial", "got"),
    [
        (0, 2, False, ["lab-1", "lab-2"]),
        (0, 1, False, None),
        (0, 1, True, ["lab-1"]),
        (0, 0, True, None),
        (1, 0, True, ["lab-1"]),
        (1, 0, False, None),
        (1, 1, False, ["lab-1", "lab-2"]),
    ],
)
def test_fewer_boards_than_were_asked_for(store, there, free, partial, got):
    """Lost: what one has already of a request, or a request that was to be whole or not at all."""
    names = ["lab-1", "lab-2"]
    if there:
        claim(store, "lab", names[:1], boards=[0])
    ask = dict(instances=names, boards=range(1, 1 + free), partial=partial)
    if got is None:
        with pytest.raises(NoneFree) as error:
            claim(store, "lab", **ask)
        missing, some = 2 - there, free or "none"
        boards = "a board" if missing == 1 else f"{missing} boards"
        assert str(error.value).startswith(f"lab: wants {boards}, {some} free: ")
    else:
        assert [one.instance for one in claim(store, "lab", **ask)] == got
    assert [one.instance for one in store.claims()] == (got or names[:there])


#: Lost, by `rebuild_instance`: the root, and it boots from where it did.
BOOT_SOURCE = (
    "terminate it first, a boot source stays: ansible-playbook hetero.compute.terminate_instance -e instance=jackie "
    "removes all that is in it"
)


@pytest.mark.parametrize(
    ("asked", "what", "way"),
    [
        (dict(boot_source="disk"), "boot source", BOOT_SOURCE),
        (dict(image="x", boot_source="disk"), "image and boot source", BOOT_SOURCE),
        (dict(flavor={"name": "y"}, image="x"), "flavor and image", "terminate it first, a flavor stays"),
        (dict(flavor={"name": "y"}, boot_source="disk"), "flavor and boot source", "terminate it first, a flavor"),
    ],
)
def test_what_is_there_otherwise_than_asked_for_is_named(store, asked, what, way):
    """Lost: the way to what was asked for, where an instance of the name is there."""
    claim(store)
    with pytest.raises(Refused) as error:
        claim(store, **asked)
    assert str(error.value).startswith(f"jackie: has board0 with another {what}: {way}")


def test_a_claim_of_before_there_were_boot_sources_boots_over_the_network(store):
    """Lost: an instance of an earlier release, of which another boot source was told to whoever asks for it again."""
    claim(store)
    store.put("jackie", boot_source=None)
    assert claim(store)[0].board == 0
    store.put("jackie", boot_source="disk")
    with pytest.raises(Refused, match="another boot source"):
        claim(store)
    assert claim(store, boot_source="disk")[0].board == 0


def test_one_that_ran_is_not_moved_from_its_root(store):
    """Lost: a tenant's work, which stays on a board that somebody else gets."""
    claim(store)
    store.event(0, "running", "ssh answers")
    store.move(0, "error", "it smells")
    with pytest.raises(Refused, match=r"jackie: ran on board0, where its root is: .*instance=jackie"):
        store.move_claim("jackie", [1])
    assert store.claim_of("jackie").board == 0
    claim(store, "bob")
    store.move(1, "error", "it smells")
    with pytest.raises(NoneFree, match="bob: wants a board, none free"):
        store.move_claim("bob", [1])


def adopted(store, state="power off", note="stopped", ran=False, **given):
    mine = replace(MINE, created=time.time() - 500, image_hash="ab", **given)
    store.adopt(Kept(mine, state, note, ran), state, note, "it shows its own key")
    return mine


def test_what_is_adopted_takes_the_place_of_what_was_known(store):
    """Lost: one board for two claims, or one name for two boards; or how an instance came to be here."""
    claim(store, "eve", boards=[0])
    claim(store, "lab", ["lab-1"], boards=[1])
    mine = adopted(store)
    assert store.claims() == [mine]
    record = store.record(0)
    assert (record.state, record.note) == ("power off", "stopped")
    assert record.since == pytest.approx(time.time(), abs=100)
    assert told(store, 0)[-1] == ("claim", "adopted for lab-1 of ann: it shows its own key", "lab-1")
    assert not store.has_run(replace(mine, image_hash=None))
    assert store.kept_boards() == [0]


@pytest.mark.parametrize(
    ("state", "note", "ran", "phases"),
    [
        ("running", "", True, ["running"]),
        ("power off", "stopped", True, ["running"]),
        ("running", "", False, ["unwatched"]),
        ("shutting down", "", False, ["unwatched"]),
        ("error", "still on", False, ["unwatched"]),
        ("error", NOBODYS.format(name="lab-1"), False, []),
        ("power off", "stopped", False, []),
    ],
)
def test_what_may_have_run_before_it_was_adopted_is_known_to(store, state, note, ran, phases):
    """Lost: a tenant's root, taken back as one that nothing was ever done in."""
    mine = adopted(store, state, note, ran=ran)
    assert [phase for phase, _text, _instance in told(store, 0)] == ["claim", *phases]
    assert (store.record(0).since == mine.created) == (state == "running")


def test_what_is_adopted_runs_since_now_where_its_claim_is_of_a_clock_ahead(store):
    """Lost: since when an instance runs, which would be told as a time to come."""
    mine = replace(MINE, created=time.time() + 500, image_hash="ab")
    store.adopt(Kept(mine, "running", "", True), "running", "", "why")
    assert store.record(0).since <= time.time()
    assert store.record(0).state == "running"
