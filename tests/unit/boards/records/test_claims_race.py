# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, two users are given one board, or a play that was killed leaves a database nobody can use. Every
claimer is a process of its own; all are let go at the same moment."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store
from ansible_collections.hetero.compute.tests.turns import in_turns

PROCESSES = 20
ROUNDS = 4

START = """
import json, sys
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store, ClaimTerms
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree, Refused
path, me = sys.argv[1:]
def claim(store, name, owner=me, boards=range(10)):
    terms = ClaimTerms(owner, {"name": "tp64.8x8"}, "debian", "ssh-ed25519 AAAA")
    return store.claim(name, [name], terms, list(boards))
print("ready", flush=True)
sys.stdin.readline()
"""

ONE_EACH = (
    START
    + """
try:
    with Store(path) as store:
        print(json.dumps({"board": claim(store, me)[0].board}))
except NoneFree as none:
    print(json.dumps(none.facts["rejected"]))
"""
)

ONE_NAME = (
    START
    + """
try:
    with Store(path) as store:
        print(json.dumps({"board": claim(store, "jackie")[0].board}))
except Refused as refused:
    print(json.dumps({"refused": str(refused)}))
"""
)

AGAIN_AND_AGAIN = (
    START
    + """
while True:
    with Store(path) as store:
        try:
            [mine] = claim(store, me)
        except NoneFree:
            continue
        assert store.claim_of(me).board == mine.board
        store.release(mine.board, mine)
"""
)

STOP_INSIDE = (
    START
    + """
with Store(path) as store, store.transaction():
    claim(store, me)
    print("inside", flush=True)
    sys.stdin.readline()
"""
)


@pytest.fixture
def crowd(tmp_path):
    """Start claimers and let them go; each is killed at the end."""
    started = []

    def start(script, names, path):
        claimers = [
            subprocess.Popen(
                [sys.executable, "-c", script, str(path), name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in names
        ]
        started.extend(claimers)
        for claimer in claimers:
            assert claimer.stdout.readline() == "ready\n"
        for claimer in claimers:
            claimer.stdin.write("go\n")
            claimer.stdin.flush()
        return claimers

    yield start
    for claimer in started:
        claimer.kill()
        claimer.wait(timeout=60)
        claimer.stdin.close()
        claimer.stdout.close()


def answers(claimers):
    for claimer in claimers:
        assert claimer.wait(timeout=120) == 0
    return [json.loads(claimer.stdout.read()) for claimer in claimers]


def integrity(path):
    db = sqlite3.connect(path)
    try:
        return db.execute("PRAGMA integrity_check").fetchone()[0]
    finally:
        db.close()


@pytest.mark.parametrize("turn", in_turns(range(ROUNDS), ROUNDS))
def test_twenty_at_once_on_ten_boards_ten_win_and_ten_are_told_why(tmp_path, crowd, turn):
    """The database does not exist yet either: all of them create it."""
    path = tmp_path / "state.db"
    names = [f"user-{number}" for number in range(PROCESSES)]
    got = answers(crowd(ONE_EACH, names, path))
    won = {name: answer["board"] for name, answer in zip(names, got) if "board" in answer}
    lost = [answer for answer in got if "board" not in answer]
    assert sorted(won.values()) == list(range(10))
    assert len(lost) == PROCESSES - 10
    for rejected in lost:
        assert list(rejected) == [f"board{board}" for board in range(10)]
        for board, why in rejected.items():
            owner = next(name for name, number in won.items() if f"board{number}" == board)
            assert why.startswith(f"claimed for {owner} since ")
    with Store(path) as store:
        assert {claim.instance: claim.board for claim in store.claims()} == won
        assert sorted(event.instance for event in store.events()) == sorted(won)


def test_one_name_from_twenty_owners_is_one_owners(tmp_path, crowd):
    path = tmp_path / "state.db"
    got = answers(crowd(ONE_NAME, [f"user-{number}" for number in range(PROCESSES)], path))
    with Store(path) as store:
        [claim] = store.claims()
    assert [answer for answer in got if "board" in answer] == [{"board": claim.board}]
    refused = [answer["refused"] for answer in got if "refused" in answer]
    assert refused == [f"jackie: belongs to {claim.owner}: choose another name"] * (PROCESSES - 1)


def test_claimers_killed_at_any_moment_leave_a_whole_database(tmp_path, crowd):
    path = tmp_path / "state.db"
    chance = random.Random(20)
    for turn in range(5):
        claimers = crowd(AGAIN_AND_AGAIN, [f"user-{turn}-{number}" for number in range(4)], path)
        time.sleep(chance.uniform(0.02, 0.2))
        for claimer in claimers:
            assert claimer.poll() is None, "a claimer ended by itself"
            claimer.kill()
        for claimer in claimers:
            claimer.wait(timeout=60)
    assert integrity(path) == "ok"
    with Store(path, busy=1) as store:
        claims = store.claims()
        assert len({claim.board for claim in claims}) == len(claims) <= 10
        for name in {event.instance for event in store.events(limit=100000)}:
            story = [event.phase for event in store.events(instance=name, limit=100000)]
            held = any(claim.instance == name for claim in claims)
            # claim and release take turns, and the last word of the history is what the claims say
            assert story == (["claim", "release"] * len(story))[: len(story)]
            assert (story[-1] == "claim") == held


def test_a_claimer_killed_inside_its_transaction_has_claimed_nothing(tmp_path, crowd):
    path = tmp_path / "state.db"
    [claimer] = crowd(STOP_INSIDE, ["killed"], path)
    assert claimer.stdout.readline() == "inside\n"
    claimer.kill()
    claimer.wait(timeout=60)
    with Store(path, busy=0.2) as store:
        assert store.claims() == []
        assert store.claim("next", ["next"], ClaimTerms("me", {}, "debian", "ssh-ed25519 AAAA"), [0])[0].board == 0
    assert integrity(path) == "ok"
    assert os.path.getsize(path) > 0


def test_a_database_is_made_although_its_switch_to_wal_meets_a_lock(tmp_path, monkeypatch):
    """Lost: the first claim on a node, to others that begin then: SQLite does not wait in each such case."""
    connect, left = sqlite3.connect, [2]

    class Locked(sqlite3.Connection):
        def execute(self, sql, *values):
            if sql.startswith("PRAGMA journal_mode = ") and left[0]:
                left[0] -= 1
                raise sqlite3.OperationalError("database is locked")
            return super().execute(sql, *values)

    monkeypatch.setattr(sqlite3, "connect", lambda *words, **more: connect(*words, **dict(more, factory=Locked)))
    path = tmp_path / "state.db"
    Store(str(path), "jo").close()
    assert left == [0]
    assert connect(path).execute("PRAGMA journal_mode").fetchone() == ("wal",)
