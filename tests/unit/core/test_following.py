# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told of a job in the background. If these fail, a play seems to wait for itself, and its user ends it."""

from __future__ import annotations

import sqlite3

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
