# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of a machine that CI's programs tell apart: a job that goes on, one that has ended, two that were started
in the same way, and what a test has forked. If these fail, a board is given back while its job runs, or is another's.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from ansible_collections.hetero.compute.extensions.ci.heteroci import keeper, names
from ansible_collections.hetero.compute.extensions.ci.heteroci.board import Board, Request
from ansible_collections.hetero.compute.tests.unit.ci.conftest import CI, LIMIT, keeper_of
from ansible_collections.hetero.compute.tests.unit.ci.test_killed_while_it_waits import asking, has_ended
from ansible_collections.hetero.compute.tests.unit.ci.test_pytest_plugin import reported

NAMED = ("--flavor", "x", "--name", "mine")
BOTH = ["provision_instance", "terminate_instance"]
#: A Python that can open no file below /proc, as where that is not mounted, or the machine has no memory for it: as
#: many times as the file PROC_GONE says.
NO_PROC = """
import builtins, os
real, exists, gone = builtins.open, os.path.exists, os.environ["PROC_GONE"]

def times(path):
    if not str(path).startswith("/proc/") or not exists(gone):
        return 0
    with real(gone) as file:
        return int(file.read() or 0)

def without(path, *args, **named):
    if left := times(path):
        with real(gone, "w") as file:
            file.write(str(left - 1))
        raise OSError(int(os.environ["PROC_ERROR"]), "not to be told", path)
    return real(path, *args, **named)

builtins.open = without
os.path.exists = lambda path: exists(path) and not times(path)
"""
#: What is said of a /proc that is not there at all.
ALWAYS = "1000000"


def without_proc(machine, error):
    """Variables of a job's programs for which /proc cannot be read as often as a file says, and that file."""
    (machine.folder / "sitecustomize.py").write_text(NO_PROC)
    gone = machine.folder / "gone"
    return dict(PYTHONPATH=str(machine.folder), PROC_GONE=str(gone), PROC_ERROR=str(error)), gone


@pytest.mark.parametrize("error", [2, 12, 23])
def test_a_job_of_which_nothing_can_be_told_has_not_ended(monkeypatch, error):
    """Lost: the board below a job, as the machine had no memory or no files left for its keeper's look at the job."""
    reads, write = os.pipe()
    looks, since = [], names.began(os.getpid())

    def cannot(pid):
        looks.append(pid)
        if len(looks) == 3:
            os.close(write)
        raise OSError(error, "not to be told")

    monkeypatch.setattr(names, "_stated", cannot)
    monkeypatch.setattr(keeper, "JOB_LOOKS", 0.01)
    with open(reads, encoding="ascii") as pipe:
        monkeypatch.setattr("sys.stdin", pipe)
        assert list(keeper._lines(os.getpid(), since)) == []
    assert len(looks) == 3


@pytest.mark.parametrize("error", [2, 12])
@pytest.mark.parametrize("since", ["its begin", "later"])
def test_no_playbook_runs_on_where_proc_cannot_be_read(machine, error, since):
    """Lost: a board until its lease ends: what asked for it went on when its killed job's board was given back."""
    env, gone = without_proc(machine, error)
    if since == "its begin":
        gone.write_text(ALWAYS)
    machine.hangs("provision_instance")
    process = machine.start("take", *NAMED, **env)
    playbook, wait = asking(process), keeper_of(process)
    gone.write_text(ALWAYS if since == "its begin" else "5")
    process.kill()
    process.wait(LIMIT)
    wait()
    assert (has_ended(playbook), machine.verbs) == (True, BOTH)


def test_two_services_have_two_boards(machine):
    """Lost: the board of a service, to another one that the same systemd has started, and that gave it back."""
    own = f"export SYSTEMD_EXEC_PID=$$; exec {CI}/board"

    def board(words, **env):
        line = ["setsid", "--wait", "/bin/sh", "-c", f"{own} {words}"]
        return machine.run(*line[1:], program=f"/usr/bin/{line[0]}", **env)

    first, second = dict(INVOCATION_ID="a" * 32), dict(INVOCATION_ID="b" * 32)
    for env in (first, second):
        rc, _out, said = board("take --flavor x", **env)
        assert rc == 0, said
    one, two = [options["instance"] for _verb, options in machine.calls]
    assert (one[:16], two[:16]) == ("service-aaaaaaaa", "service-bbbbbbbb")
    rc, _out, said = board("give-back", **first)
    assert (rc, machine.calls[2:][0][1]["instance"], (machine.state / two).exists()) == (0, one, True), said


@pytest.mark.parametrize("verb", ["take", "give-back"])
def test_who_has_no_shell_names_its_board(machine, verb):
    """Lost: another service's board, by a name that all have which one program of this machine starts."""
    words = ("--wait", str(CI / "board"), verb, "--flavor", "x")
    rc, _out, said = machine.run(*words, program="/usr/bin/setsid", INVOCATION_ID="a" * 32)
    assert (rc, machine.calls) == (111, []), said
    assert "board: the request is wrong: name the board (--name, or HETERO_NAME): no shell has called" in said
    rc, _out, said = machine.run(*words, "--part", "1", program="/usr/bin/setsid")
    assert rc == 0, said


def test_a_folder_for_keys_is_found_from_another_one(machine):
    """Lost: a board until its lease ends, and `give-back` a success: HETERO_STATE was another folder's by then."""
    line = f'eval "$({CI}/board take --flavor x --name mine)"; cd bin; {CI}/board give-back'
    for last in (" --name mine", ""):
        rc, _out, said = machine.run("-c", line + last, program="/bin/bash", HETERO_STATE="keys")
        assert (rc, machine.verbs[-2:], list((machine.folder / "keys").iterdir())) == (0, BOTH, []), said


