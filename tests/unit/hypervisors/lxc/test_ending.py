# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a container whose root does not want it to end, or leaves much behind: with cgroups of its own.

Tests hypervisors/lxc/new_container.py, hypervisors/lxc/own_file_systems.py.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import members, mounts, trees
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import (
    new_container,
    own_file_systems,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import IdMap
from ansible_collections.hetero.compute.tests.unit.devices.cgroup.real_cgroups import new_cgroup
from ansible_collections.hetero.compute.tests.unit.devices.gpus import own_file_system
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc.conftest import CLONE_NEWNS, Boxes, libc

#: Levels; the path to the last one is longer than a path may be.
DEEP = 1500
#: Freezes a cgroup again and again.
FREEZING = "import sys\nwhile True: open(sys.argv[1], 'w').write('FROZEN')"


@pytest.fixture
def pure_v1():
    """cgroup v1 alone, as this process and those that it starts see it, for the length of a test."""
    before = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    assert libc.unshare(CLONE_NEWNS) == 0
    try:
        unified = mounts.mounts()["v2"][0].point
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["umount", "-l", unified], check=True)
        yield
    finally:
        # EINVAL while a thread of liblxc's calls is just ending, which shares our root folder
        deadline = time.monotonic() + 60
        while libc.setns(before, CLONE_NEWNS) != 0:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.close(before)


@pytest.fixture(params=["hybrid", "pure v1"])
def with_freezer(request):
    """Both versions, and version 1 alone; only that one's freezer holds a kill back."""
    if request.param == "pure v1":
        request.getfixturevalue("pure_v1")


def test_one_that_froze_itself_is_ended(boxes, with_freezer):
    """Lost: GPUs, addresses and disks, for ever, to a container whose root put its init into a frozen cgroup."""
    box = boxes.make(unprivileged=True)
    top = mounts.alone_in(box.init_pid, box.name)[mounts.FREEZER]
    frozen = Path(top, "a", "frozen")
    frozen.mkdir(parents=True)
    (frozen / "cgroup.procs").write_text(str(box.init_pid))
    (frozen / "freezer.state").write_text("FROZEN")
    assert (frozen / "freezer.state").read_text().startswith("FR")
    box.stop(60)
    assert box.state == "STOPPED"


def test_one_that_freezes_itself_again_and_again_is_ended(boxes, with_freezer):
    """Lost: the same, to one that is there to freeze what was thawed."""
    box = boxes.make(unprivileged=True)
    tops = mounts.alone_in(box.init_pid, box.name)
    frozen = Path(tops[mounts.FREEZER], "frozen")
    frozen.mkdir()
    (frozen / "cgroup.procs").write_text(str(box.init_pid))
    with subprocess.Popen([sys.executable, "-c", FREEZING, str(frozen / "freezer.state")]) as guard:
        try:
            for top in tops.values():
                Path(top, "cgroup.procs").write_text(str(guard.pid))
            end = time.monotonic() + 60
            while not (frozen / "freezer.state").read_text().startswith("FR"):
                assert time.monotonic() < end
            box.stop(60)
        finally:
            guard.kill()
    assert box.state == "STOPPED"
    trees.remove_left(box.name, Deadline(60))  # the guard is no process of LXC's, and was still there at its end


def test_a_frozen_cgroup_of_version_2_holds_nothing(boxes, pure_v2):
    """The same there, where the kernel lets a kill through."""
    box = boxes.make(unprivileged=True)
    frozen = Path(mounts.alone_in(box.init_pid, box.name)[mounts.V2], "frozen")
    frozen.mkdir()
    (frozen / "cgroup.procs").write_text(str(box.init_pid))
    (frozen / "cgroup.freeze").write_text("1")
    box.stop(60)
    assert box.state == "STOPPED"


def test_one_that_waits_for_its_own_file_system_is_ended(boxes, tmp_path):
    """Lost: GPUs, addresses and disks, for ever, to a container with a process that no signal ends."""
    box = boxes.make(unprivileged=True)
    box.allow("c 10:229 rw")
    tops = mounts.alone_in(box.init_pid, box.name).values()
    with own_file_system.holding(tmp_path, (1, 5), "itself", box.init_pid, tops) as process:
        if process is None:
            pytest.skip("this kernel has no FUSE")
        box.stop(20)
    assert box.state == "STOPPED"


def test_a_file_system_of_somebody_else_goes_on(tmp_path, monkeypatch):
    """Lost: the files of an account, or of a container of an earlier release, with the user ids of one that ends."""
    ids = [IdMap("g", 0, 1, 1), IdMap("u", 0, own_file_system.ACCOUNT - 1, 3)]
    with own_file_system.holding(tmp_path, (1, 5), "open") as process:
        if process is None:
            pytest.skip("this kernel has no FUSE")
        own_file_systems.end_all(ids, {}, Deadline(20))
        monkeypatch.setattr(own_file_systems, "_has_others", lambda *_asked: False)
        account = own_file_system.ACCOUNT
        for others in ([], [IdMap("g", 0, account, 1)], [IdMap("u", 0, account + 1, 9)]):
            own_file_systems.end_all(others, {}, Deadline(20))
        time.sleep(0.3)
        assert process.poll() is None
        own_file_systems.end_all(ids, {}, Deadline(20))
        assert process.wait(20) == 0


