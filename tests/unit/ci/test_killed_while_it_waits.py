# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job that is killed while it asks for a board leaves. If these fail, a board comes up for nobody and is kept
for the whole lease, or a job that is tried again loses what it has just been given.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys

import pytest

from ansible_collections.hetero.compute.extensions.ci.heteroci import cancelled
from ansible_collections.hetero.compute.extensions.ci.heteroci.names import began
from ansible_collections.hetero.compute.tests.unit.ci.conftest import CI, EACH_LINE, LIMIT, keeper_of
from ansible_collections.hetero.compute.tests.unit.ci.test_github import Runner as GitHubRunner
from ansible_collections.hetero.compute.tests.unit.ci.test_gitlab import Runner as GitLabRunner

TAKE = ("take", "--flavor", "x", "--name", "mine")


def asking(process, output=None):
    """Wait until a program's playbook asks for a board; return a handle of that playbook.

    :param output: where its lines come, if not on standard error.
    """
    while (line := (output or process.stderr).readline()) != "provision_instance runs\n":
        assert line
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
        children = file.read().split()
    for pid in map(int, children):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if any(word.endswith(b"/ansible-playbook") for word in file.read().split(b"\0")):
                return os.pidfd_open(pid)
    raise AssertionError(children)


def has_ended(handle):
    return bool(select.select([handle], [], [], 0)[0])


@pytest.mark.parametrize("who", ["gitlab", "github", "board"])
def test_nobody_gets_what_a_killed_job_waited_for(machine, who):
    """Lost: a board for the whole lease, each time a runner kills a job that waits in the queue; or a folder of each
    such job in /tmp, for ever.
    """
    machine.hangs("provision_instance")
    start = {
        "gitlab": lambda: GitLabRunner(machine).start("prepare"),
        "github": lambda: GitHubRunner(machine).start("started", RUNNER_TRACKING_ID="1"),
        "board": lambda: machine.start(*TAKE),
    }[who]
    process = start()
    playbook, wait = asking(process, process.stdout if who == "github" else None), keeper_of(process)
    process.kill()
    process.wait(LIMIT)
    wait()
    assert has_ended(playbook)
    (_first, asked), (last, ended) = machine.calls
    assert (last, ended["only_key"], ended["owner"]) == ("terminate_instance", asked["key"], asked["owner"])
    assert [*machine.state.iterdir(), *machine.tmp.iterdir()] == []


@pytest.mark.parametrize("number", cancelled.SIGNALS)
@pytest.mark.parametrize("function", ["_kept", "_stop", "give_back", "play"])
def test_no_signal_ends_who_gives_a_killed_jobs_board_back(machine, number, function):
    """Lost: a board for the whole lease, as a machine that goes down ends all processes, and those of a job first; or
    the board of the job's next try, which a playbook gives back that nobody waits for.
    """
    machine.hangs("provision_instance")
    log = machine.folder / "line"
    own = dict(AT_PROGRAM="keeper", AT_LINE=f"{int(number)} 4 {function}", AT_LINE_LOG=str(log))
    process = machine.start(*TAKE, PYTHONPATH=str(EACH_LINE), PYTHONDONTWRITEBYTECODE="1", **own)
    playbook, wait = asking(process), keeper_of(process)
    process.kill()
    process.wait(LIMIT)
    wait()
    assert (has_ended(playbook), log.exists(), machine.verbs[1:]) == (True, True, ["terminate_instance"])
    assert list(machine.state.iterdir()) == []


