# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hostlist on and off, with programs in place of ansible-playbook and scontrol that note how they were called. If
these fail, slots get no node, a job waits for one that does not come, or a board is ended under a job.
"""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import time

import pytest

from ansible_collections.hetero.compute.tests.unit.slurm.conftest import PROGRAMS

#: Notes its words, prints what the test says of its playbook, and has its outcome; with a file `hang` it waits until it
#: is killed.
PLAY = """#!/bin/sh
cd {folder}
echo "$*" >> asked
[ ! -e hang ] || exec sleep 60
cat "said-$1" 2> /dev/null
case ,$ANSIBLE_CALLBACKS_ENABLED, in *,hetero.compute.outcome,*) cp "outcome-$1" "$HETERO_OUTCOME" 2> /dev/null ;; esac
exit $(cat "rc-$1" 2> /dev/null || echo 0)
"""
SCONTROL = """#!/bin/sh
cd {folder}
case "$*" in
"show hostnames "*) shift 2; for n in $(echo "$1" | tr , ' '); do echo "$n"; done ;;
"--oneliner show node"*) [ ! -e dead ] || exit 1; cat nodes ;;
*) echo "$*" >> told ;;
esac
"""
NONE = "tp64 wants 2 tp64.8x8 (tilepro64): no node.\n  2 boards: in use (ann)"


class Slurm:
    def __init__(self, folder):
        self.folder = folder
        self.nodes("")
        for name, text in (("play", PLAY), ("scontrol", SCONTROL)):
            self.text(name, text.format(folder=folder))
            (folder / name).chmod(0o755)
        pools = [
            dict(name="tp64", flavor="tp64.8x8", count=6, image="debian-12", new_root=True),
            dict(name="cg1", flavor="cg1.xlarge", count=1, image="", new_root=False),
        ]
        data = dict(pools=pools, play=[f"{folder}/play"], folder=str(folder), log=f"{folder}/log", new_root=["boards"])
        data.update(owner="slurm@ctl", user_data=f"{folder}/node.sh")
        data.update(resume_seconds=20, path=f"{folder}:{os.environ['PATH']}")
        self.text("site.json", json.dumps(data))

    def nodes(self, state, *names):
        """Have Slurm say this state of nodes, or of those that tests have."""
        of = names or ("tp64-1", "tp64-2", "tp64-3", "tp64-4", "cg1-1")
        self.text("nodes", "".join(f"NodeName={name} State={state}\n" for name in of) if state else "")

    def claims(self, **owners):
        """Have the nodes say that there are these instances: {name: (owner, state)}."""
        claims = [
            dict(instance=name.replace("_", "-"), owner=owner, state=state, name=f"board{number}")
            for number, (name, (owner, state)) in enumerate(owners.items())
        ]
        self.text("said-hetero.compute.status", json.dumps({"proxies": {"p1": {"claims": claims}}, "hosts": {}}) + "\n")

    def provisioned(self, text="", **boards):
        """Have a provision give these instances {name: its board}, or fail with a text."""
        given = [dict(instance=name.replace("_", "-"), name=board) for name, board in boards.items()]
        self.text("outcome-hetero.compute.provision_instance", json.dumps(dict(text=text, instances=given)))
        self.text("rc-hetero.compute.provision_instance", "2" if text else "0")

    def record(self, what, *names):
        """Have the slots' records say `had` or `spent`."""
        (self.folder / "slots").mkdir(exist_ok=True)
        for name in names:
            self.text(f"slots/{name}.{what}", "")

    def records(self):
        return sorted(path.name for path in (self.folder / "slots").iterdir() if path.suffix != ".lock")

    def asked(self):
        """[(playbook, its numbers)] of the plays that change something."""
        words = [line.split() for line in self.read("asked") if "numbers=" in line]
        return [(one[0].rpartition(".")[2].partition("_")[0], one[4].partition("=")[2]) for one in words]

    def text(self, name, text):
        (self.folder / name).write_text(text)

    def read(self, name):
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def start(self, *words, **environment):
        argv = [sys.executable, "-I", PROGRAMS, "--site", self.folder / "site.json", *words]
        return subprocess.Popen(argv, env=dict(os.environ, **environment), stderr=subprocess.PIPE, text=True)

    def run(self, *words, **environment):
        process = self.start(*words, **environment)
        _nothing, said = process.communicate(timeout=60)
        return process.returncode, said


