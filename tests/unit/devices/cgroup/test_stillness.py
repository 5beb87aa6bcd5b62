# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container that stands still for a moment, in real cgroups. If these fail, a GPU is given on while a tenant has it,
or a tenant's container never goes on.
"""

from __future__ import annotations

import errno
import os
import platform
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import (
    members,
    mounts,
    stillness,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.members import pids_below
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.stillness import still
from ansible_collections.hetero.compute.tests.unit.devices.cgroup.chain import program
from ansible_collections.hetero.compute.tests.unit.devices.cgroup.real_cgroups import new_cgroup

COUNTING = "n=0; while :; do n=$((n+1)); echo $n >{}; done"
SHORT = """
import os, resource, sys
sys.path.insert(0, {path!r})
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.stillness import still
if {pids!r}:
    open({pids!r} + "/cgroup.procs", "w").write("0")
else:
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 1,) * 2)
try:
    with still({folders!r}) as stands:
        print(stands.holds([]))
except OSError as error:
    print(error.errno)
"""
HEADLESS = """
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=[60]).start()
print(flush=True)
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)  # exit(2), of this thread
"""
#: Longer than anything here takes on a busy machine (seconds).
LONG = 30
HOLDING = """
import signal, sys, time
sys.path.insert(0, {path!r})
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import stillness
stillness.LONGEST, stillness.PATIENCE = {longest!r}, 30
with stillness.still({folders!r}) as stands:
    print(stands.holds([]), flush=True)
    time.sleep({seconds!r})
    print(stands.holds([]), stands.is_lost, flush=True)
