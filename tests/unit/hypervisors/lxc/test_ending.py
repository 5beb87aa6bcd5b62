# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a container whose root does not want it to end, or leaves much behind: with cgroups of its own.

Tests hypervisors/lxc/new_container.py.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import mounts, trees
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import new_container
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
