# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is in a cgroup, from /proc as the kernel writes it."""

from __future__ import annotations

import errno

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import mounts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.members import pids_below

MOUNT = "36 31 0:33 / {} rw,relatime - cgroup cgroup rw,devices\n"
C1 = "/lxc.payload.c1"


@pytest.fixture
def place(tmp_path):
    """A /proc with cgroup c1, and what adds processes: `add(pid, cgroup, state, {thread: cgroup})`."""
    proc, point = tmp_path / "proc", tmp_path / "devices"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "mountinfo").write_text(MOUNT.format(point))
    (point / C1[1:]).mkdir(parents=True)

    def add(pid, cgroup, state, threads):
        for folder, where in ((str(pid), cgroup), *((f"{pid}/task/{number}", at) for number, at in threads.items())):
            (proc / folder).mkdir(parents=True, exist_ok=True)
            (proc / folder / "cgroup").write_text(f"5:devices:{where}\n")
        (proc / str(pid) / "status").write_bytes(f"Name:\ta) S (\xff\nState:\t{state} (a)\n".encode("latin-1"))

    def found():
        return pids_below([str(point / C1[1:])], str(proc))

    return add, found


@pytest.mark.parametrize(
    ("cgroup", "state", "threads", "is_in"),
    [
        (C1, "S", {}, True),
        (f"{C1}/inner", "S", {}, True),
        ("/lxc.payload.c10", "S", {}, False),
        ("/", "S", {7: "/", 8: C1}, False),
        ("/", "Z", {7: "/", 8: f"{C1}/inner"}, True),
        ("/", "Z", {7: "/", 8: "/lxc.payload.c2"}, False),
        ("/", "Z", {}, False),
    ],
    ids=["in it", "below it", "a longer name", "a thread moved", "its first thread ended", "of another", "all ended"],
)
def test_who_is_in_it(place, cgroup, state, threads, is_in):
    """Lost: a container's process whose first thread has ended is not killed, and goes on with its GPU."""
    add, found = place
    add(7, cgroup, state, threads)
    assert found() == ([7] if is_in else [])


def test_a_root_where_everybody_is_counts_only_alone(place, tmp_path):
    """Lost: every process of the host, killed with a container of which one hierarchy is not known."""
    add, _found = place
    add(7, C1, "S", {})
    add(8, "/another", "S", {})
    root, own = str(tmp_path / "devices"), str(tmp_path / "devices" / C1[1:])
    assert pids_below([root, own], str(tmp_path / "proc")) == [7]
    assert pids_below([root], str(tmp_path / "proc")) == [7, 8]


@pytest.mark.parametrize(("number", "is_in"), [(errno.ENAMETOOLONG, True), (errno.ESRCH, False)])
def test_one_that_is_too_deep_to_say_counts(place, monkeypatch, number, is_in):
    """Lost: the end of a container that hides its processes in cgroups deeper than the kernel can name."""
    add, found = place
    add(7, "/another", "S", {})

    def cgroups(pid, proc):
        raise HeteroError("has no cgroup to read", f"process {pid}", proc) from OSError(number, "no")

    monkeypatch.setattr(mounts, "cgroups", cgroups)
    assert found() == ([7] if is_in else [])


def test_one_that_ends_meanwhile_is_in_nothing(place, tmp_path):
    """Lost: a container that cannot be stopped, for a process that was gone before it was asked."""
    add, found = place
    add(7, "/", "Z", {7: "/", 9: C1})
    add(8, C1, "S", {})
    (tmp_path / "proc/7/status").unlink()
    assert found() == [8]
