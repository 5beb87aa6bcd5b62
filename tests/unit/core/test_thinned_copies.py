# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which copies of a database stay. If these fail, a proxy's disk fills up in a year, or the copy from before a mistake
is gone when the mistake is noticed.

Tests core/retention.py.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from datetime import datetime, timedelta, timezone

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups, retention
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError

BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)


def stamps(hours):
    """Stamps of copies that were made so many hours after the beginning."""
    return [(BEGIN + timedelta(hours=hour)).strftime(backups.STAMP) for hour in hours]


def left(every):
    gone = {*retention.surplus(every)}
    return [stamp for position, stamp in enumerate(every) if position not in gone]


def test_a_year_of_copies_is_hours_of_a_day_and_days_of_a_month():
    """Each hour one is made and others go, as on a node: what stays is the same as where all are thinned at once."""
    every, kept = stamps(range(365 * 24)), []
    for stamp in every:
        kept = left([*kept, stamp])
        assert len(kept) <= retention.COPIES_HOURS + retention.COPIES_DAYS
    assert kept[-24:] == every[-24:], "the last day's hours"
    assert kept == left(every)
    days = [stamp for stamp in kept if stamp not in every[-24:]]
    assert days == every[23:-24:24][-30:], "the last copy of each day of the month before"


def test_a_node_where_little_changes_keeps_old_copies():
    """Lost: all copies of a node that nobody used for a month, with the next one."""
    every = stamps(range(0, 24 * 400, 24 * 20))
    assert left(every) == every
    assert left(every[:1]) == every[:1]
    assert left([]) == []


def test_copies_by_hand_push_out_none_of_the_days():
    """Lost: a month of copies, to a hundred that were made in an hour."""
    hourly = stamps(range(24 * 40))
    by_hand = [(BEGIN + timedelta(days=40, seconds=one)).strftime(backups.STAMP) for one in range(100)]
    every = left([*hourly, *by_hand])
    assert every[-retention.COPIES_NEWEST :] == by_hand[-retention.COPIES_NEWEST :]
    assert {stamp[:8] for stamp in hourly[-24 * 30 :]} < {stamp[:8] for stamp in every}


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "state.db")


class Hours:
    """Copies as the timer makes them, by a clock that shows `now`."""

    def __init__(self, path, monkeypatch):
        self.path, self.now = path, BEGIN.timestamp()
        monkeypatch.setattr(time, "time", lambda: self.now)
        monkeypatch.setattr(time, "gmtime", lambda seconds=None, real=time.gmtime: real(seconds or self.now))

    def make(self, number=1, hours=1.0):
        made = []
        for _copy in range(number):
            self.now += hours * 3600
            with Store(self.path) as store:
                store.event(1, "note", f"at {self.now}")
            made.append(backups.make(self.path))
            os.utime(made[-1], (self.now, self.now))
        return made


@pytest.fixture
def hours(path, monkeypatch):
    monkeypatch.setattr(retention, "COPIES_NEWEST", 1)
    monkeypatch.setattr(retention, "COPIES_HOURS", 3)
    monkeypatch.setattr(retention, "COPIES_DAYS", 2)
    return Hours(path, monkeypatch)


def test_a_damaged_newer_copy_is_no_reason_to_remove_an_older_one(hours, path):
    """Lost: the last good copy, for the sake of one that nobody can use."""
    made = hours.make(4)
    assert backups.thin(path) == made[:1]
    with open(made[1], "r+b") as file:
        file.write(b"\xff" * 8192)
    hours.make(1)
    assert backups.thin(path) == made[1:2], "what takes its place is good"
    with open(made[2], "r+b") as file:
        file.truncate(100)
    with open(made[3], "r+b") as file:
        file.truncate(100)
    (newest,) = hours.make(1)
    with open(newest, "r+b") as file:
        file.write(b"\xff" * 8192)
    last_good = backups.newest_good(path)
    assert backups.thin(path) == []
    assert last_good in backups.copies(path)