"""


@pytest.fixture(params=["v2", "freezer"])
def box(request, stack, tmp_path, monkeypatch):
    """([folders of a container's device cgroups], a process in it, the folder where it is frozen, where it counts)."""
    monkeypatch.setattr(stillness, "PATIENCE", LONG)
    folders = [stack.enter_context(new_cgroup("v1"))]
    name = os.path.basename(folders[0])
    other = Path(mounts.mounts()[request.param][0].point, name)
    other.mkdir()
    stack.callback(other.rmdir)
    count = tmp_path / "count"
    process = subprocess.Popen(["sh", "-c", COUNTING.format(count)])
    stack.callback(process.wait, LONG)
    stack.callback(process.kill)
    stack.callback(thaw, other)
    for folder in (folders[0], other):
        Path(folder, "cgroup.procs").write_text(str(process.pid))
    await_that(lambda: count.exists() and count.read_text())
    return [*folders, *([str(other)] if request.param == "v2" else [])], process, other, count


def thaw(folder):
    file = folder / "cgroup.freeze"
    file.write_text("0") if file.exists() else (folder / "freezer.state").write_text("THAWED")


def await_that(is_so):
    end = Deadline(LONG)
    while not is_so():
        assert not end.passed
        end.nap(0.01)


def state(folder):
    """(whether it is frozen itself, its marks)."""
    file = folder / "cgroup.freeze"
    own = (file if file.exists() else folder / "freezer.self_freezing").read_text().strip()
    return own == "1", os.listxattr(folder)


def goes_on(count):
    before = count.read_text()
    await_that(lambda: count.read_text() not in ("", before))
    return True


def test_it_stands_still_and_goes_on(box):
    """Lost: a look at what is not there any more; or the tenant's container."""
    folders, process, other, count = box
    with still(folders) as stands:
        assert stands.holds([process.pid])
        assert not stands.holds([process.pid, os.getpid()])
        before = count.stat().st_mtime_ns
        time.sleep(0.2)
        assert count.stat().st_mtime_ns == before
        assert state(other) == (True, [stillness.MARK])
    assert state(other) == (False, [])
    assert goes_on(count)


def test_a_program_whose_first_thread_ended_stands_still_too(box):
    """Lost: each GPU's taking back from a container with such a program, which version 1 has in no cgroup."""
    folders, process, other, _count = box
    with subprocess.Popen([sys.executable, "-c", HEADLESS], stdout=subprocess.PIPE) as program:
        for folder in {*folders, str(other)}:
            Path(folder, "cgroup.procs").write_text(str(program.pid))
        program.stdout.readline()
        await_that(lambda: members.has_ended(program.pid))
        try:
            with still(folders) as stands:
                assert program.pid in pids_below(folders)
                assert stands.holds([process.pid, program.pid])
        finally:
            program.kill()


def test_one_look_is_at_a_time(box):
    """Lost: a GPU, to what went on while it was looked at, for a dry run that looked as well."""
    folders, process, other, _count = box
    with Held(folders, seconds=1) as held:
        with still(folders) as stands:
            assert held.process.poll() is not None or held.process.stdout.readline() == b"True False\n"
            assert stands.holds([process.pid])
        assert state(other) == (False, [])


def test_what_goes_on_meanwhile_is_noticed(box, monkeypatch):
    """Lost: a GPU, to what went on while it was looked at, and stood still again by the end."""
    folders, process, other, _count = box
    monkeypatch.setattr(stillness, "LONGEST", 0.1)
    with still(folders) as stands, still(folders) as second:
        assert second.holds([process.pid])
        assert not stands.holds([process.pid])
        assert stands.is_lost
    monkeypatch.setattr(stillness, "LONGEST", LONG)
    with still(folders) as stands:
        thaw(other)
        assert not stands.holds([process.pid])
        assert stands.is_lost
    assert state(other) == (False, [])


def test_it_goes_on_after_an_error_in_the_block(box):
    """Lost: the tenant's container, to a fault of ours."""
    folders, _process, other, _count = box
    with pytest.raises(FileNotFoundError), still(folders):
        raise FileNotFoundError
    assert state(other) == (False, [])


class Held:
    """Another process of ours that looks at a container."""

    def __init__(self, folders, longest=stillness.LONGEST, seconds=LONG):
        path = str(Path(__file__).parents[4] / "build")
        text = HOLDING.format(path=path, folders=folders, longest=longest, seconds=seconds)
        self.process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, start_new_session=True)
        assert self.process.stdout.readline() == b"True\n"
        self.pid = self.process.pid
        (self.guardian,) = map(int, Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split())

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        for pid in (self.pid, self.guardian):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(LONG)
        self.process.stdout.close()


def test_it_goes_on_where_we_are_killed(box):
    """Lost: the tenant's container, to the end of an operator's ssh, or to who kills a play."""
    folders, _process, other, count = box
    with Held(folders) as held:
        assert state(other)[0]
        os.killpg(held.pid, signal.SIGKILL)
        await_that(lambda: state(other) == (False, []))
    assert goes_on(count)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_goes_on_where_all_our_processes_are_told_to_end(box, number):
    """Lost: the tenant's container, to systemd, which ends a session or a service with all that is in it."""
    folders, _process, other, count = box
    with Held(folders) as held:
        for pid in (held.guardian, held.pid):
            os.kill(pid, number)
        await_that(lambda: state(other) == (False, []))
    assert goes_on(count)


def test_it_goes_on_where_we_are_held_up(box):
    """Lost: the tenant's container, for as long as a debugger, a Ctrl-Z or a file that nobody reads holds us up."""
    folders, _process, other, count = box
    with Held(folders, longest=0.5, seconds=1) as held:
        os.kill(held.pid, signal.SIGSTOP)
        await_that(lambda: state(other) == (False, []))
        assert goes_on(count)
        os.kill(held.pid, signal.SIGCONT)
        assert held.process.stdout.readline() == b"False True\n"


def test_a_guardian_that_is_stopped_holds_up_nobody(box):
    """Lost: a verb for ever, and the locks that it has."""
    folders, _process, other, _count = box
    with Held(folders, seconds=1) as held:
        os.kill(held.guardian, signal.SIGSTOP)
        assert held.process.wait(LONG) == 0
    assert state(other) == (False, [])


def test_a_guardian_is_waited_for_no_longer_than_it_takes(monkeypatch):
    """Lost: a second of each attach of a GPU."""
    naps, real = [], stillness.Deadline.nap

    def nap(deadline, seconds):
        naps.append(seconds)
        real(deadline, 0.001)

    monkeypatch.setattr(stillness.Deadline, "nap", nap)
    guardian = os.fork()
    if guardian == 0:
        time.sleep(0.05)
        os._exit(0)
    stillness._end(guardian, None, b"")
    assert naps
    assert max(naps) < 0.01


def test_where_all_our_processes_are_killed_the_next_one_lets_it_go_on(box, monkeypatch):
    """Lost: the tenant's container, to the kernel that is out of memory, until somebody knows why it stands still."""
    folders, process, other, count = box
    with Held(folders) as held:
        os.kill(held.guardian, signal.SIGKILL)
        held.process.kill()
        held.process.wait(LONG)
        assert state(other) == (True, [stillness.MARK])
        stillness.let_go_on(folders)
        assert not stillness.is_left(folders), "it may be looked at"
        assert state(other) == (True, [stillness.MARK])
    monkeypatch.setattr(stillness, "LONGEST", 0.1)
    await_that(lambda: stillness.is_left(folders))
    stillness.let_go_on(folders)
    assert goes_on(count)
    assert state(other) == (False, [])
    assert not stillness.is_left(folders)
    assert not stillness.is_left([])
    stillness.let_go_on([])


@pytest.mark.parametrize("what", ["files", "processes"])
def test_who_has_no_file_or_process_left_for_it_says_so(box, what, stack):
    """Lost: a GPU that is given on after half a look, on a host that a tenant has filled up."""
    folders, _process, other, count = box
    pids = Path("/sys/fs/cgroup/pids", other.name)
    if what == "processes":
        if not pids.parent.is_dir():
            pytest.skip("processes are limited elsewhere on this machine")
        pids.mkdir()
        stack.callback(pids.rmdir)
        (pids / "pids.max").write_text("1")
    text = SHORT.format(
        path=str(Path(__file__).parents[4] / "build"), folders=folders, pids=str(pids) if what == "processes" else ""
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=LONG, check=False)
    assert done.stdout == f"{errno.EMFILE if what == 'files' else errno.EAGAIN}\n", done
    assert state(other) == (False, [])
    assert goes_on(count)


@pytest.mark.parametrize("many", [0, 1, 2])
def test_it_goes_on_where_no_more_files_can_be_opened(box, many):
    """Lost: the tenant's container, to a process that has as many files open as it may."""
    folders, process, other, _count = box
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError), still(folders):
        used = len(os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (used - 1 + many, before[1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert state(other) == (False, [])


def test_what_somebody_else_froze_stays_so(box):
    """Lost: why an operator froze it."""
    folders, process, other, _count = box
    file = other / "cgroup.freeze"
    file.write_text("1") if file.exists() else (other / "freezer.state").write_text("FROZEN")
    with still(folders) as stands:
        assert stands.holds([process.pid])
    assert state(other) == (True, [])
    # what we left frozen, once we and our guardian were killed, goes on after the next look
    os.setxattr(other, stillness.MARK, b"1.0" + stillness.FROZE)
    with still(folders) as stands:
        assert stands.holds([process.pid])
    assert state(other) == (False, [])


def test_what_somebody_froze_after_a_look_was_killed_before_it_froze_it_stays_so(box):
    """Lost: why an operator froze it."""
    folders, process, other, _count = box
    os.setxattr(other, stillness.MARK, b"1.0")
    file = other / "cgroup.freeze"
    file.write_text("1") if file.exists() else (other / "freezer.state").write_text("FROZEN")
    assert not stillness.is_left(folders)
    stillness.let_go_on(folders)
    assert state(other) == (True, [])
    os.setxattr(other, stillness.MARK, b"1.0")
    with still(folders) as stands:
        assert stands.holds([process.pid])
    assert state(other) == (True, [])


def test_nobody_freezes_himself(stack):
    """Lost: this process, for ever, where a container has no cgroup of its own."""
    mine = mounts.directories(mounts.cgroups("self"))
    with still([mine["v1"], mine["v2"]]) as stands:
        assert not stands.holds([])
    freezer = stillness.Freezer("/x", "v2", mounts.cgroups("self")["v2"], "f", "f", b"1", b"0")
    assert freezer.holds("self")
    with still([stack.enter_context(new_cgroup("v1"))]) as stands:
        assert not stands.holds([]), "it is in no freezer"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its program is of x86-64")
def test_who_is_another_process_each_moment_is_listed(box, tmp_path):
    """Lost: a GPU, to a program that forks and ends faster than anybody reads a list."""
    folders, process, _other, _count = box
    (tmp_path / "chain").write_bytes(program())
    (tmp_path / "chain").chmod(0o700)
    into = "".join(f"echo $$ >{folder}/cgroup.procs; " for folder in {*folders, str(box[2])})
    ignoring = dict(preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    with subprocess.Popen(["sh", "-c", f"{into} exec {tmp_path}/chain"], **ignoring):
        pass
    for _time in range(5):
        with still(folders) as stands:
            pids = pids_below(folders)
            assert stands.holds(pids)
            assert set(pids) > {process.pid}, "and not those alone that are ending"
    with still(folders):
        for pid in set(pids_below(folders)) - {process.pid}:
            os.kill(pid, signal.SIGKILL)
    await_that(lambda: pids_below(folders) == [process.pid])
