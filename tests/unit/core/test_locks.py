# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, two verbs work on one board at once, a killed play blocks its board for ever, or nobody is told who
holds it. Holders are real processes."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import locks
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.child import Child
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import held_by, holder_of, lock

HOLD = """
import sys
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import held_by, lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
with lock(sys.argv[1], "board3", sys.argv[2], sys.argv[3], Deadline(20)):
    print("held", flush=True)
    sys.stdin.readline()
"""

COUNT = """
import sys
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import held_by, lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
for turn in range(20):
    with lock(sys.argv[1], "board3", "count", "test", Deadline(30)):
        with open(sys.argv[2]) as file:
            number = int(file.read())
        with open(sys.argv[2], "w") as file:
            file.write(str(number + 1))
"""


@pytest.fixture
def run_folder(tmp_path):
    return str(tmp_path / "run" / "hetero")


@pytest.fixture
def hold(run_folder):
    """Start a process that holds board3 until it reads a line; killed at the end."""
    started = []

    def start(verb, actor, wait=True):
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, run_folder, verb, actor],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(holder)
        if wait:
            assert holder.stdout.readline() == "held\n"
        return holder

    yield start
    for holder in started:
        holder.kill()
        holder.wait(timeout=60)
        holder.stdin.close()
        holder.stdout.close()


def content(run_folder):
    with open(os.path.join(run_folder, "locks", "board3"), encoding="utf-8") as file:
        return file.read()


def test_the_holder_writes_who_it_is_and_leaves_the_file(run_folder):
    with lock(run_folder, "board3", "provision", "alice", Deadline(1)):
        held = json.loads(content(run_folder))
        assert stat.S_IMODE(os.stat(run_folder).st_mode) == 0o700
        assert stat.S_IMODE(os.stat(os.path.join(run_folder, "locks")).st_mode) == 0o700
    assert (held["pid"], held["verb"], held["actor"]) == (os.getpid(), "provision", "alice")
    assert held["since"] == pytest.approx(time.time(), abs=60)
    assert content(run_folder) == ""


def test_an_error_in_the_block_gives_the_lock_back(run_folder):
    with pytest.raises(ZeroDivisionError), lock(run_folder, "board3", "a", "b", Deadline(1)):
        assert 1 / 0
    with lock(run_folder, "board3", "a", "b", Deadline(0)):
        pass


def test_a_deadline_that_passes_names_the_holder(run_folder, hold):
    holder = hold("reboot", "carol")
    told = []
    start = time.monotonic()
    with pytest.raises(TimedOut) as error, lock(run_folder, "board3", "stop", "me", Deadline(0.5), told.append):
        pytest.fail("two hold the lock")
    assert 0.45 <= time.monotonic() - start < 60
    assert len(told) == 1
    assert told[0].startswith(f"held by reboot (carol, pid {holder.pid}, since ")
    assert told[0].endswith("); waited for until 0.5 s are over")
    assert f"board3: still held by reboot (carol, pid {holder.pid}" in str(error.value)


def test_other_boards_are_not_held(run_folder, hold):
    hold("reboot", "carol")
    with lock(run_folder, "board4", "stop", "me", Deadline(0)):
        pass


def test_a_killed_holder_is_no_obstacle(run_folder, hold):
    holder = hold("reboot", "carol")
    holder.kill()
    holder.wait(timeout=60)
    assert json.loads(content(run_folder))["pid"] == holder.pid  # its text is still there
    told = []
    with lock(run_folder, "board3", "stop", "me", Deadline(0), told.append):
        assert json.loads(content(run_folder))["pid"] == os.getpid()
    assert told == []


def test_a_holder_that_ends_while_one_waits_hands_over_within_a_moment(run_folder, hold):
    holder = hold("reboot", "carol")
    ended = []

    def waiting(text):
        holder.stdin.write("go\n")
        holder.stdin.flush()
        ended.append(time.monotonic())

    with lock(run_folder, "board3", "stop", "me", Deadline(120), waiting):
        assert time.monotonic() - ended[0] < 60


