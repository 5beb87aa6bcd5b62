# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs whose output nobody reads any more, whose disk is full, or whose folder has gone. If these fail, a board is kept
that nobody knows of, or a job ends with another code than its own.
"""

from __future__ import annotations

import os
import signal

import pytest

from ansible_collections.hetero.compute.tests.unit.ci.conftest import CI, LIMIT, children_of, keeper_of
from ansible_collections.hetero.compute.tests.unit.ci.test_gitlab import Runner

NAMED = ("--flavor", "x", "--name", "mine")
#: Ansible, which ends at once where it cannot write what it says, or where its working folder has gone.
AS_ANSIBLE = "import os, sys\nos.getcwd()\nprint('PLAY', flush=True)\n"


@pytest.fixture
def site(machine):
    """A machine whose ansible-playbook is as easily put off as Ansible."""
    program = machine.folder / "bin" / "ansible-playbook"
    first, rest = program.read_text().split("\n", 1)
    program.write_text(f"{first}\n{AS_ANSIBLE}{rest}")
    return machine


def shell(site, line, **env):
    """(exit code, standard output, standard error) of a line for bash."""
    return site.run("-c", line, program="/bin/bash", **env)


def nothing_is_left(site):
    ends = [options["instance"] for verb, options in site.calls if verb == "terminate_instance"]
    return len(ends) >= site.verbs.count("provision_instance") and list(site.state.glob("*")) == []


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&- >&- 2>&-"])
def test_closed_streams_cost_no_job_its_code(site, closed):
    """Lost: a job below a service without output: it had no board, and no word of why."""
    rc, _out, said = shell(site, f"{CI}/board run {' '.join(NAMED)} -- sh -c 'exit 7' {closed}")
    assert (rc, site.verbs) == (7, ["provision_instance", "terminate_instance"]), said


@pytest.mark.parametrize("stream", ["| true", ">/dev/full"])
def test_a_board_of_which_nobody_is_told_is_given_back(site, stream):
    """Lost: a board until its lease ends, as the shell that asked for it had gone, or its disk was full."""
    words = f"{CI}/board take {' '.join(NAMED)}"
    rc, out, said = shell(site, f"{words} {stream}; echo ${{PIPESTATUS[0]}}")
    assert (rc, out, "Traceback" in said, nothing_is_left(site)) == (0, "115\n", False, True), said
    assert "standard output cannot be written, so nobody would know of the board" in said
    runner = Runner(site)
    rc, out, said = shell(site, f"{CI}/gitlab prepare {stream}; echo ${{PIPESTATUS[0]}}", **runner.env)
    assert (rc, out, "Traceback" in said, nothing_is_left(site)) == (0, "42\n", False, True), said


def test_a_reader_that_goes_while_a_board_is_asked_for(site):
    """Lost: the same, where the shell was killed while it waited for the board."""
    site.hangs("provision_instance")
    process = site.start("take", *NAMED)
    assert process.stderr.readline() == "PLAY\n"
    process.stdout.close()
    site.goes_on("provision_instance")
    said = process.stderr.read()
    assert (process.wait(LIMIT), nothing_is_left(site)) == (115, True), said


def test_a_reader_that_goes_keeps_no_board(site):
    """Lost: a board until its lease ends, as Ansible does nothing where nobody reads it: `board run … 2>&1 | head`."""
    over = site.folder / "over"
    wait = f"echo begun >&2; while [ ! -e {over} ]; do sleep 0.02; done; exit 7"
    process = site.start("run", *NAMED, "--", "sh", "-c", wait)
    while (line := process.stderr.readline()) != "begun\n":
        assert line
    process.stderr.close()
    over.touch()
    assert (process.wait(LIMIT), nothing_is_left(site)) == (7, True), site.calls


def test_a_log_on_a_full_disk_keeps_no_board(site):
    """Lost: the same, where the job's own log is full; and the code that says that it is this machine's fault."""
    rc, out, _said = shell(site, f"{CI}/board run {' '.join(NAMED)} -- echo begun 2>/dev/full")
    assert (rc, out, nothing_is_left(site)) == (115, "", True), site.calls


def test_a_folder_that_has_gone_keeps_no_board(site):
    """Lost: a board until its lease ends, as a job's last command removed the folder in which it began."""
    work = site.folder / "work"
    work.mkdir()
    rc, _out, said = shell(site, f"cd {work}; {CI}/board run {' '.join(NAMED)} -- sh -c 'rm -r {work}; exit 7'")
    assert (rc, nothing_is_left(site)) == (7, True), said


