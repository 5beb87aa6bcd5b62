# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that write to one database at the same time. If these fail, plays that come at once are refused with a
locked database though each write takes milliseconds, or a killed one keeps all others waiting.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import sqlite3
import time
from functools import partial

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.database import Database, Layout
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.write_turns import turn

LAYOUT = Layout(1, ("CREATE TABLE seen (pid INTEGER)",), "set it up", lambda path: f"restore {path}")
#: Seconds that a transaction waits for another one.
BUSY = 1.0


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "state.db")
    Database(path, LAYOUT).close()
    return path


def child(what):
    """A process of its own that does something; its id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        what()
        status = 0
    finally:
        os._exit(status)


def open_files():
    return [name for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")]


def writes(path, seconds):
    """A function: one transaction, which takes so long."""

    def work():
        database = Database(path, LAYOUT, busy=BUSY)
        with database.transaction():
            time.sleep(seconds)
            database.write("INSERT INTO seen VALUES (?)", (os.getpid(),))

    return work


def wait_in_vain(path):
    with turn(path, 0.01):
        pass


def rows(path):
    database = Database(path, LAYOUT, create=False)
    try:
        return [row["pid"] for row in database.rows("SELECT pid FROM seen")]
    finally:
        database.close()


def test_each_of_many_has_its_turn(path):
    """Lost: claims of people who ask at the same time: together they take longer than one waits for another."""
    children = [child(writes(path, 4 * BUSY / 20)) for _one in range(20)]
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 20
    assert sorted(rows(path)) == sorted(children)


def waiting(path):
    """How many wait in the kernel's queue for the turn, as /proc/locks lists them behind who has it."""
    inode = f":{os.stat(f'{path}-turn').st_ino} "
    with open("/proc/locks", encoding="ascii") as lines:
        return sum("->" in line and inode in line for line in lines)


def has_it(path, told, until):
    """Have the turn, say so, and keep it until nobody can write to a pipe any more."""
    os.close(until[1])
    with turn(path, 60):
        os.write(told, b"1")
        os.read(until[0], 1)


def test_they_come_in_the_order_in_which_they_asked(path):
    """Lost: the minutes of who asked first, to all who asked later and were lucky."""
    came, told, until = os.pipe(), os.pipe(), os.pipe()

    def work(number):
        os.close(until[1])
        with turn(path, 600):
            os.write(came[1], bytes([number]))

    # another process has it, for these would have its open file from this one
    pids = [child(lambda: has_it(path, told[1], until))]
    assert os.read(told[0], 1) == b"1"
    for number in range(12):
        pids.append(child(partial(work, number)))
        ends = time.monotonic() + 60
        while waiting(path) <= number:
            assert time.monotonic() < ends
            time.sleep(0.01)
    os.close(until[1])
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 13
    assert list(os.read(came[0], 100)) == list(range(12))


def test_who_waited_in_vain_keeps_nobody_waiting(path):
    """Lost: a node, to a play that gave up waiting and goes on."""
    with turn(path, 60):
        wait_in_vain(path)
        assert waiting(path) == 1, "its thread waits on"
    began = time.monotonic()
    with turn(path, 60):
        assert time.monotonic() - began < 30


def test_a_child_that_was_begun_meanwhile_keeps_nobody_waiting(path):
    """Lost: a node's database, for as long as a program of it runs that another thread began at the wrong moment."""
    until = os.pipe()

    def stay():
        os.close(until[1])
        os.read(until[0], 1)

    with turn(path, 60):
        pid = child(stay)
    began = time.monotonic()
    with turn(path, 60):
        assert time.monotonic() - began < 30
    os.close(until[1])
    assert os.waitpid(pid, 0)[1] == 0