def test_a_run_needs_no_shell(machine):
    """Lost: a service whose only program is a `board run`: what it takes, it gives back itself."""
    words = ("--wait", str(CI / "board"), "run", "--flavor", "x", "--", "sh", "-c", "exit 7")
    rc, _out, said = machine.run(*words, program="/usr/bin/setsid")
    assert (rc, machine.verbs) == (7, BOTH), said


@pytest.mark.parametrize(("parent", "sessions"), [(0, {0: 5}), (1, {0: 5, 1: 1}), (77, {0: "its own"})])
def test_what_others_have_in_common_names_no_board(monkeypatch, parent, sessions):
    """Lost: the board of another `docker exec`, of another shell that has ended, or of another window of tmux."""
    monkeypatch.setattr("os.getppid", lambda: parent)
    monkeypatch.setattr("os.getsid", lambda pid: os.getpid() if sessions[pid] == "its own" else sessions[pid])
    monkeypatch.setattr(names, "began", lambda pid: "4711")
    assert names.name_of({}) == ""


def test_a_shell_that_is_the_first_process_of_a_container_names_its_board(monkeypatch):
    """Lost: `board take` in a shell of `docker run IMAGE sh -c …`."""
    monkeypatch.setattr("os.getppid", lambda: 1)
    monkeypatch.setattr("os.getsid", lambda pid: 1)
    monkeypatch.setattr(names, "began", lambda pid: "4711")
    assert names.name_of({}).startswith("shell-1-")


#: Tests of which one forks, and does not end its copy, which pytest then goes on with to the end.
FORKING = """
import os, sys

CALLS = os.environ["PLAYED_SITE"] + "/calls"


def test_forks(board):
    forked = os.fork()
    if not forked:
        sys.exit(0)
    os.waitpid(forked, 0)
    assert "terminate_instance" not in open(CALLS).read()


def test_after(board):
    assert "terminate_instance" not in open(CALLS).read()
"""


def test_what_a_test_has_forked_gives_no_board_back(machine):
    """Lost: the board below all tests that follow, as a copy of pytest came to the end of them before."""
    rc, cases, said = reported(machine, "--board-flavor", "x", text=FORKING)
    assert (rc, [verb for verb in machine.verbs if verb != "console"]) == (0, BOTH), said
    assert [len([one for one in case if one.tag != "properties"]) for case in cases.values()] == [0, 0]


def test_two_pytests_of_a_folder_have_two_boards(machine):
    """Lost: all tests of the second one: its boards are those of another `board run`, as it is told."""
    text = "def test_a(board): pass\n"
    for name in ("", "first", "second"):
        rc, _cases, said = reported(machine, "--board-flavor", "x", text=text, HETERO_NAME=name)
        assert rc == 0, said
    assert len({options["instance"] for _verb, options in machine.calls}) == 3


def test_ctrl_c_below_pytest_leaves_no_keeper(machine, monkeypatch):
    """Lost: the board of a later pytest of this folder: a keeper that had no lock gave it back when this one ended."""
    real, begun = subprocess.Popen, []

    def begin(*given, **named):
        begun.append(real(*given, **named))
        signal.raise_signal(signal.SIGINT)
        return begun[-1]

    request = Request("mine", {}, state=str(machine.state))
    (machine.state / "mine").mkdir(parents=True)
    monkeypatch.setattr(subprocess, "Popen", begin)
    for name, value in machine.env.items():
        monkeypatch.setenv(name, value)
    with open(machine.state / "mine.lock", "w", encoding="ascii") as lock, pytest.raises(KeyboardInterrupt):
        keeper.Keeper(request, lock)
    (process,) = begun
    try:
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


def test_a_keeper_that_was_stopped_holds_no_job_up(machine, monkeypatch):
    """Lost: the machine of a CI, as a job that was over waited without an end for a process that was stopped."""
    monkeypatch.setattr(keeper, "GRACE", 0.2)
    for name, value in machine.env.items():
        monkeypatch.setenv(name, value)
    request = Request("mine", {}, state=str(machine.state))
    (machine.state / "mine").mkdir(parents=True)
    with open(machine.state / "mine.lock", "w", encoding="ascii") as lock, keeper.Keeper(request, lock) as one:
        os.kill(one._process.pid, signal.SIGSTOP)
        one.settled()
    assert one._process.returncode == -signal.SIGKILL


def test_what_another_job_of_the_name_has_stays(machine, monkeypatch):
    """Lost: another job's way to its board, and this one's board: the job's command had removed the folder for keys,
    in which the other one then had its key.
    """
    for name, value in machine.env.items():
        monkeypatch.setenv(name, value)
    board = Board(Request("mine", dict(flavor="x"), state=str(machine.state)))
    board.take()
    own = machine.calls[0][1]["key"]
    subprocess.run(["rm", "-r", board.request.folder], check=True)
    assert machine.run("take", *NAMED)[0] == 0
    assert board.give_back() is None
    (_verb, ended) = machine.calls[-1]
    assert (ended["only_key"], ended["hetero_ssh_folder"]) == (own, "")
    assert (machine.state / "mine" / "key").exists()
    assert json.loads((machine.state / "mine" / "board.json").read_text())["instances"]