RISING, OFF, USED = "ALLOCATED+CLOUD+POWERING_UP+POWER_DOWN", "IDLE+CLOUD+POWERING_DOWN", "ALLOCATED+CLOUD"


@pytest.fixture
def slurm(tmp_path):
    return Slurm(tmp_path)


def test_one_play_for_a_hostlist_of_each_flavor(slurm):
    """Lost: a minute for each board of a gang, one after the other."""
    slurm.nodes(RISING)
    slurm.provisioned(tp64_2="board2", tp64_3="board3", cg1_1="gpu1")
    assert slurm.run("resume", "tp64-3,tp64-2,cg1-1") == (0, "")
    boards, gpus = sorted(slurm.read("asked"), reverse=True)
    for words in ("-e instance=tp64", "-e numbers=2,3", "-e count=6", "-e flavor=tp64.8x8", "-e partial=true"):
        assert words in boards
    assert f"-e image=debian-12 -e user_data={slurm.folder}/node.sh" in boards
    # of one slot, too, the instance is NAME-1
    assert "-e numbers=1" in gpus
    assert "-e count=2" in gpus
    assert "update nodename=tp64-2 comment=tp64-2 is on board2" in slurm.read("told")


def test_slots_without_a_node_go_back_with_the_reason(slurm):
    """Lost: a job that waits for ResumeTimeout, and an operator who does not know what for."""
    slurm.nodes(RISING)
    slurm.provisioned(NONE)
    slurm.claims()
    assert slurm.run("resume", "tp64-2") == (0, "")
    why = "reason=hetero: tp64 wants 2 tp64.8x8 (tilepro64): no node. 2 boards: in use (ann)"
    down, off, drain = slurm.read("told")
    assert down == f"update nodename=tp64-2 state=down {why}"
    assert off == "update nodename=tp64-2 state=power_down"
    assert drain == f"update nodename=tp64-2 state=drain {why}"
    # Slurm opens the slot as it switches it off
    slurm.nodes(OFF)
    slurm.run("suspend", "tp64-2")
    assert drain in slurm.read("told")[3:]
    slurm.run("suspend", "tp64-2")
    assert slurm.read("told").count(drain) == 2


@pytest.mark.parametrize(
    ("said", "why"), [("a\nERROR! no inventory\n", "ERROR! no inventory"), ("", "the play ended with 1 and")]
)
def test_a_play_that_has_no_outcome_is_the_reason(slurm, said, why):
    """Lost: why no job of a site begins, where its playbooks do not even start."""
    slurm.nodes(RISING)
    slurm.text("said-hetero.compute.provision_instance", said)
    slurm.text("rc-hetero.compute.provision_instance", "1")
    slurm.claims()
    assert slurm.run("resume", "tp64-2") == (0, "")
    assert slurm.read("told")[0].startswith(f"update nodename=tp64-2 state=down reason=hetero: {why}")


def test_a_playbook_that_cannot_be_started_is_the_reason(slurm):
    """Lost: the same, where Ansible was moved away, or the user of slurmctld may not run it."""
    slurm.nodes(RISING)
    (slurm.folder / "play").chmod(0o644)
    assert slurm.run("resume", "tp64-2") == (0, "")
    why = f"{slurm.folder}/play cannot be started: Permission denied: run ansible-playbook hetero.compute.slurm again"
    assert slurm.read("told")[0] == f"update nodename=tp64-2 state=down reason=hetero: {why}"


