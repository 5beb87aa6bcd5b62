# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm, its jobs and the nodes of a site as a file, with what they do of themselves, for programs that are killed at
any line. What Slurm does is as of 22.05 (src/slurmctld: node_mgr.c, power_save.c), as far as slots go by it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading

import stand_in
from controller import Controller
from job import prolog
from plays import Ended, Plays
from site_file import SiteError

from ansible_collections.hetero.compute.tests.unit.slurm.conftest import PROGRAMS

OWNER = "slurm@ctl"


class World:
    """The file. A killed program leaves it as it was before or after a step, never between."""

    def __init__(self, path):
        self.path, self.lock = path, threading.Lock()
        self.write(dict(nodes={}, jobs={}, instances={}, roots=0, epoch=0, began=[], queued=[], wrong=[], stand_ins={}))

    def read(self):
        return json.loads(self.path.read_text())

    def write(self, data):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(data))
        new.rename(self.path)

    @contextlib.contextmanager
    def changed(self):
        with self.lock:
            data = self.read()
            yield data
            self.write(data)

    # ---- what Slurm does

    def submit(self, job, user, *names):
        """Give a job nodes that are off: they are to come."""
        with self.changed() as data:
            data["epoch"] += 1
            data["jobs"][job] = dict(user=user, nodes=list(names), state="CONFIGURING")
            for name in names:
                data["nodes"][name] = dict(
                    state=["ALLOCATED", "CLOUD", "POWERING_UP"], reason="", since=data["epoch"], comment=""
                )

    def give(self, job, user, *names):
        """Give a job nodes that come up for one that was cancelled; nobody is asked for them."""
        with self.changed() as data:
            data["jobs"][job] = dict(user=user, nodes=list(names), state="CONFIGURING")
            for name in names:
                state = data["nodes"][name]["state"]
                data["nodes"][name]["state"] = ["ALLOCATED" if word == "IDLE" else word for word in state]

    def end(self, job):
        """End a job, or cancel it; what was told to go, goes."""
        with self.changed() as data:
            for name in data["jobs"].pop(job, {"nodes": []})["nodes"]:
                _idle(data["nodes"][name])

    def force_down(self, name):
        """As an operator's power_down_force: the job goes back to the queue, and the node is switched off at once."""
        with self.changed() as data:
            for job in [job for job, one in data["jobs"].items() if name in one["nodes"]]:
                for other in data["jobs"].pop(job)["nodes"]:
                    _idle(data["nodes"][other])
            data["nodes"][name].update(state=["IDLE", "CLOUD", "POWERED_DOWN"], reason="")

    def tick(self, site, controller):
        """Have slurmds register, jobs begin, and idle nodes go down; returns what is to be suspended."""
        with self.changed() as data:
            for name, node in data["nodes"].items():
                if "POWERING_UP" in node["state"] and self._registers(site, data, name, node["since"]):
                    node["state"].remove("POWERING_UP")
            for one in data["jobs"].values():
                if one["state"] == "CONFIGURING" and not any(
                    "POWERING_UP" in data["nodes"][name]["state"] for name in one["nodes"]
                ):
                    one["state"] = "BEGINS"
        for job, one in self.read()["jobs"].items():
            if one["state"] == "BEGINS":
                self._begin(site, controller, job, one)
        with self.changed() as data:
            for node in data["nodes"].values():
                if "IDLE" in node["state"] and "POWER_DOWN" in node["state"] and "POWERING_UP" not in node["state"]:
                    node["state"] = ["IDLE", "CLOUD", "POWERING_DOWN"]
            return [name for name, node in data["nodes"].items() if "POWERING_DOWN" in node["state"]]

    def _registers(self, site, data, name, since):
        """A node counts that has booted since it was asked for."""
        if not site.slot(name)[0].slurmd:
            return data["stand_ins"].get(name, -1) >= since
        return data["instances"].get(name, {}).get("boot", -1) >= since

    def _begin(self, site, controller, job, one):
        given = dict(SLURM_JOB_ID=job, SLURM_JOB_PARTITION="boards", SLURM_JOB_NODELIST=",".join(one["nodes"]))
        try:
            prolog(site, controller, given)
        except SiteError:
            self.end(job)
            with self.changed() as data:
                data["queued"].append(job)
            return
        with self.changed() as data:
            data["jobs"][job]["state"] = "RUNNING"
            data["began"].append(job)
            for name in one["nodes"]:
                instance = data["instances"].get(name)
                if instance is None:
                    data["wrong"].append(f"{job} begins on {name}, where nothing is")
                    continue
                others = [user for user in instance["keys"] if user != one["user"]]
                if instance["had"] or others:
                    data["wrong"].append(f"{job} begins on a root of {instance['had']}, with logins of {others}")
                if not site.slot(name)[0].slurmd and one["user"] not in instance["keys"]:
                    data["wrong"].append(f"{job} begins on {name} without a login of {one['user']}")
                instance["had"].append(job)

    def switched_off(self):
        """SuspendTimeout is over."""
        with self.changed() as data:
            for node in data["nodes"].values():
                if "POWERING_DOWN" in node["state"]:
                    drain = [word for word in node["state"] if word == "DRAIN"]
                    node["state"] = ["IDLE", "CLOUD", "POWERED_DOWN", *drain]


def _idle(node):
    node["state"] = ["IDLE" if word == "ALLOCATED" else word for word in node["state"]]


