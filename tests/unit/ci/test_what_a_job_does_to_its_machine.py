# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs that remove their home, fill the disk, or run on a machine that ends processes for want of memory. If these
fail, a board is kept for nobody, or a job ends with a code that blames somebody else.
"""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys

import pytest

from ansible_collections.hetero.compute.extensions.ci.heteroci.names import began
from ansible_collections.hetero.compute.tests.unit.ci.conftest import CI, LIMIT, children_of, keeper_of
from ansible_collections.hetero.compute.tests.unit.ci.test_github import Runner as GitHubRunner
from ansible_collections.hetero.compute.tests.unit.ci.test_github import obeyed
from ansible_collections.hetero.compute.tests.unit.ci.test_gitlab import Runner as GitLabRunner

NAMED = ("--flavor", "x", "--name", "mine")
BOTH = ["provision_instance", "terminate_instance"]


def before_it_plays(machine, lines):
    """Have ansible-playbook run these lines first, with its playbook's name as `playbook`."""
    program = machine.folder / "bin" / "ansible-playbook"
    name = "playbook = sys.argv[sys.argv.index('-e') - 1].rpartition('.')[2]\n"
    program.write_text(program.read_text().replace("sys.exit(main(", f"{name}{lines}\nsys.exit(main("))


#: A keeper that comes to its first line when the folder for keys is gone.
SLOW_KEEPER = """
import os, sys, time
until = time.monotonic() + 60
while "keeper" in sys.orig_argv and os.path.exists(os.environ["HETERO_STATE"]) and time.monotonic() < until:
    time.sleep(0.02)
"""


@pytest.mark.parametrize("ends", ["by itself", "killed", "killed before its keeper began"])
def test_a_command_that_removes_its_home_keeps_no_board(machine, ends):
    """Lost: a board until its lease ends, and no word of it: the job's key had gone with the folder for keys."""
    (machine.folder / "sitecustomize.py").write_text(SLOW_KEEPER if "before" in ends else "")
    wait, env = "; sleep 60" if "killed" in ends else "; exit 7", dict(PYTHONPATH=str(machine.folder))
    process = machine.start("run", *NAMED, "--", "sh", "-c", f"rm -r {machine.state}; echo gone{wait}", **env)
    assert process.stdout.readline() == "gone\n"
    if "killed" in ends:
        (own,) = [pid for pid, words in children_of(process.pid).items() if b"keeper" not in words]
        keeper = keeper_of(process)
        process.kill()
        os.kill(own, signal.SIGKILL)
        keeper()
    _out, said = process.communicate(timeout=LIMIT)
    assert process.returncode == (-signal.SIGKILL if "killed" in ends else 7), said
    ((_first, asked), (_last, ended)) = machine.calls
    assert (machine.verbs, ended["only_key"], ended["owner"]) == (BOTH, asked["key"], "ci")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_playbook_that_is_killed_as_it_gives_back_is_run_again(machine, number):
    """Lost: a board until its lease ends, as the machine had no memory, or a service was stopped."""
    once = "once = SITE + '/once'\nif playbook == 'terminate_instance' and not os.path.exists(once):\n"
    before_it_plays(machine, f"{once}    open(once, 'w')\n    os.kill(os.getpid(), {int(number)})")
    rc, _out, said = machine.run("run", *NAMED, "--", "sh", "-c", "exit 7")
    assert (rc, machine.verbs, list(machine.state.iterdir())) == (7, BOTH, []), said
    assert "terminate_instance told no outcome: it is run once more\n" in said


def test_a_runner_finds_no_playbook_of_a_job(machine):
    """Lost: the same, as a runner ends all that has the job's own variable, and a playbook before whoever runs that."""
    before_it_plays(machine, "open(SITE + '/env', 'a').write(repr(dict(os.environ)))")
    found = dict(RUNNER_TRACKING_ID="of-a-runner", BUILD_ID="of-jenkins", JENKINS_NODE_COOKIE="of-jenkins")
    rc, out, said = machine.run("run", *NAMED, "--", "env", **found)
    assert (rc, machine.verbs) == (0, BOTH), said
    assert "RUNNER_TRACKING_ID=of-a-runner\n" in out
    told = (machine.folder / "env").read_text()
    assert (told.count("PLAYED_SITE"), "of-a-runner" in told, "of-jenkins" in told) == (2, False, False)


