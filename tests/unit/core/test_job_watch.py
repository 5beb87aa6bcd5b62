# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told of a job in the background. If these fail, a play seems to wait for itself, and its user ends it."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import subprocess
import sys
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import job_watch

EVENTS = (
    "CREATE TABLE events (id INTEGER PRIMARY KEY, time REAL, actor TEXT, board INTEGER, instance TEXT, phase TEXT,"
    " text TEXT, seconds REAL)"
)
SAID = [("eve pid 78", "wait", "others"), ("jo pid 77", "error", "on"), ("jo pid 77", "wait", "own")]


@pytest.mark.parametrize(
    ("more", "told"),
    [({"worker": 77}, ["on", "own"]), ({}, ["others", "on", "own"]), ({"worker": 7}, ["on"])],
)
@pytest.mark.parametrize("whose", [{"boards": [3]}, {"instances": ["jackie"], "node": "p1"}])
def test_what_other_verbs_wait_for_is_no_news_of_a_job(tmp_path, whose, more, told):
    path, job = tmp_path / "state.db", tmp_path / "job"
    job.touch()
    with sqlite3.connect(path) as db:
        db.execute(EVENTS)
        for actor, phase, text in SAID:
            row = (1.0, actor, 3, "jackie", phase, text)
            db.execute("INSERT INTO events (time, actor, board, instance, phase, text) VALUES (?, ?, ?, ?, ?, ?)", row)
    news = job_watch.look(dict(whose, state_db=str(path), job=str(job), after=0, **more))
    assert [event[4] for event in news["events"]] == told


def test_a_jobs_own_events_of_no_board_are_told(tmp_path):
    """Lost: the progress of who learns what outlets feed, for the outlets are no boards'; or it is told another's."""
    path, job = tmp_path / "state.db", tmp_path / "job"
    job.touch()
    with sqlite3.connect(path) as db:
        db.execute(EVENTS)
        for actor, board, phase in (
            ("jo pid 77", None, "cabling"),
            ("eve pid 78", None, "cabling"),
            ("jo pid 77", 3, "cabling"),
            ("jo pid 77", None, "switch"),
            ("jo pid 77", None, "wait"),
        ):
            row = (actor, board, phase, f"{phase} of {actor}")
            db.execute("INSERT INTO events (actor, board, phase, text) VALUES (?, ?, ?, ?)", row)
    follow = dict(boards=[], worker=77, state_db=str(path), job=str(job), after=0)
    told = [event[1:] for event in job_watch.look(follow)["events"]]
    assert told == [[None, None, phase, f"{phase} of jo pid 77", None] for phase in ("cabling", "wait")]


def test_which_host_was_chosen_is_said_of_the_request(tmp_path):
    """Lost: its place before what is made there; the result's line of the same words would be printed at the end."""
    path, job = tmp_path / "state.db", tmp_path / "job"
    job.touch()
    with sqlite3.connect(path) as db:
        db.execute(EVENTS)
        for phase in ("choice", "image"):
            db.execute("INSERT INTO events (instance, phase, text) VALUES ('lab', ?, ?)", (phase, f"of {phase}"))
    follow = dict(instances=["lab", "lab-1"], node="gpu1", state_db=str(path), job=str(job), after=0)
    told = [event[1:5] for event in job_watch.look(follow)["events"]]
    assert told == [["", "lab", "", "of choice"], ["gpu1", "lab", "", "of image"]]


@pytest.fixture
def follow(tmp_path):
    """A job that goes on, as it is followed."""
    path, job = tmp_path / "state.db", tmp_path / "job"
    job.touch()
    with sqlite3.connect(path) as db:
        db.execute(EVENTS)
    with job.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield dict(boards=[3], state_db=str(path), job=str(job), after=0)


def test_a_look_waits_as_long_as_it_is_told(follow, monkeypatch):
    """Lost: the proxy's processor, to a start of Python every second and a half of each boot that is waited for."""
    monkeypatch.setattr(job_watch, "LOOK", 60.0)
    began = time.monotonic()
    assert not job_watch.look(dict(follow, wait=0.1))["done"]
    assert 0.1 <= time.monotonic() - began < job_watch.LOOK


def test_a_look_ends_with_its_reader(follow):
    """Lost: that nobody waits any more. Work would begin of a play that was killed while its look went on."""
    argv = [sys.executable, "-I", "-S", job_watch.__file__, json.dumps(dict(follow, wait=600))]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as look:
        touched = os.stat(follow["job"]).st_mtime_ns
        deadline = time.monotonic() + 60
        while os.stat(follow["job"]).st_mtime_ns == touched and time.monotonic() < deadline:
            time.sleep(0.01)
        look.stdout.close()
        try:
            look.wait(60)
        finally:
            look.kill()