class Scontrol(Controller):
    """scontrol and squeue, on a world."""

    def __init__(self, world):
        self.world = world

    def _run(self, *argv):
        if argv[0] == "squeue":
            jobs = self.world.read()["jobs"].items()
            return "".join(f"{job} {one['user']}\n" for job, one in jobs if argv[-1] in one["nodes"])
        if argv[1:3] == ("show", "hostnames"):
            return argv[3].replace(",", "\n")
        if argv[1] == "--oneliner":
            nodes = self.world.read()["nodes"].items()
            return "".join(
                f"NodeName={name} State={'+'.join(node['state'])} Reason={node['reason']} [slurm@now]\n"
                if node["reason"]
                else f"NodeName={name} State={'+'.join(node['state'])}\n"
                for name, node in nodes
            )
        told = dict(word.split("=", 1) for word in argv[2:])
        with self.world.changed() as data:
            for name in told["nodename"].split(","):
                self._update(data, data["nodes"][name], name, told)
        return ""

    def _update(self, data, node, name, told):
        state, words = told.get("state"), set(node["state"])
        if "comment" in told:
            node["comment"] = told["comment"]
        elif state == "down":
            for job in [job for job, one in data["jobs"].items() if name in one["nodes"]]:
                data["queued"].append(job)
                for other in data["jobs"].pop(job)["nodes"]:
                    _idle(data["nodes"][other])
            words = set(node["state"]) - {"IDLE"} | {"DOWN"}
        elif state == "power_down" and words & {"DOWN"}:
            words = {"IDLE", "CLOUD", "POWERING_DOWN"}
            node["reason"] = ""
        elif state == "power_down":
            words |= {"POWER_DOWN"}
        elif state == "drain":
            words |= {"DRAIN"}
        elif state == "resume":
            words -= {"DRAIN", "DOWN"}
            node["reason"] = ""
        node["state"] = sorted(words)
        node["reason"] = told.get("reason", node["reason"])


class PlaysOnAWorld(Plays):
    """The playbooks' effects on a world."""

    def __init__(self, site, world):
        super().__init__(site)
        self.world = world

    def _play(self, playbook, seconds, **options):
        names = [f"{options['instance']}-{number}" for number in options.get("numbers", "").split(",") if number]
        if playbook == "provision_instance":
            return self.provisioned(names)
        if playbook == "terminate_instance":
            return self.terminated(names)
        data = self.world.read()
        if playbook == "flavors":
            said = [dict(name=pool.flavor, free=9, most=9) for pool in self.site.pools.values()]
            return Ended(0, json.dumps({"flavors": said}))
        claims = [dict(one, instance=name, name=f"board{one['root']}") for name, one in data["instances"].items()]
        return Ended(0, json.dumps({"proxies": {"p1": {"claims": claims}}, "hosts": {}}))

    def provisioned(self, names):
        """Claim, then boot; a kill leaves it at either, and what was begun on the node goes on or not."""
        for name in names:
            with self.world.changed() as data:
                if name not in data["instances"]:
                    data["roots"] += 1
                    one = dict(root=data["roots"], owner=OWNER, state="booting", boot=-1, had=[], keys=[])
                    data["instances"][name] = one
        for name in names:
            with self.world.changed() as data:
                one = data["instances"][name]
                if one["state"] != "running":
                    one.update(state="running", boot=data["epoch"])
        return Ended(0, "", {"instances": [dict(instance=name, name="board") for name in names]})

    def terminated(self, names):
        for name in names:
            with self.world.changed() as data:
                one = data["instances"].pop(name, None)
                running = [
                    job for job, its in data["jobs"].items() if its["state"] == "RUNNING" and name in its["nodes"]
                ]
                if one and set(running) & set(one["had"]):
                    data["wrong"].append(f"{name} is ended under {running}")
        return Ended(0, "")


def stand_ins(world, monkeypatch):
    """Have boards' logins and the slurmds that stand in be of a world."""

    def put(_site, name, key):
        with world.changed() as data:
            if name in data["instances"]:
                data["instances"][name]["keys"].append(key)

    def start(_site, name, booted=True):
        with world.changed() as data:
            data["stand_ins"][name] = data["epoch"] if booted else -1

    def end(_site, names):
        with world.changed() as data:
            for name in names:
                data["stand_ins"].pop(name, None)

    of = dict(_put=put, start=start, end=end, keep=lambda site, name: None, _key=lambda site, user: user)
    for name, one in dict(of, _way=lambda site, name: "ssh root@10.0.2.4 ssh-ed25519 AAAA").items():
        monkeypatch.setattr(stand_in, name, one)


def at_line(number, work, do=None):
    """Run a program in a process of its own, in which something is done as its line `number` comes; by default it is
    killed. Returns whether that came.
    """
    pid = os.fork()
    if pid == 0:
        try:
            _traced(number, work, do)
        finally:
            os._exit(1)
    status = os.waitpid(pid, 0)[1]
    return os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 7


def _traced(number, work, do):
    # what is done by itself changes the world, so it comes between two of its changes
    left, lock, here = [number], threading.Lock(), set() if do else {"provisioned", "terminated"}
    do = do or (lambda: os.kill(os.getpid(), signal.SIGKILL))

    def line(_frame, event, _arg):
        if event == "line":
            with lock:
                left[0] -= 1
                now = left[0] == 0
            if now:
                do()
        return line

    def call(frame, _event, _arg):
        code = frame.f_code
        return line if code.co_filename.startswith(str(PROGRAMS)) or code.co_name in here else None

    threading.settrace(call)
    sys.settrace(call)
    try:
        work()
    finally:
        sys.settrace(None)
        os._exit(7 if left[0] <= 0 else 0)
