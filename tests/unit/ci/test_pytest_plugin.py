# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixture `board` of extensions/ci, by pytest itself. If these fail, a board that did not boot is told as a failed
test, or one stays when the tests are over.
"""

from __future__ import annotations

import os
import signal
import sys
from xml.etree import ElementTree

import pytest

from ansible_collections.hetero.compute.tests.unit.ci.conftest import CI, LIMIT, keeper_of
from ansible_collections.hetero.compute.tests.unit.ci.test_gitlab import SSH

TESTS = """
import pytest


def test_boots(board):
    assert board.run("echo of $((40 + 2)); true") == "of 42"
    assert board.run(["echo", "two  words"]) == "two  words"


def test_same(board):
    assert (board.node, board.address, board.phases["running"]) == ("board0", "10.0.1.1", 5.4)
    assert False, "the driver is wrong"


@pytest.mark.board(flavor="big", image="debian-13")
def test_big(board):
    pass


def test_without():
    pass
"""


def reported(machine, *words, text=TESTS, **env):
    """(exit code, {name of a test: its element in the report}, output)."""
    (machine.folder / "test_driver.py").write_text(text)
    (machine.folder / "pytest.ini").write_text("[pytest]\n")
    ssh = machine.folder / "bin" / "ssh"
    ssh.write_text(SSH.format(folder=machine.folder))
    ssh.chmod(0o755)
    own = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "heteroci.pytest_plugin", "--junitxml=report.xml")
    rc, out, said = machine.run(*own, *words, program=sys.executable, PYTHONPATH=str(CI), **env)
    cases = ElementTree.parse(machine.folder / "report.xml").iter("testcase")
    return rc, {case.get("name"): case for case in cases}, out + said


def properties(case):
    return {one.get("name"): one.get("value") for one in case.iter("property")}


def test_tests_have_boards(machine):
    """Lost: boards for tests; which board a test had, how it booted, and what it said as the test failed."""
    rc, cases, said = reported(machine, "--board-flavor", "tp64.8x8", CI_JOB_ID="4711")
    assert rc == 1, said
    outcomes = {name: [one.tag for one in case if one.tag != "properties"] for name, case in cases.items()}
    assert outcomes == {"test_boots": [], "test_same": ["failure"], "test_big": [], "test_without": []}
    asked = [(options["flavor"], options.get("image")) for verb, options in machine.calls if "key" in options]
    assert asked == [("tp64.8x8", None), ("big", "debian-13")]
    names = [options["instance"] for verb, options in machine.calls if verb == "provision_instance"]
    told = properties(cases["test_boots"])
    assert (told["board"], told["board_instance"], told["board_address"]) == ("board0", names[0], "10.0.1.1")
    assert (told["board_phases"], "board_console" in told) == ("tftp 0.2 s, running 5.4 s", False)
    assert "Kernel panic - not syncing" in properties(cases["test_same"])["board_console"]
    assert "Console of the board" in said
    assert properties(cases["test_without"]) == {}
    ended = [options["instance"] for verb, options in machine.calls if verb == "terminate_instance"]
    assert (sorted(ended), len(set(names)), list(machine.state.iterdir())) == (sorted(names), 2, [])


def test_a_board_that_does_not_come_up_is_an_error_and_no_failed_test(machine):
    """Lost: an afternoon with code that never ran; or minutes for each test of a board that is known to fail."""
    machine.says("provision_instance", "boot", "board0: stalled at tftp", "board", ["PXE-E53: No boot filename"])
    text = "def test_a(board): pass\ndef test_b(board): pass\n"
    rc, cases, said = reported(machine, text=text, HETERO_FLAVOR="tp64.8x8")
    assert (rc, "2 errors" in said, "failed" in said.splitlines()[-1]) == (1, True, False), said
    assert "no board: the board did not come up (fault of: board): board0: stalled at tftp" in said
    assert "During handling of the above exception" not in said, said
    for case in cases.values():
        assert [one.tag for one in case if one.tag != "properties"] == ["error"]
        assert properties(case) == dict(board_ending="boot", board_console="PXE-E53: No boot filename")
    assert machine.verbs.count("provision_instance") == 1


#: Ansible, which takes its time to end: until somebody gives the board back, or a second.
SLOW = """
import os, signal, sys, time
def end(*_):
    os.write(1, b"told\\n")
    until = time.monotonic() + 1
    while "terminate_instance" not in open(f"{SITE}/calls").read() and time.monotonic() < until:
        time.sleep(0.02)
    with open(f"{SITE}/calls", "a") as log:
        log.write('["ended", {}]\\n')
    os._exit(1)