def with_own_mounts(machine, script):
    """Run a script whose mounts nobody else sees; what machine.run returns."""
    return machine.run("--propagation", "private", "-m", "sh", "-c", script, program="/usr/bin/unshare")


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system of its own needs root: run as root")
@pytest.mark.parametrize("verb", ["give-back", "take again"])
def test_a_full_folder_for_keys_keeps_no_board(machine, verb):
    """Lost: a board until its lease ends, as a job's steps filled the disk; or the board that they work on."""
    machine.state.mkdir()
    own = f"mount -t tmpfs -o mode=700,size=1m small {machine.state} && {CI}/board take {' '.join(NAMED)}"
    fill = f"cat /dev/zero > {machine.state}/fill 2>&-"
    last = {"give-back": "give-back --name mine", "take again": f"take {' '.join(NAMED)}"}[verb]
    rc, _out, said = with_own_mounts(machine, f"{own}; {fill}; exec {CI}/board {last}")
    assert (rc, "Traceback" in said) == (0 if verb == "give-back" else 115, False), said
    assert machine.verbs == (BOTH if verb == "give-back" else BOTH[:1]), said


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount of its own needs root: run as root")
@pytest.mark.parametrize("lock", ["", "mine.lock"])
def test_a_folder_for_keys_that_can_only_be_read_keeps_no_board(machine, lock):
    """Lost: a board until its lease ends: a disk with errors can only be read any more, and `give-back` wrote first."""
    take, own = f"{CI}/board take {' '.join(NAMED)}", f"mount --bind {machine.state} {machine.state}"
    line = f"{take} && touch {machine.state}/{lock} && {own} && mount -o remount,bind,ro {machine.state}"
    rc, _out, said = with_own_mounts(machine, f"{line} && exec {CI}/board give-back --name mine")
    assert (rc, machine.verbs, "Traceback" in said) == (0, BOTH, False), said
    assert (machine.calls[-1][1]["hetero_ssh_folder"], machine.calls[-1][1]["only_key"][:11]) == ("", "ssh-ed25519")


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount of its own needs root: run as root")
@pytest.mark.parametrize("verb", ["run", "take"])
def test_a_folder_for_keys_that_can_only_be_read_costs_no_job_its_code(machine, verb):
    """Lost: the code of a job's tests, as the disk for keys failed while they ran; or a board that nobody reaches."""
    machine.state.mkdir()
    ro = f"mount --bind {machine.state} {machine.state} && mount -o remount,bind,ro {machine.state}"
    own = f"exec {CI}/board run {' '.join(NAMED)} -- sh -c '{ro} && exit 7'"
    if verb == "take":
        own = f"{ro} && exec {CI}/board take {' '.join(NAMED)}"
    rc, _out, said = with_own_mounts(machine, own)
    assert (rc, machine.verbs, "Traceback" in said) == ((7, BOTH, False) if verb == "run" else (115, [], False)), said


def test_a_command_for_which_the_machine_has_no_process_is_not_blamed(machine):
    """Lost: a job, failed as its own fault (126), as the machine of the CI had no processes left."""
    why = "import subprocess\nreal = subprocess.Popen\n\nclass Popen(real):\n    def __init__(self, words, **more):\n"
    why += "        if words == ['of-the-job']:\n            raise BlockingIOError(11, 'none left')\n"
    why += "        super().__init__(words, **more)\n\nsubprocess.Popen = Popen\n"
    (machine.folder / "sitecustomize.py").write_text(why)
    rc, _out, said = machine.run("run", *NAMED, "--", "of-the-job", PYTHONPATH=str(machine.folder))
    assert (rc, machine.verbs) == (115, BOTH), said
    assert said.endswith("board: Ansible, or a file, failed on this machine: of-the-job: none left\n")


@pytest.mark.parametrize("verb", ["run", "give-back"])
def test_a_machine_without_python_is_not_a_failed_command(machine, verb):
    """Lost: a job, failed as its own fault, as a shell's code for a program that is not there is a command's, too."""
    rc, _out, said = machine.run(verb, *NAMED, HETERO_PYTHON="/no/python3")
    assert (rc, said.startswith("board: /no/python3: no such program: name a python3")) == (115, True), said


