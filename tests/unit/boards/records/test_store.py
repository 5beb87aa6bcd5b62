# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a user loses a board or a name: claims given twice, another's instance taken, history gone, or a
database that is locked, damaged or unreadable explained by a traceback."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.board_records import Record
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import (
    ClaimTerms,
    Store,
    why_not_free,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.tables import LAYOUT
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    HeteroError,
    NoneFree,
    Refused,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.release import RELEASE, as_number
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import age, key_body, valid_instance

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFirst alice@laptop"
#: What names KEY and shows nothing of it: the SHA-256 of its bytes, in base64.
PRINT = "SHA256:5QNE31pafftDl9n9WbldRB9tLRGZMLfX6IPlDojeLfU alice@laptop"
#: What a second key needs, which costs no root.
LET_IN = "log in by the key that it has, and let another in as well .ssh-copy-id -f -i FILE root@ADDRESS."
OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOther alice@laptop"
FLAVOR = {"name": "tp64.8x8", "memory_mb": 16384, "extra_specs": {"a": 1, "b": 2}}
TEN = list(range(10))


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "hetero" / "state.db")


@pytest.fixture
def store(path):
    with Store(path, "root pid 1") as opened:
        yield opened


def claim(store, instance="jackie", owner="alice", flavor=None, image="debian", key=KEY, boards=None, **more):
    instances = more.pop("instances", [instance])
    boards = TEN if boards is None else boards
    return store.claim(instance, instances, ClaimTerms(owner, flavor or FLAVOR, image, key), boards, **more)


def without_time(why):
    return re.sub(r"since \d+ s$", "since …", why)


def to_error(store, board, note="stalled at tftp"):
    store.move(board, board_states.BOOTING)
    store.move(board, board_states.ERROR, note)


def test_file_and_folder_are_the_owners_alone(store, path):
    claim(store)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(path + "-wal").st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700


def test_a_claim_holds_everything_it_was_asked_with_and_survives_reopening(store, path):
    before = time.time()
    [mine] = claim(store, lease_hours=2)
    store.close()
    with Store(path) as again:
        assert again.claim_of("jackie") == mine
        assert again.record(0).claim == mine
        assert [event.text for event in again.events()] == ["claimed for jackie by alice"]
    assert (mine.board, mine.instance, mine.request, mine.owner) == (0, "jackie", "jackie", "alice")
    assert (mine.flavor, mine.image, mine.ssh_public_key) == (FLAVOR, "debian", KEY)
    assert before <= mine.created <= time.time()
    assert mine.expires == pytest.approx(mine.created + 7200)


def test_the_order_of_candidates_is_the_order_of_choice(store):
    assert claim(store, "a", boards=[7, 3, 5])[0].board == 7
    assert claim(store, "b", boards=[7, 3, 5])[0].board == 3


def test_the_same_request_again_changes_nothing(store):
    [first] = claim(store)
    events = store.events()
    reordered = {"extra_specs": {"b": 2, "a": 1}, "memory_mb": 16384, "name": "tp64.8x8"}
    [again] = claim(store, flavor=reordered, key=KEY.replace("alice@laptop", "another comment"), boards=[9])
    assert again == first
    assert store.events() == events


@pytest.mark.parametrize(
    ("other", "word", "way"),
    [
        ({"flavor": {"name": "x"}}, "flavor", "terminate it first, a flavor stays"),
        ({"image": "centos"}, "image", "rebuild it .*playbook hetero.compute.rebuild_instance"),
        ({"key": OTHER_KEY}, rf"ssh key \(it has {PRINT}\)", f"{LET_IN}; or rebuild it .*rebuild_instance"),
    ],
)
def test_another_flavor_image_or_key_is_refused_and_pointed_to_a_way(store, other, word, way):
    claim(store)
    with pytest.raises(Refused, match=f"jackie: has board0 with another {word}: {way}"):
        claim(store, **other)


def test_no_rebuild_is_advised_to_an_image_that_is_not_there(store):
    """Lost: trust in the way on, which fails as typed; or the instance, where the way is to end it first."""
    claim(store)
    for other in ({}, {"flavor": {"name": "x"}}):
        with pytest.raises(Refused, match=r"another .*image: no image centos in its store: choose another image$"):
            claim(store, image="centos", no_image="no image centos in its store", **other)
    with pytest.raises(Refused, match=r"another ssh key.*; or rebuild it"):
        claim(store, key=OTHER_KEY, no_image="not asked for")