def test_a_number_that_another_ones_file_system_has_by_now_is_not_its(tmp_path, monkeypatch):
    """Lost: what another container has not written yet: its file system got the number of one that ended just now."""
    for name, owner in (("41", own_file_system.ACCOUNT), ("other", own_file_system.ACCOUNT + 1)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "abort").touch()
        os.chown(tmp_path / name, owner, owner)

    def looked(real, *words, **more):
        seen = real(*words, **more)
        if seen.st_uid == own_file_system.ACCOUNT and (tmp_path / "other").exists():
            (tmp_path / "41").rename(tmp_path / "ended")
            (tmp_path / "other").rename(tmp_path / "41")
        return seen

    monkeypatch.setattr(own_file_systems, "CONNECTIONS", str(tmp_path))
    monkeypatch.setattr(own_file_systems.kernel, "see_alone", lambda kind, point: None)
    for name in ("stat", "fstat"):
        monkeypatch.setattr(os, name, partial(looked, getattr(os, name)))
    own_file_systems._abort([range(own_file_system.ACCOUNT, own_file_system.ACCOUNT + 1)])
    monkeypatch.undo()
    assert [(tmp_path / name / "abort").read_text() for name in ("ended", "41")] == ["1", ""]


ZOMBIE = """
import os, sys
os.setresuid(*[int(sys.argv[2])] * 3)
child = os.fork()
if child == 0:
    os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
print(child, flush=True)
sys.stdin.read()
"""


def test_what_has_ended_and_is_waited_for_is_nobody_else():
    """Lost: a container's end, with its GPUs, on cgroup v1, where the kernel has such a process outside: its
    parent waits for ever for a file system that it serves itself.
    """
    own = [range(own_file_system.ACCOUNT, own_file_system.ACCOUNT + 1)]
    with new_cgroup("v1") as folder:
        enters = f"echo $$ >{folder}/cgroup.procs; exec \"$@\""
        argv = ["sh", "-c", enters, "sh", sys.executable, "-c", ZOMBIE, folder, str(own_file_system.ACCOUNT)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            zombie = process.stdout.readline().decode().strip()
            assert "devices:/\n" in Path(f"/proc/{zombie}/cgroup").read_text()
            assert not own_file_systems._has_others(own, {"v1": folder})
            assert own_file_systems._has_others(own, {})
            process.communicate(timeout=60)


def test_what_ends_is_nobody_else_while_it_waits_for_its_own_file_system(tmp_path):
    """Lost: a container's end, with its GPUs, on a host with cgroup v1 alone, where the kernel has a process outside as
    soon as it ends.
    """
    own = [range(own_file_system.ACCOUNT, own_file_system.ACCOUNT + 1)]
    with new_cgroup("v1") as folder:
        with own_file_system.holding(tmp_path, (1, 5), "open", None, [folder]) as process:
            if process is None:
                pytest.skip("this kernel has no FUSE")
            assert own_file_systems._has_others(own, {})
            os.kill(process.server, signal.SIGUSR1)
            process.kill()
            deadline = Deadline(30)
            while "devices:/\n" not in Path(f"/proc/{process.pid}/cgroup").read_text():
                assert not deadline.passed
                deadline.nap()
            assert process.poll() is None
            assert not own_file_systems._has_others(own, {"v1": folder})
        deadline = Deadline(30)
        while members.pids_below([folder]) and not deadline.passed:
            deadline.nap()


MAKES = "import ctypes, sys; ctypes.CDLL(None).setfsuid(int(sys.argv[1])); print(flush=True); sys.stdin.read()"


def test_who_makes_files_for_a_container_is_nobody_else():
    """Lost: a container's end, with its GPUs, to a file system of its own that does not answer where we make a node."""
    account = own_file_system.ACCOUNT
    argv = [sys.executable, "-c", MAKES, str(account)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert str(account) in Path(f"/proc/{process.pid}/status").read_text()
        assert not own_file_systems._has_others([range(account, account + 1)], {})


def left_of(name):
    """Cgroups of this name, in all hierarchies."""
    points = {mount.point for mount, _versions in mounts.hierarchies()}
    return {f"{point}/{one}" for point in points for one in os.listdir(point) if one.startswith(f"lxc.payload.{name}")}


def deepen(top):
    here = os.open(".", os.O_PATH)
    try:
        os.chdir(top)
        for _level in range(DEEP):
            os.mkdir("deeper")
            os.chdir("deeper")
    finally:
        os.chdir(here)
        os.close(here)


@pytest.mark.dear
def test_deep_cgroups_go_with_their_container(boxes):
    """Lost: the host's memory, to whoever leaves thousands of cgroups behind in each round."""
    few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, most))  # as services have it: LXC holds a file a level
    try:
        box = boxes.make()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, most))
    tops = left_of(box.name)
    for controller in ("pids", "unified"):
        deepen(next(top for top in tops if f"/{controller}/" in top))
    new_container.remove(box, Deadline(60), f"{boxes.top}/disks")
    assert left_of(box.name) == set()


def test_cgroups_of_who_runs_stay(boxes):
    """Lost: the cgroups, and so the work, of a running container of that name in another folder, or of NAME-1."""
    others = Boxes()
    try:
        box = boxes.make()
        for running in (
            others.make(name=box.name),
            others.make(name=f"{box.name}-1"),
            others.make(name=f"{box.name}x"),
        ):
            inner = Path(mounts.alone_in(running.init_pid, running.name)[mounts.V1], "inner")
            inner.mkdir()
        before = left_of(box.name)
        trees.remove_left(box.name, Deadline(20))
        assert left_of(box.name) == before
        box.stop()
        trees.remove_left(box.name, Deadline(20))
        assert inner.is_dir()
        for running in others.made:
            assert Path(mounts.alone_in(running.init_pid, running.name)[mounts.V1], "inner").is_dir()
    finally:
        others.end()
