# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A verb that was cut off while it waited for its turn. If these fail, an instance is stopped, or a board gets power,
minutes after whoever asked for that ended his play, and nobody is told.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import askers, job, job_watch
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.tests.unit.core.test_job_watch import EVENTS
from ansible_collections.hetero.compute.tests.unit.core.test_locks import HOLD


@pytest.fixture(autouse=True)
def nobody():
    """Who asked in one test asked nothing in the next."""
    yield
    askers.asked_by(None)


@pytest.fixture
def pipe():
    ends = list(os.pipe())
    yield ends
    for end in filter(None, ends):
        os.close(end)


def hang_up(pipe):
    os.close(pipe[0])
    pipe[0] = None


def turn(folder, seconds=120.0, waiting=None):
    return lock(str(folder), "board3", "stop", "jo", Deadline(seconds), waiting)


def test_threads_ask_at_once(pipe):
    """Lost: the state of all outlets, to a traceback: a node asks its PDUs side by side."""
    reader = askers.Reader(pipe[1])

    def ask(_number):
        return [reader.is_gone for _time in range(3000)]

    with ThreadPoolExecutor(max_workers=8) as threads:
        assert not any(map(any, threads.map(ask, range(8))))


def test_whose_reader_is_gone_begins_nothing(tmp_path, pipe):
    """Lost: a board that is free, for the second part of a module whose play was ended."""
    askers.asked_by(askers.Reader(pipe[1]))
    assert askers.are_there()
    hang_up(pipe)
    assert not askers.are_there()
    with pytest.raises(Refused, match=r"board3: nobody waits for it any more .*: not begun: run this again"), turn(
        tmp_path
    ):
        pass


def test_who_waits_for_a_lock_gives_up_with_his_reader(tmp_path, pipe):
    """Lost: the end of a verb that its user ended, which begins when the lock comes free, and says nothing."""
    said, errors = [], []
    told = threading.Event()

    def waiting(text):
        said.append(text)
        told.set()

    def stop():
        askers.asked_by(askers.Reader(pipe[1]))
        try:
            with turn(tmp_path, waiting=waiting):
                errors.append("begun")
        except Refused as error:
            errors.append(error.what)

    with turn(tmp_path):
        thread = threading.Thread(target=stop)
        thread.start()
        assert told.wait(60)
        hang_up(pipe)
        thread.join(60)
    assert errors == [askers.WHAT]
    assert said[0].startswith("held by stop (jo, ")
    assert said[1:] == [askers.WHAT]


def test_what_has_begun_goes_on_without_its_reader(tmp_path, pipe):
    """Lost: the second half of a verb whose play was ended in the middle of it: half a terminate."""
    askers.asked_by(askers.Reader(pipe[1]))
    with turn(tmp_path):
        hang_up(pipe)
    with turn(tmp_path):
        pass


@contextmanager
def held(folder):
    """Another process has the lock."""
    words = [sys.executable, "-c", HOLD, str(folder), "wipe", "eve"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        yield
        holder.stdin.write("\n")  # a worker that was begun meanwhile has the other end, too
        holder.stdin.flush()


class Ended(Exception):
    """The module's process would end here."""


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """Work in the background that waits for board 3's lock, which somebody has; what its play is told of it."""
    monkeypatch.setattr(job_watch, "LOOK", 0.05)
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.execute(EVENTS)

    class Module:
        def __init__(self):
            self.params = {}

        def exit_json(self, **result):
            raise Ended(json.dumps(result["follow"]))

    def work():
        def waiting(text):
            with sqlite3.connect(tmp_path / "state.db") as db:
                values = (f"jo pid {os.getpid()}", text)
                db.execute("INSERT INTO events (time, actor, board, phase, text) VALUES (1, ?, 3, 'wait', ?)", values)

        with turn(tmp_path, 60, waiting):
            (tmp_path / "begun").touch()
        return dict(msg="done")

    def prepare():
        return str(tmp_path), dict(state_db=str(tmp_path / "state.db"), boards=[3], after=0, limit=60)

    started = []

    def begin(**times):
        for name, seconds in times.items():
            monkeypatch.setattr(askers, name, seconds)
        with pytest.raises(Ended) as ended:
            job.in_background(Module(), prepare, work)
        follow = json.loads(str(ended.value))
        started.append(follow["worker"])
        return follow

    yield begin
    for number in started:
        os.waitpid(number, 0)


def result(follow):
    """What the job says at its end; nobody is told by this that it is looked at."""
    with open(follow["job"], encoding="utf-8") as file:
        deadline = Deadline(30)
        while not job_watch.ended(file) and not deadline.passed:
            deadline.nap(0.02)
        return json.loads(file.read().strip())


def test_a_job_that_nobody_follows_gives_up_its_place(tmp_path, worker):
    """Lost: the same of a verb in the background, as instances are started and ended."""
    with held(tmp_path):
        follow = worker(LOST=0.3)
        assert result(follow)["msg"] == f"board3: {askers.WHAT}: {askers.REMEDY}"
    assert not (tmp_path / "begun").exists()


def test_a_job_whose_follower_is_silent_does_not_take_its_turn(tmp_path, worker):
    """Lost: the board of who comes next, in the minutes after which a job that is not followed gives up."""
    with held(tmp_path):
        follow = worker(LOST=3.0, FRESH=-1.0)
        while "wait" not in [event[3] for event in job_watch.look(follow)["events"]]:
            pass
    assert result(follow)["msg"].startswith(f"board3: {askers.WHAT}")
    assert not (tmp_path / "begun").exists()


def test_a_job_that_is_followed_takes_its_turn(tmp_path, worker):
    """Lost: each verb that waits for another one longer than that."""
    with held(tmp_path):
        follow, deadline = worker(LOST=3.0), Deadline(4.0)
        while not deadline.passed:
            assert not job_watch.look(follow)["done"]
    news = job_watch.look(follow)
    while not news["done"]:
        news = job_watch.look(follow)
    assert json.loads(news["result"].strip()) == dict(msg="done")
    assert (tmp_path / "begun").exists()


@pytest.mark.parametrize("follows", [True, False])
def test_a_sign_of_long_ago_is_none(tmp_path, monkeypatch, follows):
    """Lost: that nobody follows any more, to who does not look all the time."""
    monkeypatch.setattr(askers, "FRESH", 0.2)
    monkeypatch.setattr(askers, "LOST", 60.0 if follows else 0.5)
    over = threading.Event()
    job = tmp_path / "job"
    job.touch()
    follower = askers.Follower(os.open(job, os.O_RDWR))

    def follow():
        while not over.wait(0.02):
            os.utime(job)

    thread = threading.Thread(target=follow)
    os.utime(job, (0, 0))  # he was there after the last look, and is gone since
    if follows:
        thread.start()
    try:
        assert askers.still_waits(follower) is follows
    finally:
        over.set()
        if follows:
            thread.join()
    assert askers.still_waits(None)