def test_a_claim_is_in_the_history_under_the_name_that_earlier_releases_gave_it(store):
    """Who has a board since when would be forgotten with an upgrade, and a board of somebody's be taken for unused."""
    claim(store)
    assert [(event.phase, event.text) for event in store.events()] == [("claim", "claimed for jackie by alice")]


def test_another_owners_name_is_refused_without_their_secrets(store):
    claim(store)
    with pytest.raises(Refused) as refusal:
        claim(store, owner="bob", key=OTHER_KEY, image="centos")
    assert str(refusal.value) == "jackie: belongs to alice: choose another name"
    assert "AAAA" not in repr(refusal.value.failure)
    assert "debian" not in repr(refusal.value.failure)


def test_none_free_says_why_for_each_board_and_changes_nothing(store):
    claim(store, "runs")
    store.move(0, board_states.BOOTING)
    store.move(0, board_states.RUNNING)
    claim(store, "waits")
    claim(store, "fails")
    to_error(store, 2)
    store.move(3, board_states.MAINTENANCE, "new fan")
    with pytest.raises(NoneFree) as none:
        claim(store, "late", boards=[0, 1, 2, 3])
    assert {name: without_time(why) for name, why in none.value.facts["rejected"].items()} == {
        "board0": "running runs since …",
        "board1": "claimed for waits since …",
        "board2": "error: stalled at tftp",
        "board3": "maintenance: new fan",
    }
    assert store.claim_of("late") is None


def test_the_reason_counts_the_time_since_the_board_changed_state(store):
    [mine] = claim(store)
    record = Record(0, board_states.RUNNING, since=1000.0, claim=mine)
    assert why_not_free(record, 1000.0 + 125) == "running jackie since 2 min"
    assert why_not_free(record, 900.0) == "running jackie since 0 s"  # a clock set back
    assert why_not_free(Record(0, board_states.SHUTTING_DOWN, since=1000.0), 4700.0) == "shutting down since 1 h"
    assert [age(seconds) for seconds in (0, 59, 60, 3600, 86400 * 3)] == ["0 s", "59 s", "1 min", "1 h", "3 d"]


def test_several_are_all_or_nothing_unless_partial(store):
    names = ["lab-1", "lab-2", "lab-3"]
    with pytest.raises(NoneFree, match="lab: wants 3 boards, 2 free"):
        claim(store, "lab", instances=names, boards=[4, 5])
    assert store.claims() == []
    some = claim(store, "lab", instances=names, boards=[4, 5], partial=True)
    assert [(one.instance, one.board, one.request) for one in some] == [("lab-1", 4, "lab"), ("lab-2", 5, "lab")]
    # a later run takes what is missing, and only that
    full = claim(store, "lab", instances=names, boards=[4, 5, 6])
    assert [(one.instance, one.board) for one in full] == [("lab-1", 4), ("lab-2", 5), ("lab-3", 6)]
    assert store.claims("lab") == full
    assert store.claims("another") == []


def test_partial_with_nothing_at_all_is_none_free(store):
    with pytest.raises(NoneFree):
        claim(store, "lab", instances=["lab-1", "lab-2"], boards=[], partial=True)


def test_one_refused_name_of_several_takes_no_board(store):
    claim(store, "lab-2", owner="bob")
    with pytest.raises(Refused, match="lab-2: belongs to bob"):
        claim(store, "lab", instances=["lab-1", "lab-2"])
    assert [one.instance for one in store.claims()] == ["lab-2"]


@pytest.mark.parametrize(
    ("there", "asked", "words"),
    [
        (
            ("lab", ["lab-1", "lab-2"]),
            ("lab", ["lab"]),
            r"lab: stands for several that are there \(lab-1, lab-2\): add -e count=2, or choose another name",
        ),
        (
            ("lab", ["lab"]),
            ("lab", ["lab-1", "lab-2"]),
            "lab: is an instance by itself, and cannot be several: choose another name for several",
        ),
        (
            ("lab-1", ["lab-1"]),
            ("lab", ["lab-1", "lab-2"]),
            "lab-1: is an instance by itself, and cannot be one of several: choose another name for several",
        ),
        (
            ("lab-1", ["lab-1"]),
            ("lab", ["lab-1"]),
            "lab-1: is an instance by itself, and cannot be one of several: choose another name for several",
        ),
    ],
)
def test_a_name_is_one_instances_or_that_of_several(store, there, asked, words):
    """Lost: lab-1 and lab-2, when somebody who forgot count= ends the lab that came beside them; or a request that
    claims boards and never comes up, as each verb finds claims by its name that it did not look up.
    """
    claim(store, there[0], instances=there[1])
    before = store.claims()
    with pytest.raises(Refused, match=f"^{words}$"):
        claim(store, asked[0], instances=asked[1])
    assert store.claims() == before