def test_each_further_holder_is_told(run_folder, hold):
    first = hold("reboot", "carol")
    second = []
    told = []

    def waiting(text):
        told.append(text)
        if len(told) == 1:
            # The second one holds a lock of its own name in the same file, as after a hand-over.
            first.kill()
            first.wait(timeout=60)
            second.append(hold("wipe", "dave"))
        elif "wipe" in text:
            second[0].stdin.write("go\n")
            second[0].stdin.flush()

    with lock(run_folder, "board3", "stop", "me", Deadline(60), waiting):
        pass
    assert "reboot (carol" in told[0]
    assert "wipe (dave" in told[-1]


def test_the_text_of_a_dead_one_is_not_blamed_for_a_living_holder(run_folder, hold):
    """A holder that was only just given the lock has not written its name yet."""
    holder = hold("reboot", "carol")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(timeout=60)
    with open(os.path.join(run_folder, "locks", "board3"), "w", encoding="utf-8") as file:
        file.write(json.dumps({"pid": gone.pid, "verb": "old", "actor": "old", "since": 0}))
    with pytest.raises(TimedOut, match=f"still held by pid {holder.pid} after"), lock(
        run_folder, "board3", "stop", "me", Deadline(0.2)
    ):
        pytest.fail("two hold the lock")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "5", '{"pid": "x", "verb": 1, "actor": 2, "since": 3}', "\x00\udcff" * 9]
)
def test_a_text_that_is_none_is_no_error(run_folder, hold, text):
    holder = hold("reboot", "carol")
    with open(os.path.join(run_folder, "locks", "board3"), "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))
    held = lock(run_folder, "board3", "stop", "me", Deadline(0.1))
    with pytest.raises(TimedOut, match=f"still held by pid {holder.pid} after"), held:
        pytest.fail("two hold the lock")


def test_six_processes_count_without_losing_one(run_folder, tmp_path):
    number = tmp_path / "number"
    number.write_text("0")
    counters = [subprocess.Popen([sys.executable, "-c", COUNT, run_folder, str(number)]) for start in range(6)]
    try:
        assert [counter.wait(timeout=300) for counter in counters] == [0] * 6
    finally:
        for counter in counters:
            counter.kill()
    assert number.read_text() == "120"


def test_a_folder_that_cannot_be_made_is_named():
    held = lock("/proc/hetero", "board3", "stop", "me", Deadline(0))
    what = r"board3: lock cannot be opened in /proc/hetero/locks .*: make /proc/hetero"
    with pytest.raises(HeteroError, match=what), held:
        pytest.fail("there is no such folder")


def test_who_only_asks_is_told_at_once_and_changes_nothing(run_folder, hold):
    """Lost: a dry run that takes a board which is just booting for one that contradicts its record."""
    assert held_by(run_folder, "board3") is None
    assert not os.path.exists(run_folder)
    process = hold("start", "jo")
    assert held_by(run_folder, "board3").startswith(f"start (jo, pid {process.pid}, since ")
    process.kill()
    process.wait()
    assert held_by(run_folder, "board3") is None


@pytest.mark.parametrize(
    ("actor", "shown"), [("pid 1", "reboot"), ("user id 0 pid 1", "reboot (user id 0"), ("carol", "reboot (carol")]
)
def test_a_holder_without_a_name_is_named_by_one_process(tmp_path, actor, shown):
    """Lost: the time of who looks for two processes, or ends the wrong one: the first had started the second."""
    told = []
    with lock(str(tmp_path), "board3", "reboot", actor, Deadline(5)), pytest.raises(TimedOut):  # noqa: SIM117
        with lock(str(tmp_path), "board3", "reap", "reap", Deadline(0.05), told.append):
            pytest.fail("two hold the lock")
    assert told[0].startswith(f"held by {shown}")
    assert told[0].count("pid ") == 1
    assert f"pid {os.getpid()}, since" in told[0]


def test_who_holds_a_file_that_names_nobody_is_told_by_the_kernel(tmp_path):
    """Lost: whom an import, or a set-up, waits for: their files name no holder."""
    path = tmp_path / "lock"
    take = "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.flock(file, fcntl.LOCK_EX)"
    with path.open("w", encoding="utf-8") as file:
        assert holder_of(file.fileno()) == "another process"
        argv = [sys.executable, "-c", f"{take}; print('held', flush=True); input()", str(path)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout.readline() == "held\n"
            assert holder_of(file.fileno()) == f"pid {other.pid}"
            other.stdin.write("\n")
        assert holder_of(file.fileno()) == "another process"


@contextmanager
def orphan(held):
    """A process that holds a lock is killed, and a child of it works on; the ids of both.

    :param held: a context manager that takes the lock.
    """
    read, write = os.pipe()
    parent = os.fork()
    if parent == 0:
        try:
            with held:
                os.write(write, str(Child(lambda: time.sleep(60))._pid).encode())
                time.sleep(60)
        finally:
            os._exit(0)
    os.close(write)
    child = int(os.read(read, 20))
    os.close(read)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    try:
        yield parent, child
    finally:
        with suppress(ProcessLookupError):  # a test may have ended it
            os.kill(child, signal.SIGKILL)


def test_a_child_that_works_on_for_a_killed_holder_is_named(run_folder):
    """Lost: whom to end. The lock was said to be held by another process, and nobody learned by which."""
    with orphan(lock(run_folder, "board3", "rebuild", "carol", Deadline(5))) as (_parent, child):
        words = f"rebuild (carol, pid {child}, since "
        assert held_by(run_folder, "board3").startswith(words)
        told = []
        with pytest.raises(TimedOut) as error, lock(run_folder, "board3", "stop", "me", Deadline(0.3), told.append):
            pytest.fail("two hold the lock")
        assert told[0].startswith(f"held by {words}")
        assert f"board3: still held by {words}" in str(error.value)
        os.kill(child, signal.SIGKILL)  # as printed
        with lock(run_folder, "board3", "stop", "me", Deadline(60)):
            assert json.loads(content(run_folder))["verb"] == "stop"


def test_a_holder_that_is_killed_while_one_waits_is_not_blamed_at_the_end(run_folder, monkeypatch):
    """Lost: the time of who looks for the process that was told at first, which is gone by the deadline."""
    with orphan(lock(run_folder, "board3", "rebuild", "carol", Deadline(5))) as (parent, child):
        names = iter([f"rebuild (carol, pid {parent}, since 12:00:00)"])
        look = locks._named
        monkeypatch.setattr(locks, "_named", lambda *more, **how: next(names, None) or look(*more, **how))
        with pytest.raises(TimedOut, match=f"rebuild .carol, pid {child}, "):  # noqa: SIM117
            with lock(run_folder, "board3", "stop", "me", Deadline(0.3)):
                pytest.fail("two hold the lock")


def test_a_process_that_has_the_number_of_a_killed_holder_is_not_blamed(run_folder, hold):
    """Lost: a process that has nothing to do with the lock, to who was told to end it."""
    holder = hold("reboot", "carol")
    with open(os.path.join(run_folder, "locks", "board3"), "w", encoding="utf-8") as file:
        file.write(json.dumps({"pid": os.getpid(), "verb": "old", "actor": "old", "since": 0}))
    assert held_by(run_folder, "board3") == f"pid {holder.pid}"


def test_the_child_of_a_killed_process_that_took_a_file_without_a_name_is_told(tmp_path):
    """Lost: the same of an import or a set-up. The kernel's list of locks names who took it, who cannot be ended."""

    @contextmanager
    def taken_file():
        with open(tmp_path / "lock", "w", encoding="utf-8") as own:
            fcntl.flock(own, fcntl.LOCK_EX)
            yield

    with orphan(taken_file()) as (_parent, child), open(tmp_path / "lock", encoding="utf-8") as file:
        assert holder_of(file.fileno()) == f"pid {child}"


def test_turns_are_for_root_alone_and_have_a_bound(tmp_path, monkeypatch):
    """Lost: each verb that takes one, to any account that locks it for ever; or a node's memory, to folders that go."""
    turns = tmp_path / "turns"
    monkeypatch.setattr(locks, "TURNS", str(turns))
    monkeypatch.setattr(locks, "MOST_TURNS", 1)
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        os.close(locks.open_turn("set-up", str(tmp_path / name)))
    assert stat.S_IMODE(turns.stat().st_mode) == 0o700
    assert [(file.name, stat.S_IMODE(file.stat().st_mode)) for file in turns.iterdir()] == [("set-up-0", 0o600)]
