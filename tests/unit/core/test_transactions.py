# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Transactions that are committed together. If these fail, what a process that was killed had told is not there, what
one board's fault took back was another's, or a disk that writes slowly makes a rack of boards wait for each other.

Tests core/database.py.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import threading

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import transactions
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.database import Database, Layout
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.write_turns import turn

LAYOUT = Layout(1, ("CREATE TABLE seen (board INTEGER UNIQUE)",), "set it up", lambda path: f"restore {path}")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "state.db")


@pytest.fixture
def database(path):
    one = Database(path, LAYOUT, busy=1.0)
    yield one
    one.close()


def add(database, *boards):
    with database.transaction():
        for board in boards:
            database.write("INSERT INTO seen VALUES (?)", (board,))
            database.touched[board] = True


def half(database, board, error):
    """A transaction that fails halfway."""
    with database.transaction():
        add(database, board)
        raise error


def seen(path):
    """What another process sees."""
    other = sqlite3.connect(path)
    try:
        return [row[0] for row in other.execute("SELECT board FROM seen ORDER BY board")]
    finally:
        other.close()


def group(database, *boards):
    with database.together():
        add(database, *boards)


def wait_for_turn(path):
    """Wait for the turn of another process in vain, with one look."""
    with turn(path, 0.01):
        pass


def test_they_are_there_for_others_all_at_once(database, path):
    """Lost: what the group saves, a wait for the disk for each; or what is read by who wrote it."""
    with database.together():
        add(database, 1)
        add(database, 2)
        with database.snapshot():
            assert len(database.rows("SELECT * FROM seen")) == 2
        assert seen(path) == []
    assert seen(path) == [1, 2]
    add(database, 3)
    assert seen(path) == [1, 2, 3], "alone again"


def test_what_is_to_be_known_before_what_follows_is_committed_at_once(database, path):
    """Lost: whom an outlet cut, to a process that is killed before the end of its turn."""
    with database.together():
        database.commit()
        add(database, 1)
        database.commit()
        assert seen(path) == [1]
        with database.transaction():
            add(database, 2)
            database.commit()
            assert seen(path) == [1], "a transaction is whole or not at all"
        add(database, 3)
        assert seen(path) == [1]
    assert seen(path) == [1, 2, 3]


def test_one_that_fails_takes_back_its_own_alone(database, path):
    """Lost: what was done with one board, to the fault of another; or half of what was done with a board."""
    with database.together():
        add(database, 1)
        with pytest.raises(KeyError):
            half(database, 2, KeyError("fault"))
        with pytest.raises(HeteroError):
            add(database, 3, 1)
        add(database, 4)
    assert seen(path) == [1, 4]


def test_what_was_done_before_an_error_is_committed(database, path):
    """Lost: what other boards' work wrote down, to an error of one."""

    def work():
        with database.together():
            add(database, 1)
            raise KeyError("fault")

    with pytest.raises(KeyError):
        work()
    assert seen(path) == [1]


def test_records_are_written_before_the_commit_of_each(database, path):
    """Lost: a claim, where the database has it and its own record does not."""
    kept = []
    database.before_commit = lambda touched: kept.append((dict(touched), seen(path)))
    with database.together():
        add(database, 1, 2)
        add(database, 3)
    assert kept == [({1: True, 2: True}, []), ({3: True}, [])]

    def full(touched):
        raise HeteroError("no space left", "claims", "make space")

    database.before_commit = full
    with database.together(), pytest.raises(HeteroError, match="no space left"):
        add(database, 4)
    assert seen(path) == [1, 2, 3]
    assert database.touched == {}


def test_what_could_not_be_committed_is_told_at_the_end_too(database, path, monkeypatch):
    """Lost: boards that are switched though nothing of it is written down, where who wrote it went on."""

    class Full:
        """A connection whose disk is full at the next commit."""

        def __init__(self, db):
            self.db, self.full = db, True

        def __getattr__(self, name):
            return getattr(self.db, name)

        def execute(self, sql, *values):
            if sql == "COMMIT" and self.full:
                self.full = False
                self.db.execute("ROLLBACK")
                raise sqlite3.OperationalError("database or disk is full")
            return self.db.execute(sql, *values)

    monkeypatch.setattr(database, "_db", Full(database._db))
    went_on = []

    def work():
        with database.together():
            add(database, 1)
            with pytest.raises(HeteroError, match="full"):
                database.commit()
            add(database, 2)
            went_on.append(True)

    with pytest.raises(HeteroError, match="full"):
        work()
    assert went_on
    assert seen(path) == [2]
    add(database, 3)
    assert seen(path) == [2, 3]


class Interrupted:
    """A connection: one statement is done, and a signal that came meanwhile raises then, as the interpreter has it."""

    def __init__(self, db, at):
        self.db, self.at = db, at

    def __getattr__(self, name):
        return getattr(self.db, name)

    def execute(self, sql, *values):
        done = self.db.execute(sql, *values)
        if sql == self.at:
            self.at = ""
            raise KeyboardInterrupt
        return done