def test_a_child_of_who_waited_in_vain_keeps_nobody_waiting(path):
    """Lost: the order in which they come and minutes of each write to a node's database, for as long as a program runs
    that was begun by a play whose turn came after it had given up.
    """
    told, until, ends = os.pipe(), os.pipe(), os.pipe()

    def stay():
        os.close(until[1])
        os.close(ends[1])
        os.read(ends[0], 1)

    holder = child(lambda: has_it(path, told[1], until))
    assert os.read(told[0], 1) == b"1"
    with turn(path, 0.01):
        assert waiting(path) == 1, "its thread waits on"
        pid = child(stay)
    os.close(until[1])
    assert os.waitpid(holder, 0)[1] == 0
    began = time.monotonic()
    while waiting(path):
        assert time.monotonic() - began < 60
        time.sleep(0.01)
    began = time.monotonic()
    with turn(path, 60):
        assert time.monotonic() - began < 30
    os.close(ends[1])
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("how", ["removed", "put back"])
def test_who_waited_by_a_file_that_was_removed_asks_again(path, how):
    """Lost: the writes of those who wait as somebody removes state.db* to put a copy back: they are in nobody's way."""
    told, until, came = os.pipe(), os.pipe(), os.pipe()

    def work():
        os.close(until[1])
        with turn(path, 60):
            os.write(came[1], b"1")

    holder = child(lambda: has_it(path, told[1], until))
    assert os.read(told[0], 1) == b"1"
    pid, began = child(work), time.monotonic()
    while not waiting(path):
        assert time.monotonic() - began < 60
        time.sleep(0.01)
    os.unlink(f"{path}-turn")
    if how == "put back":
        with open(f"{path}-turn", "w", encoding="ascii"):
            pass
    with turn(path, 60):
        os.close(until[1])
        assert os.waitpid(holder, 0)[1] == 0
        os.set_blocking(came[0], False)
        time.sleep(0.3)
        with pytest.raises(BlockingIOError):
            os.read(came[0], 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert os.read(came[0], 1) == b"1"


@pytest.mark.parametrize("free", [0, 1])
def test_a_turn_without_a_descriptor_is_none(path, free):
    """Lost: the writes of a process that has as many files open as it may, for want of one to ask or to wait by."""
    told, until = os.pipe(), os.pipe()
    holder = child(lambda: has_it(path, told[1], until))
    assert os.read(told[0], 1) == b"1"
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = os.open(path, os.O_RDONLY)  # the lowest of those that are free
    os.close(taken)
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken + free, most))
    try:
        began = time.monotonic()
        with turn(path, 60) as is_wanted:
            assert time.monotonic() - began < 30
            assert not is_wanted()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))
        os.close(until[1])
    assert os.waitpid(holder, 0)[1] == 0


def test_who_was_killed_has_no_turn(path):
    """Lost: a node, to a play that was killed while it wrote."""

    def stay():
        with turn(path, 60):
            os.write(ready[1], b"1")
            time.sleep(600)

    ready = os.pipe()
    pid = child(stay)
    assert os.read(ready[0], 1) == b"1"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    began = time.monotonic()
    with turn(path, 60):
        assert time.monotonic() - began < 30


def test_another_program_is_waited_for_no_longer_than_before(path):
    """Lost: the word that somebody has the database open (sqlite3), to minutes of silence."""
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        database, began = Database(path, LAYOUT, busy=BUSY), time.monotonic()
        with pytest.raises(HeteroError, match="has been locked by another process for 1 s"):
            database.write("INSERT INTO seen VALUES (1)")
        assert time.monotonic() - began < 50 * BUSY
        other.execute("ROLLBACK")
    database.close()


def test_a_turn_that_cannot_be_written_down_is_none(path):
    """Lost: the last writes of a node whose disk is full, for want of a file of no bytes."""
    os.unlink(f"{path}-turn")
    os.symlink("/nowhere/at/all", f"{path}-turn")
    database = Database(path, LAYOUT)
    database.write("INSERT INTO seen VALUES (7)")
    database.close()
    assert rows(path) == [7]


def test_a_turn_that_cannot_be_locked_is_none(path, monkeypatch):
    """Lost: the writes of a node whose kernel has no memory for a lock just now, though SQLite asks for its own."""

    def none(*_arguments):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with turn(path, 60) as is_wanted:
        assert not is_wanted()
    assert not any(os.path.samefile(f"/proc/self/fd/{name}", f"{path}-turn") for name in open_files())


def test_who_has_the_turn_sees_that_others_wait(path):
    """Lost: a person's claim beside a request for a rack of boards, which writes again and again."""
    with turn(path, 60) as is_wanted:
        assert not is_wanted()
        pid = child(lambda: wait_in_vain(path))
        assert os.waitpid(pid, 0)[1] == 0
        assert is_wanted()
    with turn(path, 60) as is_wanted:
        assert not is_wanted(), "of the next one nobody waits"


def test_each_that_waits_has_a_turn_beside_one_that_writes_on_and_on(path):
    """Lost: the same, where a database is written to for minutes."""
    ready = os.pipe()

    def on_and_on():
        database, ends = Database(path, LAYOUT, busy=BUSY), time.monotonic() + 600
        while time.monotonic() < ends:
            with database.together():
                for _each in range(4):
                    database.write("INSERT INTO seen VALUES (0)")
                    time.sleep(0.02)
            os.write(ready[1], b"1")

    pid = child(on_and_on)
    try:
        os.read(ready[0], 1)
        database = Database(path, LAYOUT, busy=BUSY)
        for _each in range(10):
            database.write("INSERT INTO seen VALUES (1)")
        turns = len(os.read(ready[0], 10000))
        database.close()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert turns < 40, "so many turns of the other one for ten of this one"


def test_a_look_takes_no_turn_and_leaves_nothing(tmp_path):
    """Lost: a dry run that changes nothing."""
    database = Database(str(tmp_path / "none.db"), LAYOUT, create=False)
    with database.transaction(dry=True):
        database.write("INSERT INTO seen VALUES (7)")
    database.close()
    assert os.listdir(tmp_path) == []
