# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""resume, suspend, prolog and sync, killed at each of their lines, with Slurm and the nodes as a file (worlds.py). If
these fail, a job has a root that another job has used, waits for ever, or loses its board; or a board stays on for
nobody.
"""

from __future__ import annotations

import os

import pytest
from job import prolog
from power import resume, suspend
from site_file import Pool, Site
from slots import Slots
from sync import sync

from ansible_collections.hetero.compute.tests.turns import DAY
from ansible_collections.hetero.compute.tests.unit.slurm import worlds

#: A program of fewer lines has changed, and its test with it.
LEAST, MOST = 40, 3000
#: Each so many'th line is tried, others on another day. HETERO_LINES=1 tries each: four minutes of a processor.
EACH = int(os.environ.get("HETERO_LINES", "13"))


class Rig:
    def __init__(self, folder, slurmd=True):
        self.world = worlds.World(folder / "world")
        pool = Pool("tp64", "tp64.8x8", 4, slurmd=slurmd)
        self.site = Site({"tp64": pool}, ["false"], str(folder), str(folder / "log"), owner=worlds.OWNER,
                         new_root=("boards",), resume_seconds=5.0)  # fmt: skip
        self.controller = worlds.Scontrol(self.world)
        self.plays = worlds.PlaysOnAWorld(self.site, self.world)

    def resume(self, *names):
        resume(self.site, self.controller, self.plays, names)

    def suspend(self, *names):
        suspend(self.site, self.controller, self.plays, names)

    def sync(self):
        sync(self.site, self.controller, self.plays)

    def tick(self):
        return self.world.tick(self.site, self.controller)

    def settle(self):
        """What comes by itself: Slurm's looks, its programs, and the comparison each minute."""
        for _minute in range(3):
            going = self.tick()
            if going:
                self.world.switched_off()
                self.suspend(*going)
            self.sync()
        self.tick()

    def over(self):
        """End all jobs, and see that nothing is left of them."""
        for job in list(self.world.read()["jobs"]):
            self.world.end(job)
        self.settle()
        data = self.world.read()
        assert data["wrong"] == []
        assert data["instances"] == {}


def each_line(tmp_path_factory, trial):
    """Try a trial at each line, until it ends before that; returns how many it was tried at."""
    for tried, number in enumerate(range(1 + DAY % EACH, MOST, EACH)):
        if not trial(tmp_path_factory.mktemp("at"), number):
            assert number > LEAST
            return tried
    raise AssertionError("it does not end")


@pytest.mark.parametrize("before", [False, True], ids=["anew", "after another job"])
@pytest.mark.parametrize("slurmd", [True, False], ids=["slurmd", "login"])
def test_a_resume(tmp_path_factory, monkeypatch, before, slurmd):
    """Lost: a job that waits until ResumeTimeout, or begins in a root that is not its own."""

    def trial(folder, number):
        rig = Rig(folder, slurmd)
        worlds.stand_ins(rig.world, monkeypatch)
        if before:
            rig.world.submit("6", "bob", "tp64-1")
            rig.resume("tp64-1")
            rig.tick()
            rig.world.end("6")
            rig.tick()
            rig.world.switched_off()  # and its suspend was killed before it had begun
        rig.world.submit("7", "ann", "tp64-1", "tp64-2")
        killed = worlds.at_line(number, lambda: rig.resume("tp64-1", "tp64-2"))
        rig.settle()
        data = rig.world.read()
        assert data["wrong"] == [], number
        assert "7" in data["began"], (number, data)
        rig.over()
        return killed

    print(each_line(tmp_path_factory, trial), "points")


