# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slots whose boards cannot run slurmd, with programs in place of ssh and slurmd that note how they were called. If
these fail, a job begins before its user can log in, or somebody else can.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time

import pytest

from ansible_collections.hetero.compute.tests.unit.slurm.test_power import OFF, RISING, Slurm

#: Does on the board, which is a folder, what it is told to.
SSH = """#!/bin/sh
cd {folder}
echo "ssh $*" >> done
[ ! -e slow ] || cp then jobs
[ ! -e deaf ] || { echo "no route" >&2; exit 255; }
for command; do :; done
cd board
exec sh -c "$command"
"""
#: Notes what Slurm has been told before it begins, which a job does then.
SLURMD = """#!/bin/sh
cd {folder}
cp told told-before
echo "slurmd $*" >> done
while sleep 0.2; do :; done
"""
SQUEUE = "#!/bin/sh\ncat {folder}/jobs\n"
WAY = """Host tgx-1
  HostName 10.0.2.4
  User root
  StrictHostKeyChecking yes
  UserKnownHostsFile /dev/null
  KnownHostsCommand /usr/bin/echo 10.0.2.4 ssh-ed25519 AAAAhost
"""
KEY = "ssh-ed25519 AAAAann ann@desk"


@pytest.fixture
def slurm(tmp_path):
    made = Slurm(tmp_path)
    site = json.loads((tmp_path / "site.json").read_text())
    site["pools"] = [dict(name="tgx", flavor="tgx.8x8", count=2, image="", new_root=True, slurmd=False)]
    for name, text in (("ssh", SSH), ("slurmd", SLURMD), ("squeue", SQUEUE)):
        made.text(f"{name}~", text.replace("{folder}", str(tmp_path)))
        (tmp_path / f"{name}~").chmod(0o755)
    for name in ("slurmd", "squeue"):
        (tmp_path / f"{name}~").rename(tmp_path / name)
    (tmp_path / "bin").mkdir()
    (tmp_path / "ssh~").rename(tmp_path / "bin" / "ssh")
    site.update(keys=f"{tmp_path}/keys", path=f"{tmp_path}/bin:{site['path']}", slurm_conf=f"{tmp_path}/slurm.conf")
    made.text("site.json", json.dumps(site))
    (tmp_path / "ssh").mkdir()
    made.text("ssh/tgx-1", WAY)
    (tmp_path / "keys").mkdir()
    made.text("keys/ann.pub", f"{KEY}\n")
    made.text("jobs", "7 ann\n")
    (tmp_path / "board").mkdir()
    made.provisioned(tgx_1="board3")
    made.nodes(RISING, "tgx-1")
    yield made
    for pid in running(made):
        os.kill(int(pid), signal.SIGKILL)


KEYS = "board/.ssh/authorized_keys"


def running(slurm):
    words = ["pgrep", "-f", f"{slurm.folder}/slurmd "]
    return subprocess.run(words, check=False, stdout=subprocess.PIPE).stdout.split()


def done(slurm, slurmds=1):
    """What was called, once so many slurmds have said so: the program that begins one does not wait for that."""
    until = time.monotonic() + 60
    while sum(line.startswith("slurmd ") for line in slurm.read("done")) < slurmds:
        assert time.monotonic() < until, slurm.read("done")
        time.sleep(0.05)
    return slurm.read("done")


def comment(slurm):
    return [line.partition("comment=")[2] for line in slurm.read("told") if "comment=" in line][-1]


