# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told of a job in the background, and of an instance that is watched. If these fail, a play seems to wait for
itself, and its user ends it.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import subprocess
import sys
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.board_records import RELEASED
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.tables import LAYOUT as HOST_LAYOUT
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import job_watch
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.database import Database

EVENTS = (
    "CREATE TABLE events (id INTEGER PRIMARY KEY, time REAL, actor TEXT, board INTEGER, instance TEXT, phase TEXT,"
    " text TEXT, seconds REAL)"
)
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFirst jo@laptop"
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


def asked_of(follow):
    """A look, as a play begins it on a node."""
    argv = [sys.executable, "-I", "-S", job_watch.__file__, json.dumps(follow)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_look_ends_with_its_reader(follow):
    """Lost: that nobody waits any more. Work would begin of a play that was killed while its look went on."""
    with asked_of(dict(follow, wait=600)) as look:
        touched = os.stat(follow["job"]).st_mtime_ns
        deadline = time.monotonic() + 60
        while os.stat(follow["job"]).st_mtime_ns == touched and time.monotonic() < deadline:
            time.sleep(0.01)
        look.stdout.close()
        try:
            look.wait(60)
        finally:
            look.kill()


@pytest.fixture
def boards(tmp_path):
    """(the store of a proxy node on which lab-1 and lab-2 have boards 0 and 1, and lab-3 is another's, what a look at
    lab knows first).
    """
    with Store(str(tmp_path / "state.db"), "jo pid 7") as store:
        for request, names, ids in (("lab", ["lab-1", "lab-2"], [0, 1]), ("lab-3", ["lab-3"], [2])):
            store.claim(request, names, ClaimTerms("jo", {"name": "tp64.8x8"}, "debian", KEY), ids)
        store.move(0, "booting")
        yield store, dict(store.followed(), request="lab", mark=None, wait=600)


def test_each_change_ends_a_look_by_itself(boards):
    """Lost: seconds, in which a boot goes on that a person watches. None of these looks ends by its time."""
    store, follow = boards
    changes = [
        lambda: store.event(0, "tftp", "kernel fetched", 0.5),
        lambda: store.event(0, "nfs", "mounted", instance="lab-1"),
        lambda: store.move(0, "running"),
        lambda: store.release(1, store.claim_of("lab-2")),
    ]
    first = job_watch.watch(follow)
    assert [one[:3] for one in first["stands"]] == [["lab-1", "board0", "booting"], ["lab-2", "board1", "power off"]]
    seen, took = [], []
    for change in changes:
        follow.update(mark=first["mark"], after=max([follow["after"], *(event[0] for event in first["events"])]))
        store.event(2, "tftp", "another's", instance="eve")
        with asked_of(follow) as look:
            change()
            began = time.monotonic()
            told, said = look.communicate(timeout=300)
            took.append(time.monotonic() - began)
        assert look.returncode == 0, said
        first = json.loads(told)
        seen.append(([event[2:7] for event in first["events"]], [one[:3] for one in first["stands"]]))
    assert seen == [
        ([["board0", "lab-1", "tftp", "kernel fetched", 0.5]], [["lab-1", "board0", "booting"], REST]),
        ([["board0", "lab-1", "nfs", "mounted", None]], [["lab-1", "board0", "booting"], REST]),
        ([["board0", "lab-1", "state", "booting → running", None]], [["lab-1", "board0", "running"], REST]),
        ([["board1", "lab-2", "release", ENDED, None]], [["lab-1", "board0", "running"]]),
    ]
    assert max(took) < 60, took


REST, ENDED = ["lab-2", "board1", "power off"], RELEASED.format(name="lab-2")


def test_a_look_at_what_does_not_change_ends_with_its_time(boards):
    """Lost: the line that says how long it stands so; or the look goes on when the play does not."""
    store, follow = boards
    follow["mark"] = job_watch.watch(follow)["mark"]
    store.event(2, "tftp", "another's", instance="eve")
    assert job_watch.watch(dict(follow, wait=0.1))["events"] == []
    with asked_of(follow) as look:
        look.stdout.close()
        try:
            look.wait(60)
        finally:
            look.kill()


def test_containers_and_guests_are_watched_by_their_hosts_name(tmp_path):
    """Lost: half of the site."""
    path = str(tmp_path / "host.db")
    database = Database(path, HOST_LAYOUT)
    row = dict(instance="ml-7", request="ml", owner="jo", kind="lxc", flavor="{}", image="x", ssh_public_key=KEY)
    row.update(memory_mb=1, vcpus=1, local_gb=1, state="building", since=5.0, note="of x", created=4.0)
    database.write(f"INSERT INTO instances ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()])
    columns = "INSERT INTO events (time, actor, instance, phase, text) VALUES (6.0, 'jo', ?, ?, ?)"
    for name in ("ml-7", "ml-8", "ml", "mlx-7"):
        database.write(columns, [name, "image", f"root of {name}"])
    database.close()
    told = job_watch.watch(dict(state_db=path, request="ml", after=0, mark=None, node="gpu1", wait=0))
    assert told["stands"] == [["ml-7", "gpu1", "building", "of x", 5.0]]
    assert [event[1:6] for event in told["events"]] == [
        [6.0, "gpu1", name, "image", f"root of {name}"] for name in ("ml-7", "ml-8", "ml")
    ]