def test_one_of_several_is_asked_for_by_its_name_and_several_grow(store):
    """Lost: an instance of several that is looked after by itself; or more of them, later."""
    claim(store, "lab", instances=["lab-1", "lab-2"])
    assert [one.instance for one in claim(store, "lab-1", instances=["lab-1"])] == ["lab-1"]
    assert len(claim(store, "lab", instances=["lab-1", "lab-2", "lab-3"])) == 3


@pytest.mark.parametrize(
    ("theirs", "ours", "name"),
    [
        (("lab", ["lab-1", "lab-2"]), ("lab-2", ["lab-2"]), "lab-2"),
        (("lab-2", ["lab-2"]), ("lab", ["lab-1", "lab-2", "lab-3"]), "lab-2"),
        (("lab", ["lab-1", "lab-2"]), ("lab", ["lab"]), "lab"),
        (("lab", ["lab"]), ("lab", ["lab-1", "lab-2"]), "lab"),
        (("lab", ["lab-1", "lab-2"]), ("lab-1", ["lab-1-1", "lab-1-2"]), "lab-1"),
        (("lab-1", ["lab-1-1", "lab-1-2"]), ("lab", ["lab-1", "lab-2"]), "lab-1"),
        (("lab", ["lab-2"]), ("lab", ["lab-7", "lab-8"]), "lab"),
    ],
)
def test_a_name_is_one_owners_as_an_instance_and_as_a_request(store, theirs, ours, name):
    """Lost: verbs take either, so that bob could make what ann asked for as one partly his, and nobody could end it."""
    claim(store, theirs[0], instances=theirs[1], owner="ann")
    before = store.claims()
    with pytest.raises(Refused, match=rf"^{name}: belongs to ann: choose another name$"):
        claim(store, ours[0], instances=ours[1], owner="bob", boards=[4, 5, 6])
    assert store.claims() == before
    assert claim(store, "lab-9", owner="bob", boards=[7])[0].owner == "bob"


def test_a_board_in_error_keeps_its_claim_until_it_is_moved(store):
    [first] = claim(store)
    store.put("jackie", host_key="ssh-ed25519 HOST", image_hash="abc", boot_source="nfs")
    to_error(store, 0)
    assert claim(store)[0].board == 0
    moved = store.move_claim("jackie", [0, 1, 2])
    assert (moved.board, moved.created, moved.owner) == (1, first.created, "alice")
    assert (moved.host_key, moved.image_hash, moved.boot_source) == (None, None, "nfs")
    assert (store.record(0).state, store.record(0).note, store.record(0).claim) == ("error", "stalled at tftp", None)
    assert [event.text for event in store.events(boards=[1])] == ["jackie moved here from board0"]


def test_a_claim_is_moved_only_from_error_and_only_to_a_free_board(store):
    claim(store)
    claim(store, "other", boards=[1])
    with pytest.raises(Refused, match="jackie: is on board0, which is in state 'power off'"):
        store.move_claim("jackie", TEN)
    with pytest.raises(Refused, match="nobody: is no instance"):
        store.move_claim("nobody", TEN)
    to_error(store, 0)
    with pytest.raises(NoneFree) as none:
        store.move_claim("jackie", [0, 1])
    assert list(none.value.facts["rejected"]) == ["board1"]
    assert none.value.facts["rejected"]["board1"].startswith("claimed for other since ")
    assert store.claim_of("jackie").board == 0


def test_release_frees_board_and_name_and_a_second_one_does_nothing(store):
    claim(store)
    store.move(0, board_states.BOOTING)
    store.move(0, board_states.SHUTTING_DOWN)
    store.release(0, store.claim_of("jackie"))
    assert store.record(0).state == board_states.POWER_OFF
    assert store.claims() == []
    events = store.events()
    store.release(0, None)
    assert store.events() == events
    assert claim(store, owner="bob")[0].board == 0


def test_a_running_board_is_not_released(store):
    claim(store)
    store.move(0, board_states.BOOTING)
    store.move(0, board_states.RUNNING)
    with pytest.raises(Refused, match="cannot go to 'power off'"):
        store.release(0, store.claim_of("jackie"))
    assert store.claim_of("jackie").board == 0