def test_a_board_at_fault_takes_its_slot_out_and_no_other(slurm):
    """Lost: a gang's good boards with the bad one, or blame's words."""
    slurm.nodes(RISING)
    lines = ["tp64-1  board0  running   ssh answers   5.4 s", "tp64-2  board3  error     stalled at tftp, twice   9 s"]
    slurm.text("said-hetero.compute.provision_instance", "\n".join(lines))
    slurm.provisioned("board3 is at fault")
    slurm.claims(tp64_1=("slurm@ctl", "running"), tp64_2=("slurm@ctl", "error"))
    slurm.run("resume", "tp64-1,tp64-2")
    told = [line for line in slurm.read("told") if "comment" not in line]
    assert all("nodename=tp64-2 " in line for line in told)
    assert "reason=hetero: board3: stalled at tftp, twice" in told[0]
    # what is missing is asked for once more, alone
    assert slurm.asked() == [("provision", "1,2"), ("provision", "2")]


def test_a_name_that_somebody_else_has_takes_its_slot_out_and_no_other(slurm):
    """Lost: a gang, for a board that a person has called as a slot."""
    slurm.nodes(RISING)
    slurm.provisioned("tp64-2: belongs to ann (p1): choose another name")
    slurm.claims(tp64_2=("ann", "running"))
    slurm.run("resume", "tp64-1,tp64-2")
    why = "reason=hetero: an instance of this name is there, of ann"
    assert slurm.read("told")[0] == f"update nodename=tp64-2 state=down {why}"
    assert slurm.asked() == [("provision", "1,2"), ("provision", "1")]


def test_suspend_is_one_play(slurm):
    """Lost: boards that stay on until each had its own play."""
    slurm.nodes(OFF)
    slurm.record("had", "tp64-1", "tp64-4")
    assert slurm.run("suspend", "tp64-1,tp64-4") == (0, "")
    (asked,) = slurm.read("asked")
    assert asked == "hetero.compute.terminate_instance -e instance=tp64 -e numbers=1,4"
    assert slurm.read("told") == ["update nodename=tp64-1,tp64-4 comment="]
    assert slurm.records() == []


@pytest.mark.parametrize(
    ("state", "names", "had"),
    [
        (USED, ("tp64-1",), True),
        (f"{USED}+POWER_DOWN", ("tp64-1",), True),
        ("MIXED+CLOUD", ("tp64-1",), True),
        (RISING, ("tp64-1",), True),
        ("IDLE+CLOUD", ("tp64-1",), True),
        # no node of Slurm's
        (OFF, ("tp64-9",), True),
        # not made by this controller: by hand, or by another one
        (OFF, ("tp64-1",), False),
    ],
)
def test_what_somebody_may_have_is_not_ended(slurm, state, names, had):
    """Lost: a board under a job, a person's, or another site's."""
    slurm.nodes(state, *names)
    if had:
        slurm.record("had", "tp64-1")
    assert slurm.run("suspend", "tp64-1") == (0, "")
    assert slurm.asked() == []


def test_nothing_is_ended_while_slurm_cannot_be_asked(slurm):
    """Lost: a board under a job that slurmctld has begun before it was restarted."""
    slurm.text("dead", "")
    slurm.record("had", "tp64-1")
    assert slurm.run("suspend", "tp64-1")[0] == 1
    assert slurm.asked() == []
    # who comes next ends it first
    assert slurm.records() == ["tp64-1.had", "tp64-1.spent"]


def test_an_instance_of_somebody_else_does_not_keep_the_others_on(slurm):
    """Lost: boards of a whole hostlist, on for nobody, for one name."""
    slurm.nodes(OFF)
    slurm.record("had", "tp64-1", "tp64-2")
    slurm.text("rc-hetero.compute.terminate_instance", "2")
    slurm.claims(tp64_1=("slurm@ctl", "running"), tp64_2=("ann", "running"))
    slurm.run("suspend", "tp64-1,tp64-2")
    assert slurm.asked() == [("terminate", "1,2"), ("terminate", "1")]
    # that play failed as well: it is tried again
    assert slurm.records() == ["tp64-1.had", "tp64-1.spent"]