def test_a_python_that_is_too_old_is_not_a_failed_command(machine):
    """Lost: the same, to a traceback of a Python that cannot read our files: some systems have 3.6."""
    main = (CI / "heteroci" / "__main__.py").read_text()
    tree = ast.parse(main, feature_version=(3, 6))
    assert [one for one in tree.body if isinstance(one, ast.ImportFrom)] == [], "it has no module __future__ of ours"
    (machine.folder / "sitecustomize.py").write_text("import sys\nsys.version_info = (3, 6, 8)\n")
    env = dict(PYTHONPATH=str(machine.folder))
    rc, _out, said = machine.run("run", *NAMED, "--", "true", **env)
    assert (rc, machine.calls, "is Python 3.6: name a 3.9 or newer in HETERO_PYTHON\n" in said) == (115, [], True), said
    assert GitLabRunner(machine).stage("prepare", BUILD_FAILURE_EXIT_CODE="1", **env)[0] == 42


@pytest.mark.parametrize("says", ["given", "request"])
@pytest.mark.parametrize("verb", ["run", "take", "give-back"])
def test_a_folder_with_files_of_somebody_is_removed_by_nobody(machine, verb, says):
    """Lost: a user's work, as HETERO_STATE was the folder above it, and the board had its name."""
    work = machine.state / "work"
    work.mkdir(parents=True)
    (work / "key").write_text("of years")
    if says == "request":
        machine.says("provision_instance", "request", "said")
    rc, _out, said = machine.run(verb, "--flavor", "x", "--name", "work", *(("--", "true") if verb == "run" else ()))
    assert (rc, machine.calls, [path.name for path in machine.state.iterdir()]) == (111, [], ["work"]), said
    assert [path.name for path in work.iterdir()] == ["key"]
    assert f"{work} has files, and none of a board, with which it would be removed: give another name" in said


def test_an_ssh_that_is_killed_is_no_failure_of_a_job(machine):
    """Lost: a job, failed as its own fault, as the runner's machine had no memory for the ssh that ran its script."""
    runner, code = GitLabRunner(machine), machine.folder / "code"
    assert runner.stage("prepare")[0] == 0
    (machine.folder / "bin" / "ssh").write_text("#!/bin/sh\nkill -9 $$\n")
    rc, _out, said = runner.stage("run", runner.script("true"), "build_script", BUILD_EXIT_CODE_FILE=str(code))
    assert (rc, code.exists()) == (42, False), said
    assert "was ended on the runner's machine, by signal 9\n" in said


def test_a_failed_script_is_the_jobs_failure_also_on_a_full_disk(machine):
    """Lost: whose failure it is: GitLab would run the failed tests again, as the runner's."""
    runner = GitLabRunner(machine)
    assert runner.stage("prepare")[0] == 0
    rc, _out, said = runner.stage("run", runner.script("exit 3"), "build_script", BUILD_EXIT_CODE_FILE="/dev/full")
    assert (rc, "the script ended with 3, which could not be written for GitLab: " in said) == (41, True), said


@pytest.mark.parametrize("env", [dict(BUILD_NUMBER="5", JOB_NAME=b"t\xe9st"), dict(HETERO_NAME=b"t\xe9st")])
def test_a_job_may_be_called_by_any_bytes(machine, env):
    """Lost: a job of Jenkins in another encoding: a traceback, and 1, as if its command had failed."""
    rc, _out, said = machine.run("run", "--flavor", "x", "--part", "1", "--", "sh", "-c", "exit 7", **env)
    assert (rc, machine.verbs) == (7, BOTH), said


def test_what_no_encoding_has_is_an_annotation_all_the_same(machine):
    """Lost: why there is no board, to a traceback, and its code to 1: a console says any bytes."""
    machine.says("provision_instance", "boot", "it said \udcff", "board", ["console \udcff"])
    rc, out, said = GitHubRunner(machine).hook("started", PYTHONIOENCODING="utf-8:strict")
    title = "::error title=No board for this job::the board did not come up (fault of: board): it said \\udcff"
    assert (rc, obeyed(out), said) == (113, [title], "")
    assert "\n  | console \\udcff\n" in out


