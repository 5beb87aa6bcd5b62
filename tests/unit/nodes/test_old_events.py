# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Old events as the timers of both kinds of nodes remove them. If these fail, they never go, or those of today do."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store as Boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store as Hosts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups, retention
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes import old_events
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host import backup as of_hosts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import backup as of_boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import node_clock
from ansible_collections.hetero.compute.tests.unit.sweep.killing import Points, run_alone

DAY = 86400.0
KINDS = {"proxy": (of_boards, Boards, "state.db"), "host": (of_hosts, Hosts, "host.db")}


class Node:
    def __init__(self, folder, kind):
        self.verb, self.store, name = KINDS[kind]
        self.folder = folder / "node"
        self.config = folder / f"{kind}.json"
        self.database = str(self.folder / name)
        self.configure()

    def configure(self, **more):
        self.config.write_text(json.dumps(dict(state_folder=str(self.folder), **more)))

    def backup(self):
        return self.verb.main(["--config", str(self.config)])

    def write(self, days):
        """An event of each of these days ago."""
        real = time.time
        with self.store(self.database) as store, store.transaction():
            for day in days:
                time.time = lambda day=day: real() - day * DAY
                try:
                    store.event(None, "note", f"{day} days ago")
                finally:
                    time.time = real

    @property
    def texts(self):
        """What happened, by the database; the rest of it is whole."""
        with closing(sqlite3.connect(self.database)) as db:
            assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
            return [row[0] for row in db.execute("SELECT text FROM events WHERE phase = 'note' ORDER BY id")]


@pytest.fixture(params=sorted(KINDS))
def node(request, tmp_path, monkeypatch):
    monkeypatch.setattr(retention, "EVENTS_NEWEST", 2)
    monkeypatch.setattr(retention, "REST", 0.0)
    return Node(tmp_path, request.param)


def told(days):
    return [f"{day} days ago" for day in days]


def test_the_timer_removes_old_events_after_a_copy_has_them(node, capsys):
    """Lost: the disk of a node that runs for a year; or the last way to what was removed."""
    days = (200, 91, 89, 40, 20, 1, 0)
    node.write(days)
    assert node.backup() == 0
    assert node.texts == told(days[2:])
    path, removed = capsys.readouterr().out.splitlines()
    assert removed == "2 events older than 90 days are removed"
    with closing(sqlite3.connect(path)) as copy:
        assert copy.execute("SELECT count(*) FROM events WHERE phase = 'note'").fetchone()[0] == len(days)
    node.configure(events_days=30)
    assert node.backup() == 0
    assert node.texts == told(days[4:])
    node.configure(events_days=0)
    with pytest.raises(HeteroError, match=r"events_days: is 0: give a whole number from 1 to 36500"):
        node.backup()


def test_a_node_without_a_database_has_no_events(node, capsys):
    assert node.backup() == 0
    assert capsys.readouterr().out == f"{node.database} is not there yet: nothing was ever claimed\n"
    assert not os.path.exists(node.database)


@pytest.mark.parametrize("is_marked", [True, False])
def test_a_clock_ten_years_ahead_removes_nothing_of_today(node, monkeypatch, is_marked):
    """Lost: the history of a whole node, in the hour after its battery or a time server went mad."""
    days = (200, 80, 40, 20, 3, 2, 1, 0)
    node.write(days)
    if is_marked:
        with node.store(node.database) as store:
            node_clock.keep(node_clock.look(store, "reap"))
        assert os.path.exists(node_clock.path_of(node.database))
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3650 * DAY)
    assert node.backup() == 0
    assert node.texts == told(days[1:]), "what it certainly is by now makes one of them old"
    node.write((0,))
    assert node.backup() == 0
    assert node.texts == told((*days[1:], 0))
    monkeypatch.undo()
    monkeypatch.setattr(retention, "EVENTS_NEWEST", 2)
    assert node.backup() == 0
    assert node.texts == told((*days[1:], 0))


def test_killed_at_each_write_it_goes_on(node, tmp_path, monkeypatch):
    """Lost: an event that was to stay, or the database, to a power cut while old ones go."""
    monkeypatch.setattr(retention, "STEP", 3)
    days = (*range(200, 190, -1), 50, 40, 30)
    node.write(days)
    template, points = tmp_path / "template", Points()
    shutil.copytree(node.folder, template)
    kills = 0
    while True:
        shutil.rmtree(node.folder)
        shutil.copytree(template, node.folder)
        kills += 1
        points.reset(kills)
        killed = run_alone(points, node.backup) is None
        assert node.texts[-3:] == told(days[-3:]), points.killed
        assert node.backup() == 0
        assert node.texts == told(days[-3:]), points.killed
        assert backups.newest_good(node.database), points.killed
        if not killed:
            break
    assert kills > 12, "four steps, and a copy"


class Pruned:
    """A store that removes so many events, and says whether those were all."""

    def __init__(self, path="", removed=0, is_all=True):
        self.path, self._end, self.asked = str(path), (removed, is_all), []

    def newest_time(self):
        return None

    def prune(self, days, now):
        self.asked.append((days, now))
        return self._end


def test_a_node_without_a_database_removes_nothing(tmp_path):
    """Lost: the first turn of a new node's timer, to the error of a file that is not there."""
    store = Pruned(tmp_path / "none.db")
    now = old_events.certain_time(store, "host-reap")
    old_events.remove(store, 90, now)
    assert (now, store.asked, list(tmp_path.iterdir())) == (None, [], [])


def test_a_mark_that_cannot_be_read_is_told_after_the_copy_is_made(tmp_path):
    """Lost: the copy of that night; or events, by a time that nobody knows."""
    path = tmp_path / "host.db"
    path.write_text("")
    (tmp_path / "host.clock").write_text("{")
    store = Pruned(path)
    error = old_events.certain_time(store, "host-reap")
    assert isinstance(error, HeteroError)
    with pytest.raises(HeteroError, match=r"host\.clock"):
        old_events.remove(store, 90, error)
    assert store.asked == []


@pytest.mark.parametrize(("is_all", "more"), [(True, ""), (False, "; the next turn goes on")])
def test_how_many_were_removed_is_said_and_whether_more_are_left(capsys, is_all, more):
    """Lost: why a database still grows although its timer runs."""
    store = Pruned(removed=3, is_all=is_all)
    old_events.remove(store, 90, 1000.0)
    assert store.asked == [(90, 1000.0)]
    assert capsys.readouterr().out == f"3 events older than 90 days are removed{more}\n"
    old_events.remove(Pruned(), 90, 1000.0)
    assert capsys.readouterr().out == ""