def test_who_claimed_a_board_while_it_was_freed_keeps_it(store):
    """Lost: a claim, ended by who freed the board for its last tenant, or for nobody."""
    (mine,) = claim(store)
    for last in (None, replace(mine, created=mine.created - 1), replace(mine, instance="eve")):
        with pytest.raises(Refused, match="was claimed for jackie meanwhile"):
            store.release(0, last)
    assert store.claim_of("jackie") == mine


def test_every_way_between_states_is_allowed_as_the_design_says_and_no_other(tmp_path):
    for start, ways in board_states.TRANSITIONS.items():
        for end in board_states.TRANSITIONS:
            with Store(str(tmp_path / f"{start}-{end}.db")) as store:
                store._upsert(0, state=start, since=5.0, note="as found")
                if end in ways:
                    store.move(0, end, "why")
                    assert (store.record(0).state, store.record(0).note) == (end, "why")
                    assert store.record(0).since > 5.0
                    assert store.events()[0].text == f"{start} → {end}: why"
                elif end == start:
                    store.move(0, end, "as found")
                    assert store.events() == []
                    store.move(0, end, "a new note")
                    assert (store.record(0).since, store.record(0).note) == (5.0, "a new note")
                    assert [event.text for event in store.events()] == [f"still {start}: a new note"]
                else:
                    with pytest.raises(Refused, match="from there: "):
                        store.move(0, end)
                    assert store.record(0).state == start
                    assert store.events() == []


def test_a_board_nobody_touched_is_off_since_nobody_knows_when(store):
    assert store.records([4, 2]) == {4: Record(4), 2: Record(2)}
    assert store.record(4).since is None
    store.power_seen(4, "on")
    assert (store.record(4).power, store.record(4).state, store.record(4).since) == ("on", board_states.POWER_OFF, None)
    assert store.record(4).power_seen == pytest.approx(time.time(), abs=5)
    with pytest.raises(ValueError, match="maybe"):
        store.power_seen(4, "maybe")


@pytest.mark.parametrize("others", [0, 200])
def test_what_is_recorded_of_few_boards_is_what_is_recorded_of_many(store, others):
    """Lost: a state or a claim that one question shows and another one hides."""
    (taken,) = claim(store, boards=[3])
    to_error(store, 5)
    asked = [5, 3, *range(1000, 1000 + others)]
    found = store.records(asked)
    assert list(found) == asked
    assert (found[3].claim, found[5].state, found[5].note) == (taken, board_states.ERROR, "stalled at tftp")


def test_put_changes_what_was_found_out_and_nothing_else(store):
    claim(store)
    store.put("jackie", host_key="ssh-ed25519 H", expires=5.0)
    assert (store.claim_of("jackie").host_key, store.claim_of("jackie").expires) == ("ssh-ed25519 H", 5.0)
    with pytest.raises(TypeError, match="owner"):
        store.put("jackie", owner="mallory")
    with pytest.raises(Refused, match="nobody: is no instance"):
        store.put("nobody", host_key="x")


def test_events_are_read_on_from_where_one_stopped(store):
    claim(store)
    first = store.event(0, "power", "off → on", seconds=0.4)
    second = store.event(1, "wait", "held by another", instance="bob")
    third = store.event(0, "tftp", "kernel fetched")
    assert [event.id for event in store.events(after=first)] == [second, third]
    assert [event.id for event in store.events(after=first, boards=[0])] == [third]
    assert [event.id for event in store.events(instance="bob")] == [second]
    assert [event.id for event in store.events(after=1, limit=1)] == [first]
    assert [event.id for event in store.newest_events(0, 2)] == [first, third]
    assert store.events(boards=[]) == []
    power = store.events(after=first - 1)[0]
    assert (power.actor, power.board, power.instance, power.phase) == ("root pid 1", 0, "jackie", "power")
    assert (power.text, power.seconds) == ("off → on", 0.4)
    assert power.time == pytest.approx(time.time(), abs=60)


def test_a_transaction_is_all_or_nothing_and_a_dry_one_nothing(store):
    with store.transaction(dry=True):
        assert claim(store)[0].board == 0
        store.move(0, board_states.BOOTING)
        assert store.record(0).state == board_states.BOOTING
    assert (store.claims(), store.events(), store.record(0)) == ([], [], Record(0))
    with pytest.raises(Refused, match="nobody"), store.transaction():  # noqa: PT012
        claim(store)
        store.put("nobody", host_key="x")
    assert (store.claims(), store.events()) == ([], [])
    with store.transaction():
        claim(store)
    assert store.claim_of("jackie").board == 0