@pytest.mark.skipif(os.geteuid() != 0, reason="a user that may begin no process needs root: run as root")
@pytest.mark.parametrize("stream", ["", ">/dev/full", ">&-", "| true"])
def test_a_shell_whose_take_can_begin_no_process_runs_nothing_for_a_board(stream):
    """Lost: the machine of the CI, to a test for a board: `eval` of nothing is a success."""
    user = ("setpriv", "--reuid=64321", "--regid=64321", "--clear-groups")
    words = ["prlimit", "--nproc=1:1", *user, "/bin/sh", "-c", (CI / "board").read_text(), "board", "take"]
    line = f'"$@" {stream}; echo "${{PIPESTATUS[0]}}" >&2'
    done = subprocess.run(
        ["/bin/bash", "-c", line, "bash", *words], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert "Cannot fork" in done.stderr or "fork" in done.stderr, done
    assert done.stdout == ("" if stream else "export HETERO_SSH=false\n! :\n")
    assert done.stderr.splitlines()[-1] not in ("0", "141"), done.stderr


def test_a_fault_of_the_programs_is_no_failure_of_a_job(machine):
    """Lost: a job, failed as its own fault (Python ends with 1, as a job of GitLab and a command do), for want of
    memory on the runner's machine.
    """
    why = "import tempfile\n\ndef none(**_named):\n    raise MemoryError\n\ntempfile.mkdtemp = none\n"
    (machine.folder / "sitecustomize.py").write_text(why)
    env = dict(PYTHONPATH=str(machine.folder))
    rc, _out, said = machine.run("run", *NAMED, "--", "true", **env)
    assert (rc, machine.calls, "MemoryError" in said) == (115, [], True), said
    rc, _out, said = GitLabRunner(machine).stage("prepare", BUILD_FAILURE_EXIT_CODE="1", **env)
    assert (rc, machine.calls, "MemoryError" in said) == (42, [], True), said


#: What a playbook may leave in place of its outcome, and which is none.
OUTCOMES = {
    "a pipe": "os.unlink(path); os.mkfifo(path)",
    "a folder": "os.unlink(path); os.mkdir(path)",
    "a device": "os.unlink(path); os.symlink('/dev/zero', path)",
    "a huge one": "os.truncate(path, 1 << 40)",
    "a deep one": "open(path, 'w').write('[' * 1000000)",
    "bytes": "open(path, 'wb').write(bytes(range(256)))",
}


@pytest.mark.parametrize("what", list(OUTCOMES))
def test_what_is_no_outcome_is_waited_for_by_nobody(machine, what):
    """Lost: a job that hangs until somebody kills it, or a traceback and the code of a failed command."""
    path = "path = os.environ['HETERO_OUTCOME']\n"
    before_it_plays(machine, f"{path}if playbook == 'provision_instance':\n    {OUTCOMES[what]}\n    os._exit(0)")
    rc, _out, said = machine.run("run", *NAMED, "--", "true")
    assert (rc, machine.verbs, "Traceback" in said) == (115, BOTH[1:], False), said
    assert "provision_instance ended with 0 and told no outcome" in said
    assert list(machine.state.iterdir()) == []


@pytest.mark.parametrize("whose", ["its own", "another's"])
def test_a_keeper_ends_a_playbook_and_no_other_process_of_its_number(machine, whose):
    """Lost: another program of the runner's user, as the kernel gave a playbook's id again while the keeper had no
    processor; or a board, which a playbook takes that goes on.
    """
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    machine.state.mkdir()
    request = json.dumps(dict(name="mine", options={}, inventories=[], state=str(machine.state)))
    try:
        with open(machine.state / "mine.lock", "w", encoding="ascii") as lock:
            job = str(os.getpid()), began(os.getpid())
            keeper = subprocess.Popen(
                [sys.executable, str(CI / "heteroci"), "keeper", request, "", str(lock.fileno()), *job],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=machine.env,
                pass_fds=[lock.fileno()],
                text=True,
            )
            since = began(process.pid) if whose == "its own" else "1"
            said, _none = keeper.communicate(f"playbook {process.pid} {since}\n", timeout=LIMIT)
        assert (keeper.returncode, said) == (0, "mine: given back\n")
        assert process.poll() == (-signal.SIGTERM if whose == "its own" else None)
    finally:
        process.kill()
        process.wait()


def test_a_job_whose_python_has_no_handles_of_processes_keeps_no_board(machine):
    """Lost: a board until its lease ends: a Python that was built on an older system has no os.pidfd_open."""
    (machine.folder / "sitecustomize.py").write_text("import os\ndel os.pidfd_open\n")
    machine.hangs("provision_instance")
    process = machine.start("take", *NAMED, PYTHONPATH=str(machine.folder))
    assert process.stderr.readline() == "provision_instance runs\n"
    keeper = keeper_of(process)
    process.kill()
    keeper()
    assert process.wait(LIMIT) == -signal.SIGKILL
    assert (machine.verbs, list(machine.state.iterdir())) == (BOTH, [])
