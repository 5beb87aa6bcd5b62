# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies in memory of a database that is only read. If these fail, `status` of a node whose disk is full or read-only
shows nothing, or what was true an hour ago.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, nullcontext

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import database_copy


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "state.db")
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE boards (name TEXT)")
        db.execute("INSERT INTO boards VALUES ('board1')")
        db.commit()
    return path


def connect(path, _mode, _busy):
    return sqlite3.connect(path)


def boards(db):
    return [row[0] for row in db.execute("SELECT name FROM boards")]


def opened(path, how, busy=0.0):
    return database_copy.opened(path, how, nullcontext, busy)


def test_a_file_that_can_be_opened_is_no_copy(path):
    """Lost: what others write while somebody looks."""
    found = opened(path, connect)
    with closing(found.db):
        assert boards(found.db) == ["board1"]
    assert (found.when, found.why) == (None, ())


def test_on_a_full_disk_a_copy_in_memory_is_read(path):
    """Lost: `status`, on the node where a person must see what can go."""

    def full(where, mode, busy):
        if mode == "NORMAL" and where != ":memory:":
            raise sqlite3.OperationalError("database or disk is full")
        return connect(where, mode, busy)

    found = opened(path, full, busy=5.0)
    with closing(found.db):
        assert boards(found.db) == ["board1"]
        assert found.db.execute("PRAGMA database_list").fetchall()[0][2] == "", "it has no file"
    assert found.when == database_copy.written(path)
    assert found.why == database_copy.FULL


def test_on_a_read_only_disk_the_copy_has_what_the_log_has(path, monkeypatch):
    """Lost: the newest claims, which are in the log until SQLite folds it in."""
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("INSERT INTO boards VALUES ('board2')")
        writer.commit()

        def no_index(where, mode, busy):
            if where == path:
                raise sqlite3.OperationalError("attempt to write a readonly database")
            return connect(where, mode, busy)

        monkeypatch.setattr(database_copy, "is_read_only", lambda _folder: True)
        found = opened(path, no_index)
        with closing(found.db):
            assert boards(found.db) == ["board1", "board2"]
        assert found.why[0] == "is on a file system that is read-only"
        assert path.rpartition("/")[0] in found.why[1], "the remedy names the file system"


def test_another_fault_is_not_hidden_by_a_copy(path):
    """Lost: that the database is damaged."""

    def damaged(*_args):
        raise sqlite3.OperationalError("database disk image is malformed")

    with pytest.raises(sqlite3.OperationalError, match="malformed"):
        opened(path, damaged)


def test_each_change_is_seen(path):
    """Lost: what others wrote since the copy, for whoever asks whether it is still true."""
    before = database_copy.written(path)
    assert database_copy.written(path) == before
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO boards SELECT hex(randomblob(999)) FROM boards")
        db.commit()
    assert database_copy.written(path) != before
    assert database_copy.written("/none/state.db") == []


def test_a_folder_that_takes_files_is_not_read_only(tmp_path):
    """Lost: the truth of the reason."""
    assert not database_copy.is_read_only(str(tmp_path))
    assert list(tmp_path.iterdir()) == [], "it was asked without a file"
    assert not database_copy.is_read_only(str(tmp_path / "none")), "what is missing is no read-only file system"