def test_what_somebody_else_put_there_stays(hours, path):
    """Lost: a copy that an operator made by hand, under a name of his own; it is no newest copy either."""
    (first,) = hours.make(1)
    folder = os.path.dirname(first)
    theirs = [os.path.join(folder, name) for name in ("state-before-the-move.db", "notes.txt", "state-1.db", "x.db")]
    for one in theirs:
        with open(one, "wb") as file:
            file.write(b"theirs")
    link, directory = (os.path.join(folder, f"state-2025010{day}T000000Z.db") for day in (1, 2))
    os.symlink(path, link)
    os.mkdir(directory)
    (*_older, newest) = hours.make(30)
    assert backups.newest_good(path) == backups.copies(path)[-1] == newest
    assert all(map(os.path.lexists, [*theirs, link])), "nobody's to remove"
    assert os.path.isdir(directory)
    ours = [one for one in backups.copies(path) if one not in (*theirs, link, directory)]
    assert len(ours) <= 1 + 3 + 2


def test_a_clock_that_jumped_ahead_costs_no_day(hours, path, monkeypatch):
    """Lost: a month of copies, once the clock showed a day ten years ahead; and all that were made since, to one."""
    before = hours.make(4, 24)
    hours.now += 3650 * 86400
    hours.make(1)
    hours.now = BEGIN.timestamp() + 5 * 86400
    after = hours.make(2)
    left = backups.copies(path)
    assert left[-2:] == after
    assert "+" in after[-1]
    assert before[-1] in left
    days = []
    for _day in range(6):
        days += hours.make(1, 24)
        assert backups.copies(path)[-1] == days[-1]
        assert backups.newest_good(path) == days[-1]
    backups.thin(path)
    assert backups.copies(path)[-3:] == days[-3:], "their names all have the hour of the day to come"
    assert len(backups.copies(path)) <= 1 + 3 + 2


def checks(monkeypatch):
    """The checks that SQLite is asked for."""
    asked, connect = [], sqlite3.connect

    def traced(*args, **more):
        db = connect(*args, **more)
        db.set_trace_callback(lambda sql: asked.append(sql) if "_check" in sql else None)
        return db

    monkeypatch.setattr(sqlite3, "connect", traced)
    return asked


def test_indexes_are_checked_once_a_day(hours, path, monkeypatch):
    """Lost: a processor of a large node for minutes of each hour; or an index that is wrong for months."""
    asked = checks(monkeypatch)
    hours.make(26)
    assert len([sql for sql in asked if "integrity" in sql]) == 2
    assert len([sql for sql in asked if sql == "PRAGMA quick_check"]) == 24
    hours.now -= 3650 * 86400
    asked.clear()
    hours.make(1)
    assert "PRAGMA integrity_check" in asked, "a clock set back does not put it off for years"
    asked.clear()
    backups.make(path, whole=True)
    assert "PRAGMA integrity_check" in asked, "before an upgrade"


def test_an_index_that_lost_a_row_is_found_within_a_day(hours, path):
    """Lost: what a board did, and whether its instance ran, to an index without that event."""
    hours.make(1)
    with Store(path) as store:
        for number in range(50):
            store.event(2, "note", f"event {number}")
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = sql || ' WHERE board = 1' WHERE name = 'events_of_board'")
        db.commit()
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO events (time, actor, board, phase, text) VALUES (1.0, 'x', 2, 'note', 'in no index')")
        db.commit()
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = replace(sql, ' WHERE board = 1', '') WHERE name = 'events_of_board'")
        db.commit()
    hours.now += 3600
    assert backups.make(path), "its pages are whole"
    hours.now += 86400
    with pytest.raises(HeteroError, match=r"was not copied \(SQLite: row \d+ missing from index events_of_board"):
        backups.make(path)
    hours.now += 3600
    with pytest.raises(HeteroError, match="missing from index"):
        backups.make(path)