@pytest.mark.parametrize("slurmd", [True, False], ids=["slurmd", "login"])
def test_a_prolog(tmp_path_factory, monkeypatch, slurmd):
    """Lost: the login of a job, whose board came up for one that was cancelled, as slurmctld was killed beside it."""

    def trial(folder, number):
        rig = Rig(folder, slurmd)
        worlds.stand_ins(rig.world, monkeypatch)
        rig.world.submit("6", "ann", "tp64-1")
        rig.world.end("6")
        rig.resume("tp64-1")
        rig.world.give("7", "bob", "tp64-1")
        given = dict(SLURM_JOB_ID="7", SLURM_JOB_PARTITION="boards", SLURM_JOB_NODELIST="tp64-1")
        with rig.world.changed() as data:
            data["nodes"]["tp64-1"]["state"].remove("POWERING_UP")
        killed = worlds.at_line(number, lambda: prolog(rig.site, rig.controller, given))
        rig.settle()
        data = rig.world.read()
        assert data["wrong"] == [], number
        assert "7" in data["began"], (number, data)
        rig.over()
        return killed

    print(each_line(tmp_path_factory, trial), "points")


@pytest.mark.parametrize("next_job", [False, True], ids=["then sync", "then the next job"])
@pytest.mark.parametrize("slurmd", [True, False], ids=["slurmd", "login"])
def test_a_suspend(tmp_path_factory, monkeypatch, next_job, slurmd):
    """Lost: boards that are on for nobody, or the next job's new root."""

    def trial(folder, number):
        rig = Rig(folder, slurmd)
        worlds.stand_ins(rig.world, monkeypatch)
        rig.world.submit("6", "bob", "tp64-1", "tp64-2")
        rig.resume("tp64-1", "tp64-2")
        rig.tick()
        rig.world.end("6")
        going = rig.tick()
        assert going == ["tp64-1", "tp64-2"]
        killed = worlds.at_line(number, lambda: rig.suspend(*going))
        rig.world.switched_off()
        if next_job:
            rig.world.submit("7", "ann", "tp64-1")
            rig.resume("tp64-1")
        rig.settle()
        data = rig.world.read()
        assert not next_job or "7" in data["began"], (number, data)
        rig.over()
        return killed

    print(each_line(tmp_path_factory, trial), "points")


@pytest.mark.parametrize("slurmd", [True, False], ids=["slurmd", "login"])
def test_a_comparison(tmp_path_factory, monkeypatch, slurmd):
    """Lost: a job under the comparison that mends what was left of others."""

    def trial(folder, number):
        rig = Rig(folder, slurmd)
        worlds.stand_ins(rig.world, monkeypatch)
        rig.world.submit("5", "bob", "tp64-1")
        rig.world.submit("6", "cyd", "tp64-2")
        rig.resume("tp64-1", "tp64-2")
        rig.tick()
        rig.world.end("5")  # one is to end, one has its job, one is to come
        rig.tick()
        rig.world.switched_off()
        rig.world.submit("7", "ann", "tp64-3")
        killed = worlds.at_line(number, rig.sync)
        rig.settle()
        data = rig.world.read()
        assert {"6", "7"} <= set(data["jobs"]) & set(data["began"]), (number, data)
        rig.over()
        return killed

    print(each_line(tmp_path_factory, trial), "points")


@pytest.mark.parametrize("slurmd", [True, False], ids=["slurmd", "login"])
def test_a_slot_that_goes_to_another_job_while_it_comes(tmp_path_factory, monkeypatch, slurmd):
    """Lost: a board that is one user's alone: the key of the one before, or a root that was another's."""

    def trial(folder, number):
        rig = Rig(folder, slurmd)
        worlds.stand_ins(rig.world, monkeypatch)
        rig.world.submit("6", "ann", "tp64-1")

        def given_away():
            rig.world.force_down("tp64-1")
            Slots(str(folder)).spend(["tp64-1"])  # its suspend's first step; the rest waits for the resume
            rig.world.submit("7", "bob", "tp64-1")

        came = worlds.at_line(number, lambda: rig.resume("tp64-1"), given_away)
        if came:
            rig.tick()
            rig.resume("tp64-1")
            rig.settle()
            data = rig.world.read()
            assert data["wrong"] == [], (number, data)
            # what came in between is no fault of the job's: it may be queued again
            assert "7" in data["began"] + data["queued"], (number, data)
            again.extend(["7"] if "7" in data["queued"] else [])
        rig.settle()
        rig.over()
        return came

    again = []
    print(each_line(tmp_path_factory, trial), "points, and the job was queued again at", len(again))