def test_threads_share_one_store(store):
    """One module serves many boards at once."""

    def work(board):
        for turn in range(20):
            with store.transaction():
                store.power_seen(board, "on")
                store.event(board, "power", str(turn))

    threads = [threading.Thread(target=work, args=(board,)) for board in TEN]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for board in TEN:
        assert [event.text for event in store.events(boards=[board])] == [str(turn) for turn in range(20)]


@pytest.mark.parametrize("name", ["a", "0", "jackie", "ml-8", "a--b", "a" * 63])
def test_instance_names_that_are_host_names(name):
    assert valid_instance(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "-a", "a-", "A", "a.b", "a_b", "a" * 64, "jackie\n", "../x", "a b", "ä", "'; DROP TABLE claims", None, 5],
)
def test_instance_names_that_are_none(store, name):
    with pytest.raises(BadInput, match="is no instance name"):
        claim(store, instances=[name])
    assert store.claims() == []


def test_keys_are_the_same_by_type_and_body():
    assert key_body(KEY) == key_body(f'from="10.0.0.0/8" {KEY} and more\n')
    assert key_body(KEY) != key_body(OTHER_KEY)
    assert key_body(KEY) != key_body(f"{KEY}\n{OTHER_KEY}")
    assert key_body("no key") != key_body("no other key")


# ---- files that are not as they should be


def test_information_and_check_mode_make_no_file(path):
    with Store(path, create=False) as store:
        assert store.claims() == []
        assert claim(store)[0].board == 0
    assert not os.path.exists(os.path.dirname(path))
    os.makedirs(os.path.dirname(path))
    with open(path, "wb"):
        pass
    with Store(path, create=False) as store:
        assert store.record(0) == Record(0)
    assert os.path.getsize(path) == 0
    with Store(path) as store:
        claim(store)
    with Store(path, create=False) as store:
        assert store.claim_of("jackie").board == 0


def test_a_locked_database_is_named_after_the_time_it_was_waited_for(store, path):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with Store(path, busy=0.3) as second:
        start = time.monotonic()
        with pytest.raises(HeteroError) as error:
            claim(second)
        assert 0.25 <= time.monotonic() - start < 60
        assert second.claims() == []  # readers are not kept waiting
        other.execute("ROLLBACK")
        assert claim(second)[0].board == 0
    other.close()
    assert str(error.value).startswith(f"{path}: has been locked by another process for 0.3 s")
    assert f"fuser -v {path}" in str(error.value)


def test_an_exclusive_lock_is_no_traceback_either(store, path):
    store.close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(HeteroError, match="has been locked by another process"):
        Store(path, busy=0.2)
    other.close()


@pytest.mark.parametrize("content", [b"this is no database at all, but some text of a person\n" * 40, b"\x00" * 4096])
def test_a_file_of_something_else_is_named_and_kept(path, content):
    os.makedirs(os.path.dirname(path))
    with open(path, "wb") as file:
        file.write(content)
    with pytest.raises(HeteroError, match="is no SQLite database") as error:
        Store(path)
    assert path in str(error.value)
    assert "aside" in str(error.value)
    with open(path, "rb") as file:
        assert file.read() == content


def test_a_damaged_database_is_named_and_kept(path):
    with Store(path) as store:
        for name in range(200):
            claim(store, f"n-{name}", boards=[name])
    with open(path, "r+b") as file:
        size = os.path.getsize(path)
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    with pytest.raises(HeteroError, match="is damaged") as error, Store(path) as store:
        claim(store, "more")
    assert "/aside/ and then, where the inventory is: ansible-playbook hetero.compute.reconcile" in str(error.value)
    assert os.path.getsize(path) == size


@pytest.mark.parametrize(
    ("number", "release", "said"),
    [
        (LAYOUT.schema + 1, "4.12.7", "release 4.12.7 .*install release 4.12.7 of hetero.compute and run ansible-"),
        (LAYOUT.schema + 1, None, "a newer .*install a newer release of hetero.compute and run ansible-playbook"),
        (-1, None, "an older release .*: run ansible-playbook hetero"),
    ],
)
def test_another_schema_names_the_release_that_it_needs(store, path, number, release, said):
    """Lost: an hour of guessing which release a node was set up with, and a backup that says less than it has."""
    store.close()
    other = sqlite3.connect(path)
    assert other.execute("PRAGMA application_id").fetchone()[0] == as_number(RELEASE)
    other.execute(f"PRAGMA user_version = {number}")
    other.execute(f"PRAGMA application_id = {as_number(release) if release else 0}")
    other.close()
    with pytest.raises(HeteroError, match=f"has schema {number}, written by {said}"):
        Store(path)