def test_a_job_begins_when_its_user_can_log_in(slurm):
    """Lost: salloc on boards that cannot run slurmd; or munge's key, on a board where a user is root."""
    assert slurm.run("resume", "tgx-1") == (0, "")
    ssh, slurmd = done(slurm)
    assert ssh.startswith(f"ssh -F {slurm.folder}/ssh/tgx-1 ")
    # it runs as a user who is root on all nodes, so no step and no script of a job ever begins there
    assert slurmd == f"slurmd -D -b -d /usr/bin/false -N tgx-1 -f {slurm.folder}/hetero-stand-in.conf"
    assert slurm.read(KEYS) == [KEY]
    assert comment(slurm) == "tgx-1 is on board3: ssh root@10.0.2.4 ssh-ed25519 AAAAhost"
    assert slurm.read("told-before") == slurm.read("told")
    assert "user_data" not in slurm.read("asked")[0]
    # as sync does where this was killed: there is one
    assert len(running(slurm)) == 1
    assert slurm.run("resume", "tgx-1") == (0, "")
    assert done(slurm, 2)
    assert len(running(slurm)) == 1
    assert slurm.read(KEYS) == [KEY]
    slurm.nodes(OFF, "tgx-1")
    assert slurm.run("suspend", "tgx-1") == (0, "")
    assert running(slurm) == []
    assert slurm.asked() == [("provision", "1"), ("provision", "1"), ("terminate", "1")]
    assert slurm.records() == []


def test_a_root_that_one_user_may_log_in_to_is_no_other_jobs(slurm):
    """Lost: what bob does on his board, to ann, whose job had it as slurmctld was killed before it had saved that."""
    assert slurm.run("resume", "tgx-1") == (0, "")
    slurm.text("jobs", "8 bob\n")
    assert slurm.run("resume", "tgx-1") == (0, "")
    assert slurm.asked() == [("provision", "1"), ("terminate", "1"), ("provision", "1")]
    assert slurm.records() == ["tgx-1.had"]


def test_a_slurmd_that_is_gone_from_under_its_job_comes_back(slurm):
    """Lost: a job, for a process of the controller's; or for a board that says it has booted, and has not."""
    assert slurm.run("resume", "tgx-1") == (0, "")
    slurm.nodes("ALLOCATED+CLOUD+POWER_DOWN+NOT_RESPONDING", "tgx-1")
    slurm.claims(tgx_1=("slurm@ctl", "running"))
    slurm.text("said-hetero.compute.flavors", '{"flavors": []}\n')
    assert done(slurm)
    (before,) = running(slurm)
    assert slurm.run("sync") == (0, "")
    assert running(slurm) == [before]
    os.kill(int(before), signal.SIGKILL)
    assert slurm.run("sync") == (0, "")
    assert done(slurm, 2)[-1] == f"slurmd -D -d /usr/bin/false -N tgx-1 -f {slurm.folder}/hetero-stand-in.conf"
    assert len(running(slurm)) == 1


def test_a_slurmd_whose_port_another_has_now_is_started_again(slurm):
    """Lost: all jobs of a flavor, as the one before it in slurm.conf has a slot more: ports are given in its order."""
    assert slurm.run("resume", "tgx-1") == (0, "")
    slurm.nodes("ALLOCATED+CLOUD+POWER_DOWN+NOT_RESPONDING", "tgx-1")
    slurm.claims(tgx_1=("slurm@ctl", "running"))
    slurm.text("said-hetero.compute.flavors", '{"flavors": []}\n')
    slurm.text("slurm.conf", "NodeName=tgx-[1-2] Port=[17002-17003]\n")
    assert done(slurm)
    (before,) = running(slurm)
    assert slurm.run("sync") == (0, "")
    # it has not booted: Slurm ends the job of a node that has
    assert done(slurm, 2)[-1] == f"slurmd -D -d /usr/bin/false -N tgx-1 -f {slurm.folder}/hetero-stand-in.conf"
    (after,) = running(slurm)
    assert after != before
    assert slurm.run("sync") == (0, "")
    assert running(slurm) == [after]


def test_a_slurmd_writes_so_much_and_no_more(slurm):
    """Lost: the controller's disk, for one user who calls srun again and again."""
    assert slurm.run("resume", "tgx-1") == (0, "")
    assert done(slurm)
    (pid,) = running(slurm)
    with open(f"/proc/{int(pid)}/limits", encoding="ascii") as file:
        (line,) = [line.split() for line in file if line.startswith("Max file size")]
    assert int(line[3]) <= 16 << 20
    # and goes on then: SIGXFSZ would end it, under its job
    with open(f"/proc/{int(pid)}/status", encoding="ascii") as file:
        (ignored,) = [int(line.split()[1], 16) for line in file if line.startswith("SigIgn")]
    assert ignored & 1 << signal.SIGXFSZ - 1