SITE = os.environ["PLAYED_SITE"]
signal.signal(signal.SIGTERM, end)
"""


def test_no_playbook_runs_on_when_ctrl_c_is_pressed_again(machine):
    """Lost: a board for the whole lease: the playbook that asks for it went on when it was given back."""
    program = machine.folder / "bin" / "ansible-playbook"
    first, rest = program.read_text().split("\n", 1)
    program.write_text(f"{first}\n{SLOW}{rest}")
    machine.hangs("provision_instance")
    (machine.folder / "test_driver.py").write_text("def test_a(board): pass\n")
    words = ("-m", "pytest", "-s", "-p", "no:cacheprovider", "-p", "heteroci.pytest_plugin", "--board-flavor", "x")
    process = machine.start(*words, program=sys.executable, PYTHONPATH=str(CI))
    for said in ("provision_instance runs\n", "told\n"):
        while (line := process.stderr.readline()) != said:
            assert line
        process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=LIMIT)
    assert machine.verbs == ["provision_instance", "ended", "terminate_instance"], out + said
    assert list(machine.state.iterdir()) == []


@pytest.mark.parametrize("how", ["fd", "sys", "tee-sys", "no"])
def test_tests_have_boards_however_their_output_is_caught(machine, how):
    """Lost: all boards of a CI that runs pytest --capture=tee-sys: "no board: fileno"."""
    rc, cases, said = reported(machine, "--board-flavor", "x", f"--capture={how}", text="def test_a(board): pass\n")
    assert (rc, list(cases), machine.verbs) == (0, ["test_a"], ["provision_instance", "terminate_instance"]), said


#: Tests with a process that has all that pytest has open, and goes on when they are over, as a pool of workers does.
FORKING = """
import multiprocessing
workers = []


def test_forks(board):
    workers.append(multiprocessing.get_context("fork").Pool(1))
    assert workers[0].map(abs, [-42]) == [42]
    print("forked", workers[0]._pool[0].pid, flush=True)
"""


def test_what_tests_have_forked_keeps_no_board(machine):
    """Lost: the machine of a CI: pytest waited without an end, when all tests were over, for a pool of workers."""
    rc, _cases, said = reported(machine, "--board-flavor", "x", text=FORKING)
    assert (rc, machine.verbs, list(machine.state.iterdir())) == (0, ["provision_instance", "terminate_instance"], [])


#: The same with one that nothing ends.
FORKED = """
import os, time


def test_forks(board):
    forked = os.fork()
    if forked:
        print("forked", forked, flush=True)
    time.sleep(600)
"""


def test_what_killed_tests_have_forked_keeps_no_board(machine):
    """Lost: a board until its lease ends, as a worker of a pytest that was killed goes on."""
    (machine.folder / "test_driver.py").write_text(FORKED)
    words = ("-m", "pytest", "-s", "-p", "no:cacheprovider", "-p", "heteroci.pytest_plugin", "--board-flavor", "x")
    process = machine.start(*words, program=sys.executable, PYTHONPATH=str(CI))
    while "forked" not in (line := process.stdout.readline()):
        assert line
    worker, wait = int(line.split()[-1]), keeper_of(process)
    try:
        process.kill()
        wait()
        assert (machine.verbs, list(machine.state.iterdir())) == (["provision_instance", "terminate_instance"], [])
        os.kill(worker, 0)
    finally:
        os.kill(worker, signal.SIGKILL)
        process.communicate(timeout=LIMIT)


def test_a_board_for_each_module(machine):
    """Lost: boards that a module's tests do not share with another's."""
    text = "def test_a(board): pass\ndef test_b(board): pass\n"
    words = ("-o", "board_scope=function", "--board-flavor", "x")
    rc, _cases, said = reported(machine, *words, text=text)
    assert rc == 0, said
    assert machine.verbs == ["provision_instance", "terminate_instance"] * 2
    rc, _cases, said = reported(machine, text=text)
    assert (rc, "no board: the request is wrong: name a flavor: --board-flavor, or" in said) == (1, True), said


FAILING = """
def test_fails(board):
    board.run("seq 50; echo not here >&2; exit 3")


def test_hangs(board):
    board.run("echo begun; exec sleep 60", timeout=1)
"""


def test_a_command_that_fails_is_told_by_its_own_words(machine):
    """Lost: what the command said, below fifty lines of subprocess.py."""
    rc, cases, said = reported(machine, "--board-flavor", "x", text=FAILING)
    assert rc == 1, said
    assert "subprocess.py" not in said, said
    assert "_execute_child" not in said
    lines = [line.lstrip("E ") for line in said.splitlines()]
    first = lines.index("heteroci.board.CommandFailed: 'seq 50; echo not here >&2; exit 3' ended with 3 on the board")
    assert lines[first + 1 : first + 3] == ["… (10 lines before these)", "11"]
    assert lines[first + 41] == "50"
    assert "not here" in said
    assert "'echo begun; exec sleep 60' timed out after 1 seconds" in said
    assert [one.tag for name in ("test_fails", "test_hangs") for one in cases[name] if one.tag == "failure"] == [
        "failure",
        "failure",
    ]