def test_a_take_that_has_just_begun_is_ended_too(machine):
    """Lost: an hour of a runner: its `give-back` waited until the queue gave a board, and nothing ended that."""
    machine.hangs("provision_instance")
    log = machine.folder / "line"
    own = dict(AT_PROGRAM="command", AT_LINE=f"{int(signal.SIGSTOP)} 9 _alone", AT_LINE_LOG=str(log))
    first = machine.start(*TAKE, PYTHONPATH=str(EACH_LINE), PYTHONDONTWRITEBYTECODE="1", **own)
    assert os.waitid(os.P_PID, first.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_status == signal.SIGSTOP
    assert (machine.state / "mine.lock").read_text() == ""
    second = machine.start("give-back", "--name", "mine")
    assert second.stderr.readline().endswith("has nothing of that name to give back\n")
    assert "has left is given back first" in second.stderr.readline()
    first.send_signal(signal.SIGCONT)
    assert second.stderr.readline() == "board: waits for the end of `board take` of mine\n"
    assert (second.wait(LIMIT), first.wait(LIMIT)) == (0, 128 + signal.SIGTERM)
    assert list(machine.state.iterdir()) == []


@pytest.mark.parametrize("number", cancelled.SIGNALS)
def test_what_waits_to_give_a_board_back_does_so_though_it_is_told_to_end(machine, number):
    """Lost: a board for the whole lease, as its job was cancelled while another program of it had the lock."""
    assert machine.run(*TAKE)[0] == 0
    with open(machine.state / "mine.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"give-back {os.getpid()} {began(os.getpid())}\n")
        lock.flush()
        process = machine.start("give-back", "--name", "mine")
        assert process.stderr.readline() == "board: waits for the end of `board give-back` of mine\n"
        process.send_signal(number)
    assert (process.wait(LIMIT), machine.verbs[1:]) == (0, ["terminate_instance"])
    assert list(machine.state.iterdir()) == []


#: A job that is killed in the moment at which it would tell which process its playbook is.
KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from heteroci.playbooks import Playbooks
Playbooks(sys.argv[2], watch=lambda process: os.kill(os.getpid(), signal.SIGKILL)).play("provision_instance", {})
"""


def test_no_playbook_runs_that_nobody_knows_of(tmp_path):
    """Lost: a board until its lease is over, taken for a job after whoever ends its playbook gave that board back."""
    program = tmp_path / "ansible-playbook"
    program.write_text("#!/bin/sh\necho asks for a board >&2\n")
    program.chmod(0o755)
    job = subprocess.run(  # until all have ended that have its output
        [sys.executable, "-c", KILLED, str(CI), str(tmp_path)],
        env=dict(os.environ, HETERO_ANSIBLE_PLAYBOOK=str(program)),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (job.returncode, job.stdout + job.stderr) == (-signal.SIGKILL, "")


def test_a_job_that_is_tried_again_at_once_waits_for_the_end_of_the_killed_one(machine):
    """Lost: the board of the second try, which the keeper of the first one would take for its own."""
    runner = GitLabRunner(machine)
    for playbook in ("provision_instance", "terminate_instance"):
        machine.hangs(playbook)
    first = runner.start("prepare")
    asking(first)
    first.kill()
    first.wait(LIMIT)
    machine.goes_on("provision_instance")
    second = runner.start("prepare")
    assert "has left is given back first" in second.stderr.readline()
    machine.goes_on("terminate_instance")
    out, said = second.communicate(timeout=LIMIT)
    assert (second.returncode, "HETERO_ADDRESS=10.0.1.1\n" in out) == (0, True), said
    assert machine.verbs == ["provision_instance", "terminate_instance", "provision_instance"]
    assert runner.stage("run", runner.script("true"), "build_script")[0] == 0


def test_cleanup_ends_what_is_still_asked_for(machine):
    """Lost: a board, to a job that is over: its `take` goes on in the background."""
    machine.hangs("provision_instance")
    process = machine.start(*TAKE)
    playbook = asking(process)
    rc, _out, said = machine.run("give-back", "--name", "mine")
    assert (rc, "waits for the end of `board take` of mine" in said) == (0, True), said
    assert process.wait(LIMIT) == 128 + signal.SIGTERM
    assert (has_ended(playbook), machine.verbs) == (True, ["provision_instance", "terminate_instance"])
    assert list(machine.state.iterdir()) == []


def test_what_a_job_has_stays_when_its_second_take_is_killed(machine):
    """Lost: the board that a job works on."""
    assert machine.run(*TAKE)[0] == 0
    machine.hangs("provision_instance")
    process = machine.start(*TAKE)
    playbook, wait = asking(process), keeper_of(process)
    process.kill()
    process.wait(LIMIT)
    wait()
    assert has_ended(playbook)
    assert (machine.verbs, (machine.state / "mine" / "board.json").exists()) == (["provision_instance"] * 2, True)


def test_what_was_cut_off_is_given_back_where_the_next_try_is_refused(machine):
    """Lost: a board that was claimed before a power cut, as the job then asks for another flavor."""
    folder = machine.state / "mine"
    assert machine.run(*TAKE)[0] == 0
    (folder / "board.json").unlink()  # as it is when the playbook has just ended
    machine.says("provision_instance", "request", "mine: has board0 with another flavor")
    rc, _out, said = machine.run("take", "--flavor", "y", "--name", "mine")
    assert (rc, machine.verbs[-1]) == (111, "terminate_instance"), said
    assert list(machine.state.iterdir()) == []


@pytest.mark.parametrize("who", ["take", "github"])
def test_a_run_does_not_end_the_board_that_the_job_has(machine, who):
    """Lost: the board below a job's next steps, with all that is on it, as one of them called `board run`."""
    step, github = {}, GitHubRunner(machine)
    if who == "take":
        assert machine.run("take", "--flavor", "x", CI_JOB_ID="4711", CI_SERVER_HOST="g")[0] == 0
        step = dict(CI_JOB_ID="4711", CI_SERVER_HOST="g")
    else:
        assert github.hook("started")[0] == 0
        step = dict(github.env, **dict(line.split("=", 1) for line in github.file.read_text().splitlines()))
    rc, _out, said = machine.run("run", "--flavor", "x", "--", "true", **step)
    assert (rc, "is the board that this job has by `board take`" in said) == (111, True), said
    assert machine.verbs == ["provision_instance"]
    rc, _out, said = machine.run("run", "--flavor", "x", "--part", "2", "--", "true", **step)
    assert (rc, machine.verbs) == (0, ["provision_instance"] * 2 + ["terminate_instance"]), said
    rc = github.hook("completed")[0] if who == "github" else machine.run("give-back", **step)[0]
    assert (rc, machine.verbs[2:], list(machine.state.iterdir())) == (0, ["terminate_instance"] * 2, [])


def test_a_board_that_is_used_by_a_run_is_not_given_back_under_it(machine):
    """Lost: the board below a test that runs, to somebody's `give-back` of the same name on this machine."""
    words = ("run", "--flavor", "x", "--name", "mine", "--", "sh", "-c")
    first = machine.start(*words, f"echo runs; while [ ! -e {machine.folder}/over ]; do sleep 0.05; done")
    assert first.stdout.readline() == "runs\n"
    for verb in ("give-back", "take"):
        rc, _out, said = machine.run(verb, "--flavor", "x", "--name", "mine")
        assert (rc, "mine is the board of another `board run`" in said) == (111, True), said
    (machine.folder / "over").touch()
    assert first.wait(LIMIT) == 0
    assert machine.verbs == ["provision_instance", "terminate_instance"]