@pytest.mark.parametrize("next_job", ["8 bob\n", ""])
def test_a_job_that_goes_while_its_login_is_made_leaves_it_to_nobody(slurm, next_job):
    """Lost: bob's board, to ann, whose job was preempted while her key was on its way to it; or a board that is on for
    nobody until the next comparison, and boots for nobody once more then.
    """
    slurm.text("then", next_job)
    slurm.text("slow", "")
    assert slurm.run("resume", "tgx-1") == (0, "")
    assert slurm.read(KEYS) == [KEY]
    assert running(slurm) == []
    # who comes next ends it first: the resume of the next job, or the suspend of a slot that is taken out
    closed = [] if next_job else ["tgx-1.closed"]
    assert slurm.records() == [*closed, "tgx-1.had", "tgx-1.lent", "tgx-1.spent"]
    assert any("state=down" in line for line in slurm.read("told")) == (not next_job)


@pytest.mark.parametrize("text", [None, "", "ssh-ed25519", f'command="sh" {KEY}', f"{KEY}\nssh-ed25519 AAAAeve"])
def test_who_has_no_key_is_told_so_and_nobody_gets_in(slurm, text):
    """Lost: a slot that is taken out of use by who has no key; or lines of a file that is no key, on a board."""
    (slurm.folder / "keys" / "ann.pub").unlink()
    if text is not None:
        slurm.text("keys/ann.pub", text)
    assert slurm.run("resume", "tgx-1") == (0, "")
    assert [line.split()[0] for line in done(slurm)] == ["slurmd"]
    path = slurm.folder / "keys" / "ann.pub"
    words = f"ann has no key: put it into {path}" if text is None else f"{path} has not one public key"
    assert words[:100] in comment(slurm)


def test_a_job_that_is_gone_leaves_its_board_to_nobody(slurm):
    """Lost: a slot that comes for ever, for a job that was cancelled."""
    slurm.text("jobs", "")
    assert slurm.run("resume", "tgx-1") == (0, "")
    assert [line.split()[0] for line in done(slurm)] == ["slurmd"]
    assert comment(slurm) == "tgx-1 is on board3: nobody's job"


def test_a_board_that_was_switched_off_as_it_came_up_is_not_up_again(slurm):
    """Lost: an operator's power_down_force: Slurm takes what registers for a node that is up, and keeps it on."""
    slurm.text("jobs", "")
    slurm.text("squeue", SQUEUE.replace("cat", "touch {folder}/slots/tgx-1.spent; cat").format(folder=slurm.folder))
    assert slurm.run("resume", "tgx-1") == (0, "")
    assert slurm.read("done") == []
    assert slurm.records() == ["tgx-1.had", "tgx-1.spent"]
    slurm.nodes("IDLE+CLOUD+POWERED_DOWN", "tgx-1")
    assert slurm.run("suspend", "tgx-1") == (0, "")
    assert slurm.asked() == [("provision", "1"), ("terminate", "1")]


def test_a_board_of_several_jobs_lets_nobody_in(slurm):
    """Lost: a board that is one user's alone, by a partition's own word to share it."""
    slurm.text("jobs", "7 ann\n8 bob\n")
    assert slurm.run("resume", "tgx-1") == (0, "")
    assert [line.split()[0] for line in done(slurm)] == ["slurmd"]
    assert comment(slurm).startswith("tgx-1 is on board3: several jobs have it, and a login is one user's alone")


def test_a_board_that_lets_nobody_in_is_taken_out(slurm):
    """Lost: a job that has a board without a login."""
    slurm.text("deaf", "")
    assert slurm.run("resume", "tgx-1") == (0, "")
    assert running(slurm) == []
    down = "update nodename=tgx-1 state=down reason=hetero: tgx-1: no login to give it its user's key: no route"
    assert down in slurm.read("told")


