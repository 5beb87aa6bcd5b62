# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks tests, in a copy of the project, about one mutant after another: `python -m mutants.asking COPY PATIENCE`.

PATIENCE are the seconds that any test may take. A line of JSON each way. What all questions need is imported once, and
each question is a fork of this process. All that a mutant starts ends with its question.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from .apart import DETACH, LIBC, apart, done, ends_with_its_parent

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
FREEZER = Path("/sys/fs/cgroup/freezer")
#: A test may take so many times what it took when it was recorded, and the caller's patience on top.
TIMES = 8
#: What many tests import, and no mutant is in: imported once.
COMMON = ("_hypothesis_pytestplugin", "hypothesis.strategies", "ansible.module_utils.basic", "netaddr", "pexpect")
COMMON += ("asyncio", "concurrent.futures.thread", "http.server", "sqlite3", "unittest.mock", "xml.dom.minidom", "yaml")
#: A case whose day it is not is asked as well: it was recorded. Without a choice tests/unit/conftest.py leaves it out.
ALL = "long or not long"
NO_TESTS = int(pytest.ExitCode.NO_TESTS_COLLECTED)


class Asked:
    """A pytest plugin: only these tests, in this order; each one's begin and end in a pipe."""

    def __init__(self, tests, pipe):
        self.order = {test: number for number, test in enumerate(tests)}
        self.pipe = pipe

    def tell(self, *words):
        os.write(self.pipe, (json.dumps(words) + "\n").encode())

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = sorted((item for item in items if item.nodeid in self.order), key=lambda one: self.order[one.nodeid])
        self.tell("begun", None)

    def pytest_collectreport(self, report):
        if report.failed:
            self.tell("failed", report.nodeid)

    def pytest_runtest_logstart(self, nodeid):
        self.tell("begun", nodeid)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.tell("failed", report.nodeid)
        elif report.when == "teardown":
            self.tell("passed", report.nodeid)


def ask(copy, seconds, patience):
    """How tests find the copy as it is now: "failed", "hung" or "passed", by which test, and those that passed.

    :param seconds: test → what it takes; in the order in which they are run.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os._exit(_run(copy, list(seconds), writing))
        finally:
            os._exit(99)
    os.close(writing)
    try:
        return _follow(child, reading, seconds, patience)
    finally:
        os.close(reading)
        end_all()
        clear(copy.parent / "t")


def _run(copy, tests, pipe):
    ends_with_its_parent()
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(copy)
    with open(copy.parent / "tests.log", "w") as log, open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    # plugins that no test needs take longer than most tests
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    argv = [
        "-x",
        "-q",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        "-p",
        "_hypothesis_pytestplugin",
        "-m",
        ALL,
        f"--basetemp={copy.parent / 't'}",
        *files,
    ]
    return int(pytest.main(argv, plugins=[Asked(tests, pipe)]))


def _follow(child, reading, seconds, patience):
    """What the tests say until their process has ended; orphans that come to us meanwhile are buried."""
    passed, failed, now, begun, rest = [], [], None, time.monotonic(), b""
    while True:
        left = begun + patience + TIMES * seconds.get(now, 0) - time.monotonic()
        if left <= 0:
            return ("failed", failed[0], passed) if failed else ("hung", now, passed)
        said = b""
        if select.select([reading, WAKING], [], [], left)[0]:
            # a process that the tests left behind keeps the pipe open: its end says nothing
            with contextlib.suppress(BlockingIOError):
                os.read(WAKING, 4096)
            if select.select([reading], [], [], 0)[0]:
                said = os.read(reading, 65536)
        *lines, rest = (rest + said).split(b"\n")
        for word, test in map(json.loads, lines):
            begun, now = time.monotonic(), test
            if word == "failed" or (word == "passed" and test not in failed):
                (failed if word == "failed" else passed).append(test)
        if not said and child in buried():
            code = buried.codes[child]
            if failed:
                return "failed", failed[0], passed
            # a process that ends within a test was taken down by the mutant, whatever it ends with
            over = code in (0, NO_TESTS) and (now is None or now in passed)
            return ("passed", None, passed) if over else ("failed", now, passed)


def buried():
    """Ended children, by process id; their exit codes are in buried.codes."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            buried.codes[pid] = os.waitstatus_to_exitcode(status)
    return buried.codes


buried.codes = {}


def end_all():
    """No process of the question lives on: whose parent ends becomes our child, so the tree below us is all of them."""
    while True:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        if not children:
            break
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
            thaw(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(int(pid), 0)
    buried.codes.clear()


def thaw(pid):
    """What a mutant left in a frozen cgroup (version 1) does not die before it is thawed, with all above it."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            _number, controllers, path = line.split(":", 2)
            frozen = FREEZER / path.lstrip("/") if controllers == "freezer" else FREEZER
            while frozen != FREEZER:
                (frozen / "freezer.state").write_text("THAWED")
                frozen = frozen.parent


def clear(folder):
    """What tests left in it goes; what they mounted there is unmounted first, for it may be anything of the machine."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()]
    for point in reversed([point for point in points if point.startswith(f"{folder}/")]):
        done(LIBC.umount2(point.encode(), DETACH))
    shutil.rmtree(folder, ignore_errors=True)


def main(copy, patience):
    global WAKING
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    # what a play shows while it runs goes to the output of its parent, which we are where a test has forked nothing
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
    if os.getpid() != 1:
        done(LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    WAKING, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    for name in COMMON:
        importlib.import_module(name)
    # else each fork's garbage collector copies the pages of what is imported
    gc.freeze()
    for line in sys.stdin:
        verdict, test, passed = ask(copy, json.loads(line), patience)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = round(used.ru_utime + used.ru_stime, 2)
        answers.write(json.dumps(dict(verdict=verdict, test=test, passed=passed, cpu=cpu)) + "\n")


if __name__ == "__main__":
    ends_with_its_parent()
    apart(lambda: main(Path(sys.argv[1]).resolve(), float(sys.argv[2])))