def test_what_this_controller_has_no_record_of_is_not_ended_before_a_slot_comes(slurm):
    """Lost: a board that somebody works on, for a note that a slot is used up which another had made."""
    slurm.nodes(RISING)
    slurm.record("spent", "tp64-1", "tp64-2")
    slurm.provisioned(tp64_2="board2")
    slurm.claims(tp64_1=("slurm@ctl", "running"))
    assert slurm.run("resume", "tp64-1,tp64-2") == (0, "")
    assert slurm.asked() == [("provision", "2")]
    why = "reason=hetero: an instance of this name is there, of slurm@ctl, that this controller did not make"
    assert f"update nodename=tp64-1 state=down {why}" in slurm.read("told")
    assert slurm.records() == ["tp64-1.closed", "tp64-1.spent", "tp64-2.had"]


def hanging(slurm, *words):
    """A program whose play hangs, and those after it do not."""
    slurm.text("hang", "")
    process = slurm.start(*words)
    until = time.monotonic() + 60
    while not slurm.read("asked") and time.monotonic() < until:
        time.sleep(0.05)
    (slurm.folder / "hang").unlink()
    return process


def test_a_resume_waits_for_the_end_of_the_same_slot(slurm):
    """Lost: a new root that is ended by the suspend before it."""
    slurm.nodes(OFF)
    slurm.record("had", "tp64-1")
    suspend = hanging(slurm, "suspend", "tp64-1")
    try:
        slurm.nodes(RISING)
        slurm.provisioned(tp64_1="board1")
        resume = slurm.start("resume", "tp64-1")
        time.sleep(0.5)
        assert len(slurm.read("asked")) == 1
    finally:
        suspend.send_signal(signal.SIGKILL)
        suspend.wait()
    assert resume.wait(60) == 0
    # what the killed one may have left is ended first
    assert slurm.asked() == [("terminate", "1"), ("terminate", "1"), ("provision", "1")]
    assert slurm.records() == ["tp64-1.had"]


def test_a_suspend_that_comes_late_ends_nothing(slurm):
    """Lost: a board under the next job of its slot, for the end of the one before it that waited its turn."""
    slurm.nodes(RISING)
    slurm.record("had", "tp64-1")
    slurm.provisioned(tp64_1="board1")
    resume = hanging(slurm, "resume", "tp64-1")
    suspend = slurm.start("suspend", "tp64-1")
    until = time.monotonic() + 60
    while "tp64-1.spent" not in slurm.records() and time.monotonic() < until:
        time.sleep(0.05)
    resume.send_signal(signal.SIGKILL)
    resume.wait()
    assert suspend.wait(60) == 0
    # the slot comes: what it had is ended by the resume after it, which sync begins, and not by this one
    assert slurm.asked() == [("provision", "1")]
    assert slurm.run("resume", "tp64-1") == (0, "")
    assert slurm.asked()[1:] == [("terminate", "1"), ("provision", "1")]
    assert slurm.records() == ["tp64-1.had"]


