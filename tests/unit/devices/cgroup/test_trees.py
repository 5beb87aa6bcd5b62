# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left of the cgroups of an ended container, in folders like a hierarchy; of real ones: lxc/test_ending.py."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import mounts, trees

#: The second one has gone since.
MOUNTS = """\
36 31 0:33 / {0} rw,relatime - cgroup cgroup rw,devices
37 31 0:34 / {0}-gone rw,relatime - cgroup cgroup rw,freezer
"""


class Left:
    """A hierarchy with what container c1 left: two cgroups with one more in each."""

    def __init__(self, folder):
        self.proc, self.point = folder / "proc", folder / "devices"
        (self.proc / "self").mkdir(parents=True)
        (self.proc / "self" / "mountinfo").write_text(MOUNTS.format(self.point))
        self.top, self.monitor = self.point / "lxc.payload.c1", self.point / "lxc.monitor.c1"
        for name in ("a/deep", "b/deep"):
            (self.top / name).mkdir(parents=True)
        self.monitor.mkdir()

    def remove(self, seconds=30):
        """It leaves no file open: there may be many cgroups."""
        before = os.listdir("/proc/self/fd")
        trees.remove_left("c1", Deadline(seconds), str(self.proc))
        assert len(os.listdir("/proc/self/fd")) == len(before)

    @property
    def is_whole(self):
        return all((self.top / name).is_dir() for name in ("a/deep", "b/deep"))


@pytest.fixture
def left(tmp_path):
    return Left(tmp_path)


def test_on_a_host_where_nothing_is_left_nothing_is_done():
    """Lost: the end of each container that left nothing."""
    trees.remove_left("hetero-no-such-container", Deadline(30))


def test_what_was_removed_meanwhile_is_no_end(left, monkeypatch):
    """Lost: the same memory, to a container whose cgroups LXC is just removing."""
    folders = trees._folders
    monkeypatch.setattr(trees, "_folders", lambda descriptor: [*folders(descriptor), "gone"])
    left.remove()
    assert not left.top.exists()


def test_without_time_to_look_nothing_is_removed(left):
    """Lost: cgroups of which nobody could see whether somebody was in them."""
    for name in ("a", "b"):
        (left.top / name / "deep").rmdir()
        (left.top / name).rmdir()
    left.remove(seconds=0)
    assert left.top.is_dir()


def enter(cgroup):
    (cgroup / "tasks").write_text("7\n")


def test_all_of_it_goes_and_nothing_beside_it(left):
    """Lost: the host's memory, to cgroups that nobody is in; or a cgroup of another container."""
    other = left.point / "lxc.payload.c10"
    other.mkdir()
    left.remove()
    assert not left.top.exists()
    assert other.is_dir()
    assert left.monitor.is_dir()


@pytest.mark.parametrize("where", [".", "a", "b/deep"])
def test_with_a_process_anywhere_in_it_all_of_it_stays(left, where):
    """Lost: the cgroups of a container that runs, and with them its limits."""
    enter(left.top / where)
    left.remove()
    assert left.is_whole


@pytest.mark.parametrize(("populated", "stays"), [(0, False), (1, True)])
def test_version_2_says_itself_whether_somebody_is_in_it(left, populated, stays):
    """Lost: the same, where there are no lists of tasks."""
    (left.top / "cgroup.events").write_text(f"populated {populated}\nfrozen 0\n")
    left.remove()
    assert left.is_whole is stays


def test_a_monitor_that_is_ending_is_waited_for(left, monkeypatch):
    """Lost: the host's memory, to each container whose monitor took a moment longer."""
    enter(left.monitor)
    monkeypatch.setattr(Deadline, "nap", lambda _deadline: (left.monitor / "tasks").unlink())
    left.remove()
    assert not left.top.exists()


def test_a_monitor_that_stays_keeps_all_of_it(left, monkeypatch):
    """Lost: the cgroups of a container of that name that has only begun."""
    enter(left.monitor)
    monkeypatch.setattr(trees, "MONITOR_TIME", 0.05)
    left.remove()
    assert left.is_whole


