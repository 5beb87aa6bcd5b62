# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs, while their boards come up: what they cost the controller, and when they begin."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import job
import looks
import pytest
from controller import Node
from looks import EACH, Looks, now
from site_file import SiteError

MANY = 100
UP, RISING = frozenset({"ALLOCATED", "CLOUD"}), frozenset({"ALLOCATED", "CLOUD", "POWERING_UP", "POWER_DOWN"})
#: Locks a file as a program that looks, says so, and stays.
HOLDER = """import fcntl, sys, time
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("has it", flush=True)
time.sleep(600)"""


class Controller:
    """Slurm's, whose nodes are up or not; `dead`, it does not answer. Notes when it was asked of all, and when told."""

    def __init__(self, *names):
        self.state, self.dead = dict.fromkeys(names, RISING), False
        self.asked, self.answered, self.began = [], [], now()

    def names(self, hostlist):
        return hostlist.split(",")

    def some(self, names):
        return {name: Node(name, self.state[name]) for name in names}

    def nodes(self):
        self.asked.append(now())
        found = self.some(self.state)
        time.sleep(0.02)
        if self.dead:
            raise SiteError("scontrol: does slurmctld run?")
        self.answered.append(now())
        return found

    def asked_together(self):
        """Return whether it was asked no more often than by one."""
        return len(self.asked) <= (self.asked[-1] - self.began) / EACH + 1


def waiting(site, controller, name="tp64-1"):
    """Wait as a prolog does, in a thread."""
    thread = threading.Thread(target=job._until_up, args=(site, controller, [name]))
    thread.start()
    return thread


def until(true):
    """Wait until something is true; the last look says it."""
    end = now() + 60
    while not true():
        assert now() < end
        time.sleep(0.01)


def test_a_hundred_jobs_that_wait_look_together_as_often_as_one(site):
    """Lost: the controller's processor, which a hundred jobs kept busy by asking for their boards; or the seconds in
    which a board's job could have begun, where each of them asked less often instead.
    """
    names = [f"tp64-{number}" for number in range(1, MANY + 1)]
    controller, over, began = Controller(*names), {}, now()
    site = type(site)(**dict(vars(site), resume_seconds=120.0))

    def wait(name):
        job._until_up(site, controller, [name])
        over[name] = now()

    with ThreadPoolExecutor(MANY) as threads:
        done = [threads.submit(wait, name) for name in names]
        until(lambda: len(controller.answered) >= 5)
        assert not over
        controller.state[names[6]] = UP
        until(lambda: over)
        assert list(over) == [names[6]]
        controller.state = dict.fromkeys(names, UP)
        came = now()
        for one in done:
            one.result(60)
    assert controller.asked_together()
    told = next(at for asked, at in zip(controller.asked, controller.answered) if asked >= came)
    late = sorted(at - told for name, at in over.items() if name != names[6])
    print(f"{len(controller.asked)} looks in {now() - began:.1f} s; each {late[0]:.2f} to {late[-1]:.2f} s after it")
    assert EACH <= 0.2


def test_each_looks_at_what_is_noted_five_times_a_second(site, monkeypatch):
    """Lost: seconds of each job, one after the other, for a wait that grows with what was waited before."""
    controller, slept, clock = Controller("tp64-1"), [], [1000.0]

    def sleep(seconds):
        slept.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(job.time, "sleep", sleep)
    for module in (job, looks):
        monkeypatch.setattr(module, "now", lambda: clock[0])
    site = type(site)(**dict(vars(site), resume_seconds=600.0))
    job._until_up(site, controller, ["tp64-1"])
    assert clock[0] == pytest.approx(1600.0, abs=1)
    assert max(slept) <= 0.2