def comes_up_for_nobody(slurm, comment="tgx-1 is on board3: nobody's job"):
    """Have a board come up whose job was cancelled, and be the next job's, as Slurm does without a resume for it."""
    slurm.text("jobs", "")
    assert slurm.run("resume", "tgx-1") == (0, "")
    slurm.text("nodes", f"NodeName=tgx-1 State=ALLOCATED+CLOUD+POWER_DOWN Comment={comment}\n")


def prolog(slurm, job="8"):
    given = dict(SLURM_JOB_ID=job, SLURM_JOB_PARTITION="boards", SLURM_JOB_NODELIST="tgx-1")
    return slurm.start("prolog", **given)


@pytest.mark.parametrize("said", ["tgx-1 is on board3", "tgx-1"])
def test_a_board_that_came_up_for_nobody_is_the_next_jobs_with_its_login(slurm, said):
    """Lost: a job's time on a board that its user cannot reach, for the one that was cancelled before it."""
    comes_up_for_nobody(slurm, f"{said}: nobody's job" if "is on" in said else "")
    slurm.text("jobs", "8 ann\n")
    assert prolog(slurm).wait(60) == 0
    assert slurm.read(KEYS) == [KEY]
    assert comment(slurm) == f"{said}: ssh root@10.0.2.4 ssh-ed25519 AAAAhost"
    assert slurm.read("slots/tgx-1.lent") == ["8"]
    # and nobody else's
    assert prolog(slurm, "9").wait(60) == 1
    assert slurm.read(KEYS) == [KEY]


@pytest.mark.parametrize(
    ("jobs", "deaf", "rc", "said"),
    [
        ("8 bob\n", False, 0, "bob has no key: put it into"),
        ("8 ann\n9 bob\n", False, 0, "several jobs have it, and a login is one user's alone"),
        ("8 ann\n", True, 1, ""),
        # it was cancelled meanwhile, and the slot is another's
        ("9 ann\n", False, 1, ""),
        ("", False, 1, ""),
    ],
)
def test_who_cannot_be_let_in_is_told_so_or_has_another_board(slurm, jobs, deaf, rc, said):
    """Lost: why there is no login, where its user looks; a job on a board that lets nobody in; or ann's board, to her
    own job that was cancelled.
    """
    comes_up_for_nobody(slurm)
    before = len(slurm.read("told"))
    slurm.text("jobs", jobs)
    if deaf:
        slurm.text("deaf", "")
    assert prolog(slurm).wait(60) == rc
    told = "".join(line for line in slurm.read("told")[before:])
    assert said in told if said else not told
    assert slurm.read(KEYS) == []
    assert "tgx-1.spent" in slurm.records()


def test_a_resume_that_is_at_it_yet_ends_before_a_job_begins(slurm):
    """Lost: bob's board, to ann, whose key was on its way to it as her job was cancelled."""
    comes_up_for_nobody(slurm)
    slurm.text("jobs", "8 bob\n")
    with open(slurm.folder / "slots" / "tgx-1.lock", "a", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        process = prolog(slurm)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
        slurm.text("slots/tgx-1.lent", "7")
    assert process.wait(60) == 1
    # and one that is never at an end keeps no job waiting for ever
    site = json.loads((slurm.folder / "site.json").read_text())
    slurm.text("site.json", json.dumps(dict(site, resume_seconds=1)))
    with open(slurm.folder / "slots" / "tgx-1.lock", "a", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert prolog(slurm).wait(60) == 1
    assert "another program worked on this slot all the time" in (slurm.folder / "log").read_text()


@pytest.mark.parametrize(("lent", "begins"), [("8", True), ("6", False)])
def test_a_board_that_came_up_for_a_cancelled_job_is_its_users_or_the_next_ones(slurm, lent, begins):
    """Lost: bob's board, to ann, who cancelled her job when her login was there: Slurm gives him the slot then."""
    comes_up_for_nobody(slurm)
    slurm.text("slots/tgx-1.lent", lent)
    assert prolog(slurm).wait(60) == (0 if begins else 1)
    assert ("another job's user has a login on tgx-1" in (slurm.folder / "log").read_text()) != begins
    assert "tgx-1.spent" in slurm.records()