def test_who_came_while_the_monitor_was_waited_for_stays(left, monkeypatch):
    """Lost: the same; its first process came after the first look."""
    enter(left.monitor)

    def begins(_deadline):
        (left.monitor / "tasks").unlink()
        enter(left.top / "a")

    monkeypatch.setattr(Deadline, "nap", begins)
    left.remove()
    assert left.is_whole


def test_what_a_link_leads_to_stays(left):
    """Lost: folders of the host, to whoever can put a link where a cgroup was."""
    host = left.point.parent / "host"
    (host / "data").mkdir(parents=True)
    for name in ("a", "b"):
        (left.top / name / "deep").rmdir()
        (left.top / name).rmdir()
    left.top.rmdir()
    left.top.symlink_to(host)
    left.remove()
    assert (host / "data").is_dir()


@pytest.fixture
def frozen(tmp_path):
    """{version: directory} of a container of which all is frozen, and the files that say so."""
    files = {mounts.V2: "cgroup.freeze", mounts.FREEZER: "freezer.state"}
    for version, file in files.items():
        for name in (".", "inner", "inner/deep"):
            (tmp_path / version / name).mkdir(parents=True, exist_ok=True)
            (tmp_path / version / name / file).write_text("-")
    tops = {version: str(tmp_path / version) for version in files}
    return tops, {version: sorted((tmp_path / version).rglob(file)) for version, file in files.items()}


def test_what_is_frozen_runs_again_to_its_end(frozen):
    """Lost: GPUs, addresses and disks, for ever, to a container that froze itself: it is not seen to end."""
    tops, files = frozen
    trees.end_all(tops, Deadline(30))
    assert [file.read_text() for file in files[mounts.V2]] == ["0"] * 3
    assert [file.read_text() for file in files[mounts.FREEZER]] == ["THAWED"] * 3


def test_the_kernel_kills_where_it_can(frozen, tmp_path, monkeypatch):
    """Lost: the end of a container that makes processes faster than they are killed one by one."""
    tops, _files = frozen
    kill = tmp_path / mounts.V2 / "cgroup.kill"
    kill.write_text("-")
    monkeypatch.setattr(trees.members, "pids_below", lambda _directories: pytest.fail("each was looked for"))
    trees.end_all(tops, Deadline(30))
    assert kill.read_text() == "1"


@pytest.mark.parametrize("kill", [None, "/dev/full"], ids=["no such file", "it takes nothing"])
def test_else_each_process_is_killed(tmp_path, monkeypatch, kill):
    """Lost: the end of any container on a kernel that has no cgroup.kill; one that has ended keeps no other alive."""
    asked = []
    (tmp_path / mounts.V2).mkdir()
    if kill:
        (tmp_path / mounts.V2 / "cgroup.kill").symlink_to(kill)
    with subprocess.Popen(["sleep", "600"]) as alive, subprocess.Popen(["true"]) as ended:
        try:
            ended.wait(60)
            monkeypatch.setattr(trees.members, "pids_below", lambda tops: asked.extend(tops) or [ended.pid, alive.pid])
            tops = {version: str(tmp_path / version) for version in (mounts.V1, mounts.V2, mounts.FREEZER)}
            trees.end_all(tops, Deadline(30))
            assert alive.wait(300) == -signal.SIGKILL
        finally:
            alive.kill()
    assert asked == [tops[mounts.V1], tops[mounts.V2]]


def test_a_monitor_is_waited_for_five_seconds(left, monkeypatch):
    """Lost: the host's memory, to each container whose monitor takes a second; or a minute of each verb's time."""
    seconds, within = [], Deadline.within
    monkeypatch.setattr(Deadline, "within", lambda deadline, most: seconds.append(most) or within(deadline, most))
    left.remove()
    assert seconds == [5.0]