@pytest.mark.parametrize("what", ["stale", "of another boot", "of tomorrow", "torn", "none", "no list"])
def test_no_job_begins_by_a_look_that_was_not_made_since(site, what):
    """Lost: the moment when a job's login is there: it began before, by what was noted for the one that had the slot
    earlier, or before the machine was started again.
    """
    controller = Controller("tp64-1")
    looker = Looks(site.folder, controller)
    began = {"stale": looker.began - 0.01, "of tomorrow": now() + 86400}.get(what, now())
    text = json.dumps(["another" if what == "of another boot" else looker.boot, began, []])
    text = {"torn": text[:-4], "no list": json.dumps({"began": began})}.get(what, text)
    if what != "none":
        with open(looker.path, "w", encoding="utf-8") as file:
            file.write(text)
    while not controller.answered:
        assert looker.awaited() in (None, ["tp64-1"])
    controller.state["tp64-1"] = UP
    until(lambda: looker.awaited() == [])


def test_a_look_that_came_while_another_wanted_one_is_enough(site):
    """Lost: the controller's processor, where all that wait find the same look too old."""
    controller = Controller("tp64-1")
    first, second = (Looks(site.folder, controller) for _number in range(2))
    old = second._noted()
    assert first.awaited() == ["tp64-1"]
    assert second._look(old)[1] == ["tp64-1"]
    assert len(controller.asked) == 1


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_who_looks_may_be_killed_or_stopped(site, monkeypatch, how):
    """Lost: all jobs that wait, for one that was cancelled while it looked for them: Slurm kills its program."""
    monkeypatch.setattr(looks, "STUCK", 1.0)
    argv = [sys.executable, "-c", HOLDER, f"{site.folder}/awaited.lock"]
    holder = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "has it\n"
        controller = Controller("tp64-1")
        thread = waiting(type(site)(**dict(vars(site), resume_seconds=120.0)), controller)
        time.sleep(3 * EACH)
        assert not controller.asked
        os.kill(holder.pid, how)
        controller.state["tp64-1"] = UP
        thread.join(60)
        assert controller.answered
        assert not thread.is_alive()
    finally:
        holder.kill()
        holder.wait()


def test_a_job_waits_while_slurm_does_not_answer_and_no_longer_than_slurm(site):
    """Lost: a board's login, where slurmctld was busy when the job asked; or a controller full of programs that wait
    for one that does not come back. All of them ask as often as one.
    """
    controller = Controller("tp64-1")
    controller.dead = True
    threads = [waiting(type(site)(**dict(vars(site), resume_seconds=120.0)), controller) for _number in range(5)]
    until(lambda: len(controller.asked) >= 4)
    assert all(thread.is_alive() for thread in threads)
    controller.dead, controller.state["tp64-1"] = False, UP
    for thread in threads:
        thread.join(60)
    assert controller.answered
    assert controller.asked_together()
    controller.dead = True
    thread = waiting(type(site)(**dict(vars(site), resume_seconds=1.0)), controller)
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize("stays", [False, True])
def test_a_lock_that_cannot_be_opened_costs_no_job(site, monkeypatch, stays):
    """Lost: all jobs of the site, each of which ended as it began, for a file that an operator's hand had made, or that
    a full disk had no room for.
    """
    controller = Controller("tp64-1")
    lock = Path(site.folder) / "awaited.lock"
    lock.symlink_to("/nowhere/at/all")  # as a file that this user may not open, whoever runs the test
    if stays:
        monkeypatch.setattr(looks, "os", SimpleNamespace(**dict(vars(os), unlink=lambda _path: os.rmdir("/nowhere"))))
    thread = waiting(type(site)(**dict(vars(site), resume_seconds=120.0)), controller)
    until(lambda: controller.answered)
    assert thread.is_alive()
    controller.state["tp64-1"] = UP
    thread.join(60)
    assert not thread.is_alive()
    assert controller.asked_together()
    assert lock.is_symlink() == stays


def test_where_nothing_can_be_noted_each_looks_and_not_more_often(site, monkeypatch):
    """Lost: all jobs that wait, for a file system that is full; or the controller's processor."""
    controller = Controller("tp64-1")

    def full(_self, _look):
        raise OSError("No space left on device")

    monkeypatch.setattr(Looks, "_note", full)
    threads = [waiting(type(site)(**dict(vars(site), resume_seconds=120.0)), controller) for _number in range(9)]
    until(lambda: len(controller.answered) >= 10)
    controller.state["tp64-1"] = UP
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert controller.asked_together()