def test_two_resumes_of_a_slot_are_one_after_the_other(slurm):
    """Lost: two boards for one slot, or a root that the second one ends under the first."""
    slurm.nodes(RISING)
    slurm.provisioned(tp64_1="board1")
    both = [slurm.start("resume", "tp64-1") for _number in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert slurm.asked() == [("provision", "1")] * 2
    # and one that Slurm does not wait for any more is nobody's
    slurm.nodes(USED)
    assert slurm.run("resume", "tp64-1") == (0, "")
    assert len(slurm.asked()) == 2


def test_a_play_ends_by_the_time_that_slurm_gives_up(slurm):
    """Lost: a program for each try that hangs, until the machine is full of them."""
    slurm.nodes(OFF)
    slurm.record("had", "tp64-1")
    slurm.claims(tp64_1=("slurm@ctl", "running"))
    slurm.text("site.json", json.dumps(dict(json.loads((slurm.folder / "site.json").read_text()), suspend_seconds=1)))
    suspend = hanging(slurm, "suspend", "tp64-1")
    assert suspend.wait(50) == 0
    assert slurm.records() == ["tp64-1.had", "tp64-1.spent"]


def test_another_user_leaves_nothing_behind(slurm):
    """Lost: all of Slurm's slots, for one sync by root, whose files Slurm's user cannot open."""
    os.chown(slurm.folder, 65534, 65534)
    before = sorted(slurm.folder.iterdir())
    rc, said = slurm.run("sync")
    user = pwd.getpwuid(65534).pw_name
    assert (rc, said.endswith(f"put this before the command: runuser -u {user} --\n")) == (1, True), said
    assert sorted(slurm.folder.iterdir()) == before


def test_what_comes_with_a_new_root_is_told_to_go_before_anything_else(slurm):
    """Lost: the new root of the next job, or, told otherwise, preemption, and Slurm's plan for a gang."""
    slurm.nodes("ALLOCATED+CLOUD+POWERING_UP")
    slurm.provisioned(tp64_1="board1", cg1_1="gpu1")
    resume = hanging(slurm, "resume", "tp64-1,cg1-1")
    resume.send_signal(signal.SIGKILL)
    resume.wait()
    # the other one is in a partition whose roots are kept
    assert slurm.read("told") == ["update nodename=tp64-1 state=power_down"]
    # and its root is not used
    assert slurm.records() == ["cg1-1.had", "tp64-1.had"]


@pytest.mark.parametrize(
    ("partition", "state", "rc", "told"),
    [
        # as long as it is off, or comes up: a node that is off, and told to go, never comes (Slurm 22.05)
        ("boards", "ALLOCATED+CLOUD+POWERED_DOWN", 0, False),
        ("boards", RISING, 0, False),
        # it came up before this program had begun
        ("boards", f"{USED}+POWER_DOWN", 0, False),
        # who knows who had it
        ("boards", USED, 1, True),
        ("kept", USED, 0, False),
    ],
)
def test_no_job_begins_in_a_root_that_may_be_used(slurm, partition, state, rc, told):
    """Lost: the new root that its partition promises, after slurmctld was killed."""
    slurm.nodes(state, "tp64-1")
    slurm.text("site.json", json.dumps(dict(json.loads((slurm.folder / "site.json").read_text()), resume_seconds=0)))
    given = dict(SLURM_JOB_ID="7", SLURM_JOB_PARTITION=partition, SLURM_JOB_NODELIST="tp64-1")
    assert slurm.run("prolog", **given) == (rc, "")
    assert slurm.read("told") == (["update nodename=tp64-1 state=power_down"] if told else [])
    # the next resume of it ends first what there is
    assert (slurm.records() if told else []) == (["tp64-1.spent"] if told else [])


@pytest.mark.parametrize("then", [f"{USED}+POWER_DOWN", "IDLE+CLOUD+POWERING_UP+POWER_DOWN", "DOWN+CLOUD"])
def test_a_batch_job_begins_as_soon_as_its_nodes_are_up(slurm, then):
    """Lost: up to half a minute of each batch job, for Slurm looks no more often whether its nodes are up; or a job
    that begins before, for a slurmctld that did not answer once. One that is killed kills this program (22.05).
    """
    slurm.nodes(RISING, "tp64-1", "tp64-2")
    given = dict(SLURM_JOB_ID="7", SLURM_JOB_PARTITION="boards", SLURM_JOB_NODELIST="tp64-1,tp64-2")
    process = slurm.start("prolog", **given)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    slurm.text("dead", "")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    # up, cancelled, taken out
    slurm.nodes(then, "tp64-1", "tp64-2")
    (slurm.folder / "dead").unlink()
    assert process.wait(15) == 0


def test_a_line_of_one_node_is_not_what_all_nodes_say(slurm):
    """Lost: boards of jobs that are over, on all nodes, to the root of one, who has it say that there are none."""
    slurm.nodes("IDLE+CLOUD+POWERED_DOWN", "tp64-1")
    slurm.record("had", "tp64-1")
    slurm.claims(tp64_1=("slurm@ctl", "running"))
    (said,) = slurm.read("said-hetero.compute.status")
    slurm.text("said-hetero.compute.status", f'{{"proxies": {{}}, "hosts": {{}}}}\n{said}\n')
    slurm.text("said-hetero.compute.flavors", '{"flavors": []}\n')
    assert slurm.run("sync") == (0, "")
    assert slurm.asked() == [("terminate", "1")]