def test_a_runner_that_tidies_up_after_a_killed_job_keeps_no_board(site):
    """Lost: the same, where the runner kills the job and removes its folder."""
    site.hangs("provision_instance")
    work = site.folder / "work"
    work.mkdir()
    words = ("-c", f'cd {work}; exec {CI}/board run {" ".join(NAMED)} -- true')
    process = site.start(*words, program="/bin/sh")
    assert process.stderr.readline() == "PLAY\n"
    wait = keeper_of(process)
    work.rmdir()
    process.kill()
    process.wait(LIMIT)
    wait()
    assert nothing_is_left(site), site.calls


@pytest.mark.parametrize("verb", ["run", "take"])
def test_a_keeper_that_is_killed_costs_a_job_neither_its_board_nor_its_code(machine, verb):
    """Lost: the code of a job's tests; or a board until its lease ends, which `take` has and does not tell of."""
    machine.hangs("provision_instance")
    process = machine.start(verb, *NAMED, *(("--", "sh", "-c", "exit 7") if verb == "run" else ()))
    assert process.stderr.readline() == "provision_instance runs\n"
    wait = keeper_of(process)
    (keeper,) = [pid for pid, words in children_of(process.pid).items() if b"keeper" in words]
    os.kill(keeper, signal.SIGKILL)
    wait()
    machine.goes_on("provision_instance")
    out, said = process.communicate(timeout=LIMIT)
    if verb == "run":
        assert (process.returncode, nothing_is_left(machine)) == (7, True), said
    else:
        assert (process.returncode, "export HETERO_ADDRESS=10.0.1.1\n" in out) == (0, True), said


def test_a_shell_whose_take_is_killed_runs_nothing_for_a_board(machine):
    """Lost: the machine of the CI, to a test for a board: `eval` of what a killed process has said is a success."""
    machine.hangs("provision_instance")
    script = f'''
export HETERO_SSH="echo of another board:"
eval "$({CI}/board take {" ".join(NAMED)})"
echo "take: $?"
$HETERO_SSH echo on the machine of the CI
'''
    process = machine.start("-c", script, program="/bin/bash")
    assert process.stderr.readline() == "provision_instance runs\n"
    for pid in [pid for pid, words in _below(process.pid).items() if b"take" in words]:
        os.kill(pid, signal.SIGKILL)
    out, said = process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (1, "take: 1\n"), said
    assert (machine.run("give-back", "--name", "mine")[0], nothing_is_left(machine)) == (0, True)


def _below(pid):
    """{process: its words} of all that a process and its children have started, and that still run."""
    found = children_of(pid)
    for child in list(found):
        found.update(_below(child))
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("who", ["board", "gitlab"])
def test_a_give_back_that_is_ended_gives_back(machine, who, number):
    """Lost: a board until its lease ends, as a runner ends what is to give it back."""
    runner = Runner(machine)
    assert (machine.run("take", *NAMED) if who == "board" else runner.stage("prepare"))[0] == 0
    machine.hangs("terminate_instance")
    process = machine.start("give-back", "--name", "mine") if who == "board" else runner.start("cleanup")
    assert process.stderr.readline() == "terminate_instance runs\n"
    wait = keeper_of(process)
    process.send_signal(number)
    if number == signal.SIGKILL:
        process.wait(LIMIT)
    machine.goes_on("terminate_instance")
    assert process.wait(LIMIT) == (0 if number == signal.SIGTERM else -signal.SIGKILL)
    wait()
    assert list(machine.state.iterdir()) == []
