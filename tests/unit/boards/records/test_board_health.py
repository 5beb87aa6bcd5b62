# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The history of boards. If these fail, requests go to the board that fails again and again, or a sound one is blamed
for ever."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import board_health
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.board_health import (
    BOOT,
    CHECK,
    COUNTED,
    FAULT,
    KEPT,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups

DAY = 86400.0


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "hetero" / "state.db")


@pytest.fixture
def store(path):
    with Store(path, "root pid 1") as opened:
        yield opened


def test_the_score_is_of_the_newest_boots_and_checks(store):
    """Lost: a mended board that nobody gets any more, for the faults that it had a year ago."""
    assert (store.scores(), store.health([3]), store.record(3).score) == ({}, {}, 100)
    store.outcome(3, FAULT, False, "stalled at tftp")
    assert (store.scores(), store.record(3).score, store.record(3).state) == ({3: 0}, 0, "power off")
    for _boot in range(COUNTED - 1):
        store.outcome(3, BOOT, True)
    assert store.scores() == {3: 95}
    told = store.health([3, 4])
    assert list(told) == [3]
    assert (told[3]["score"], told[3]["passed"], told[3]["of"], told[3]["check"]) == (95, 19, 20, None)
    assert [(one["what"], one["text"]) for one in told[3]["failures"]] == [(FAULT, "stalled at tftp")]
    store.outcome(3, CHECK, True, figures={"ram": {"mb": 512}})
    assert store.scores() == {}, "after as many good boots it is as good as the others"
    assert store.health([3])[3]["check"]["figures"] == {"ram": {"mb": 512}}
    assert list(store.checked()) == [3]


def test_a_failure_is_never_rounded_away(store, monkeypatch):
    """Lost: the board that fails once in a while, in a full score."""
    monkeypatch.setattr(board_health, "COUNTED", KEPT)
    store.outcome(1, FAULT, False, "its outlet is off and it answers")
    for _boot in range(KEPT - 1):
        store.outcome(1, BOOT, True)
    assert store.scores() == {1: 99}


def test_the_history_is_bounded(store, path):
    """Lost: the disk of a node whose boards boot ten times a day for years."""
    for number in range(KEPT + 30):
        store.outcome(0, BOOT, True, str(number))
    store.outcome(1, FAULT, False, "x" * 10000)
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT board, count(*), min(CAST(text AS INTEGER)) FROM health GROUP BY board").fetchall()
        assert rows == [(0, KEPT, 30), (1, 1, 0)]
        db.execute("UPDATE health SET time = ?", (time.time() - 100 * DAY,))
        db.commit()
    assert len(store.health([1])[1]["failures"][0]["text"]) <= board_health.LONGEST + 20
    store.prune(90, time.time())
    with closing(sqlite3.connect(path)) as db:
        found = db.execute("SELECT board, count(*) FROM health GROUP BY board").fetchall()
    assert found == [(0, COUNTED), (1, 1)], "what is counted stays, whatever its age"


def test_a_history_that_cannot_be_read_stops_nobody(store, path):
    """Lost: the status of all boards, for a byte of one check."""
    store.outcome(0, CHECK, False, "disk: slow", {"disk": {}})
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE health SET figures = '{'")
        db.commit()
    assert store.health([0])[0]["check"]["figures"] == {}


def before(path):
    """The database as the release before wrote it."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE health")
        db.execute("CREATE TABLE older AS SELECT board, state, since, power, power_seen, note FROM boards")
        db.execute("DROP TABLE boards")
        db.execute(
            "CREATE TABLE boards (board INTEGER PRIMARY KEY, state TEXT NOT NULL, since REAL,"
            " power TEXT, power_seen REAL, note TEXT NOT NULL DEFAULT '')"
        )
        db.execute("INSERT INTO boards SELECT * FROM older")
        db.execute("DROP TABLE older")
        for table in ("energy", "tickets", "went_first"):
            db.execute(f"DROP TABLE {table}")
        db.execute("PRAGMA user_version = 1")
        db.commit()


def test_an_older_database_has_the_history_of_its_events(store, path):
    """Lost: all that a node has seen of its boards, with the update; or the update, where the node has many events."""
    for _boot in range(3):
        store.move(2, "booting")
        store.move(2, "running")
        store.move(2, "shutting down")
        store.move(2, "power off")
    store.event(2, "error", "kept out of use: stalled at tftp after 41 s, twice")
    store.event(2, "error", "stalled at tftp; trying again")
    store.event(None, "error", "kept out of use: nobody")
    for number in range(KEPT + 5):
        store.event(7, "error", f"kept out of use: {number}")
    store.close()
    before(path)
    with Store(path, create=False) as looked:
        assert looked.scores() == {2: 75, 7: 0}, "a look reads a copy"
    with Store(path) as upgraded:
        assert upgraded.scores() == {2: 75, 7: 0}
        told = upgraded.health([2, 7])
        assert (told[2]["passed"], told[2]["of"]) == (3, 4)
        assert told[2]["failures"][0]["text"] == "stalled at tftp after 41 s, twice"
        assert told[7]["failures"][0]["text"] == str(KEPT + 4)
        upgraded.outcome(2, BOOT, True)
        assert upgraded.scores()[2] == 80
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM health WHERE board = 7").fetchone()[0] == KEPT
    assert len(backups.copies(path)) == 1