def test_a_database_of_an_earlier_release_is_signed_when_it_is_opened_to_be_written(store, path):
    store.close()
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA application_id = 0")
    for create, number in ((False, 0), (True, as_number(RELEASE))):
        Store(path, create=create).close()
        with closing(sqlite3.connect(path)) as other:
            assert other.execute("PRAGMA application_id").fetchone()[0] == number


def test_the_database_of_another_program_is_left_alone(path):
    os.makedirs(os.path.dirname(path))
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE songs (title)")
    other.close()
    with pytest.raises(HeteroError, match="is a database of something else"):
        Store(path)


@pytest.mark.parametrize("what", ["folder", "loop", "nowhere", "log"])
def test_what_is_no_file_is_not_to_be_made_readable(path, what):
    """Lost: the way back, to a remedy that cannot help."""
    named = Path(f"{path}-wal" if what == "log" else path)
    named.parent.mkdir(exist_ok=True)
    if what == "log":
        Store(path, create=True).close()
    if what in ("folder", "log"):
        named.unlink(missing_ok=True)
        named.mkdir()
    else:
        named.symlink_to(named if what == "loop" else "/nowhere/state.db")
    with pytest.raises(HeteroError, match="is no file, nor leads to one") as error, Store(path) as store:
        store.claims()
    assert error.value.thing == str(named)
    assert "readable and writable" not in str(error.value)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(HeteroError, match=r"cannot be made .*: make .* writable"):
        Store("/proc/hetero/state.db")
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file" / "state.db", tmp_path):
        with pytest.raises(HeteroError, match=f"{wrong}: (cannot be opened .*: make|is no file, .*: see what it is)"):
            Store(str(wrong))


READ_ONLY = """
import os, sys
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
os.setgid(65534); os.setuid(65534)
try:
    with Store(sys.argv[1]) as store:
        store.power_seen(0, "on")
except HeteroError as error:
    print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="root becomes nobody here")
@pytest.mark.parametrize(("folder_mode", "file_mode"), [(0o555, 0o444), (0o555, 0o600), (0o777, 0o444)])
def test_another_users_database_is_named(tmp_path, folder_mode, file_mode):
    folder = tmp_path / "hetero"
    path = str(folder / "state.db")
    with Store(path) as store:
        claim(store)
    for parent in [folder, *folder.parents][:4]:
        if parent != folder and parent.stat().st_uid == os.geteuid() and parent.name.startswith(("pytest", "test_")):
            parent.chmod(0o755)
    os.chmod(path, file_mode)
    folder.chmod(folder_mode)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, path],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "writable for user id 65534" in done.stdout
    assert path in done.stdout


def test_backups_hold_what_was_claimed_and_survive_damage(path):
    """Lost: who has which board, with the one file that knew it."""
    with Store(path) as store:
        claim(store, "jackie")
        made = backups.make(path)  # while the store is in use
        assert backups.make(path) is None, "the same again is no new copy"
        claim(store, "bob")
    assert stat.S_IMODE(os.stat(made).st_mode) == 0o600
    with Store(made, create=False) as copy:
        assert [held.instance for held in copy.claims()] == ["jackie"]
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (os.path.getsize(path) - 4096))
    with pytest.raises(HeteroError, match=re.escape(made)):
        backups.make(path)
    assert backups.copies(path) == [made]
    with pytest.raises(HeteroError, match=re.escape(made)), Store(path) as store:
        claim(store, "eve")


def test_damage_that_no_query_of_ours_meets_is_found(path):
    """Lost: the day on which a copy from before the damage was still kept."""
    with Store(path) as store:
        claim(store, "jackie")
        for number in range(400):
            store.event(7, "note", f"{number} " + "x" * 100)
        store.must_be_whole()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'claims'").fetchone()[0]
    pages = os.path.getsize(path) // 4096
    damaged = next(page for page in range(pages - 2, 0, -1) if page > root + 4)
    with open(path, "r+b") as file:
        file.seek((damaged - 1) * 4096)
        file.write(b"\xff" * 4096)
    with Store(path) as store:
        assert [held.instance for held in store.claims()] == ["jackie"]
        with pytest.raises(HeteroError, match=r"is damaged \(SQLite: (.|\n)*/aside/ and then"):
            store.must_be_whole()
    with pytest.raises(HeteroError, match="was not copied"):
        backups.make(path)