def test_a_signal_as_it_begins_leaves_no_transaction_open(database, path):
    """Lost: all that a verb still wrote after Ctrl-C, and every other's turn until its process ended."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    signals = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    ends = threading.Timer(0.4, other.execute, ("ROLLBACK",))
    signals.start()
    ends.start()
    with pytest.raises(KeyboardInterrupt):
        add(database, 1)
    ends.join()
    other.close()
    assert seen(path) == []
    add(database, 2)
    assert seen(path) == [2]


@pytest.mark.parametrize("at", ["BEGIN IMMEDIATE", "SAVEPOINT part", "RELEASE part", "COMMIT"])
def test_a_signal_leaves_what_was_done_together_whole(database, path, monkeypatch, at):
    """Lost: which outlets were switched until Ctrl-C."""

    def work():
        with database.together():
            add(database, 1)
            monkeypatch.setattr(database, "_db", Interrupted(database._db, at))
            if at == "COMMIT":
                database.commit()
            elif at == "BEGIN IMMEDIATE":
                database.commit()
                add(database, 2)
            else:
                add(database, 2)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert seen(path) == [1] + [2] * (at == "RELEASE part")
    add(database, 3)
    assert seen(path)[-1] == 3
    with turn(path, 60):
        pass


def test_a_signal_before_the_commit_is_no_loss(database, path, monkeypatch):
    """Lost: the same, where it comes in the last moment."""

    def late(sql, *values):
        monkeypatch.undo()
        raise KeyboardInterrupt

    def work():
        with database.together():
            add(database, 1)
            before = Interrupted(database._db, "")
            before.execute = late
            monkeypatch.setattr(database, "_db", before)
            database.commit()

    with pytest.raises(KeyboardInterrupt):
        work()
    assert seen(path) == [1]
    add(database, 2)
    assert seen(path) == [1, 2]


def test_sqlite_may_take_back_all_of_it_at_any_of_them(database, path):
    """Lost: boards that are switched though their events went with those of another board, on a full disk."""

    def rolled_back():
        with database.transaction():
            database._db.execute("ROLLBACK")  # as SQLite does by itself where the disk is full
            raise HeteroError("is full", "the disk", "make space")

    def work():
        with database.together():
            add(database, 1)
            with pytest.raises(HeteroError):
                rolled_back()

    with pytest.raises(HeteroError):
        work()
    assert seen(path) == []
    add(database, 2)
    assert seen(path) == [2]


def test_a_killed_process_leaves_none_of_it_or_all(path, database):
    """Lost: half of what was told together; or the database, which the killed process had its turn to write to."""
    for where in ("before", "after"):
        pid = os.fork()
        if not pid:
            one = Database(path, LAYOUT, busy=1.0)
            with one.together():
                add(one, 1)
                add(one, 2)
                if where == "before":
                    os.kill(os.getpid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
        assert seen(path) == ([] if where == "before" else [1, 2])
    add(database, 3)
    assert seen(path) == [1, 2, 3]


def test_threads_of_the_process_wait_for_its_end(database, path):
    """Lost: a thread's own transaction, as a part of another's group that may yet fail."""
    began, found = threading.Event(), []

    def other():
        began.set()
        found.append([row[0] for row in database.rows("SELECT board FROM seen")])

    with database.together():
        add(database, 1)
        thread = threading.Thread(target=other)
        thread.start()
        began.wait(60)
        add(database, 2)
    thread.join(60)
    assert found == [[1, 2]]


def test_a_thread_that_commits_ends_nothing_of_anothers(database, path):
    """Lost: what is told together, to another thread's word in the middle of it."""
    with database.together():
        add(database, 1)
        thread = threading.Thread(target=database.commit)
        thread.start()
        thread.join(0.2)
        assert (thread.is_alive(), seen(path)) == (True, [])
    thread.join(60)
    assert seen(path) == [1]


def test_what_takes_long_is_committed_in_between(database, path, monkeypatch):
    """Lost: minutes of every other play, whose claims wait while one handles the outlets of a thousand boards."""
    monkeypatch.setattr(transactions, "LONGEST", 0.0)
    with database.together():
        add(database, 1)
        assert seen(path) == [1]
        add(database, 2)
        assert seen(path) == [1, 2]


def test_who_waits_has_a_turn_before_the_next_of_the_same(database, path, monkeypatch):
    """Lost: a person's claim, refused or late by a minute, beside a request for a rack of boards."""
    naps = []
    monkeypatch.setattr(transactions.Deadline, "nap", lambda self, seconds: naps.append(min(seconds, self.left)))
    monkeypatch.setattr(transactions, "GIVE_WAY", 60.0)  # which a busy machine does not use up before the nap

    group(database, 1)
    group(database, 5)
    assert naps == [0.0, 0.0], "nobody waits"
    with database.together():
        add(database, 2)
        thread = threading.Thread(target=wait_for_turn, args=(path,))
        thread.start()
        thread.join(60)
    del naps[:]
    add(database, 3)
    with database.together():
        add(database, 4)
    assert len(naps) == 1
    assert 0.0 < naps[0] <= transactions.GIVE_WAY


def test_a_dry_run_within_keeps_nothing_of_its_own(database, path):
    """Lost: what was done before a mere look, or nothing of it."""
    with database.together():
        add(database, 1)
        with database.transaction(dry=True):
            add(database, 2)
        add(database, 3)
    assert seen(path) == [1, 3]


def test_a_snapshot_may_go_before_the_first(database, path):
    """Lost: a verb, to an error of SQLite that no transaction begins within another."""
    with database.together():
        with database.snapshot():
            database.rows("SELECT * FROM seen")
        with database.together():
            add(database, 1)
        assert seen(path) == [], "a group within a group is a part of it"
    assert seen(path) == [1]


def test_where_nothing_is_kept_each_is_by_itself(tmp_path):
    """Lost: a dry run, which has no file to write to."""
    one = Database(str(tmp_path / "none.db"), LAYOUT, create=False)
    with one.together():
        add(one, 1)
        one.commit()
    one.close()
    assert os.listdir(tmp_path) == []
