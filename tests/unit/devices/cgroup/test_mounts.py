# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which cgroups of which hierarchies are a process's, from files as the kernel writes them on other kinds of hosts."""

from __future__ import annotations

import inspect
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import mounts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.devices import (
    of_container,
    of_path,
    of_process,
)
from ansible_collections.hetero.compute.tests.unit.devices.cgroup.real_cgroups import new_cgroup


@pytest.fixture
def host(tmp_path):
    """A /proc and cgroup folders: lines of mountinfo with {} for the folder, of process 7's cgroup, and folders."""

    def build(mountinfo, cgroup, *folders):
        for folder in folders:
            (tmp_path / "cgroup" / folder).mkdir(parents=True)
        for process in ("self", "7"):
            (tmp_path / "proc" / process).mkdir(parents=True)
        at = str(tmp_path / "cgroup")
        (tmp_path / "proc/self/mountinfo").write_text("".join(line.format(at) + "\n" for line in mountinfo))
        (tmp_path / "proc/7/cgroup").write_text("\n".join(cgroup) + "\n")
        return str(tmp_path / "proc"), at

    return build


V1 = "36 31 0:33 / {}/devices rw,relatime - cgroup cgroup rw,devices"
JOINED = "36 31 0:33 / {}/devices rw,relatime shared:4 - cgroup cgroup rw,devices,freezer"
V2 = "41 31 0:38 / {}/unified rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"


@pytest.mark.parametrize("mount", [V1, JOINED])
def test_v1_alone(host, mount):
    """On an old host nothing would be found."""
    proc, at = host([mount], ["5:devices:/lxc/c1", "1:name=systemd:/x"], "devices/lxc/c1")
    found = of_process(7, proc)
    assert (found.version, found.v1.path, found.v2) == ("v1", f"{at}/devices/lxc/c1", None)


def test_v2_alone(host):
    """On a new one the controller that nobody mounted would be missed."""
    proc, at = host([V2], ["5:devices:/", "0::/lxc.payload.c1"], "unified/lxc.payload.c1")
    found = of_process(7, proc)
    assert (found.version, found.v2.path, found.v1) == ("v2", f"{at}/unified/lxc.payload.c1", None)


def test_only_a_part_of_a_hierarchy_is_mounted(host):
    """In a container of another kind the mount begins below the root, and the paths would not fit."""
    mount = "41 31 0:38 /outer {}/unified rw - cgroup2 cgroup2 rw"
    proc, at = host([mount], ["0::/outer/lxc.payload.c1"], "unified/lxc.payload.c1")
    assert of_process(7, proc).v2.path == f"{at}/unified/lxc.payload.c1"
    assert of_path(f"{at}/unified/lxc.payload.c1", proc).v2.path == f"{at}/unified/lxc.payload.c1"


def test_a_process_outside_of_our_namespace_is_named(host):
    """The root of what we see would be taken for its cgroup."""
    proc, _at = host([V2], ["0::/../other"], "unified/other")
    with pytest.raises(HeteroError, match="process 7: is in no device cgroup that is mounted here"):
        of_process(7, proc)


@pytest.mark.parametrize(
    ("root", "cgroup", "directory"),
    [
        ("/", "/", "/cgroup"),
        ("/", "/a/b", "/cgroup/a/b"),
        ("/", "/../a", None),
        ("/a", "/a", "/cgroup"),
        ("/a", "/a/b/c", "/cgroup/b/c"),
        ("/a", "/ab", None),
        ("/a", "/b", None),
        ("/a", "/", None),
        ("/a/b", "/a/b/c", "/cgroup/c"),
        ("/a/b", "/a/c", None),
        ("/..", "/../a", "/cgroup/a"),
        ("/..", "/a", None),
        ("/..", "/../../a", None),
    ],
)
def test_where_a_mount_shows_a_cgroup(root, cgroup, directory):
    """Lost: a rule for a container, to the cgroup that has its name in our own namespace or below another one."""
    assert mounts.Mount(root, "/cgroup").directory(cgroup) == directory


def test_the_cgroup_of_a_folder_is_named_as_processes_name_theirs(host):
    """Lost: who is in a cgroup, where what is mounted begins above our own namespace."""
    proc, at = host(["41 31 0:38 /.. {}/unified rw - cgroup2 cgroup2 rw"], ["0::/../c1"], "unified/c1")
    assert mounts.cgroup_at(f"{at}/unified/c1", proc) == ("v2", "/../c1")
    assert mounts.cgroup_at(f"{at}/unified", proc) == ("v2", "/..")
    assert of_process(7, proc).v2.path == f"{at}/unified/c1"


def test_the_hierarchies_are_called_as_results_call_them(host):
    """Lost: answers of modules that programs compare, and the freezer that keeps a container from its end."""
    proc, at = host([JOINED, V2], ["5:devices,freezer:/a", "2:cpu:/b", "0::/c"], "devices/a")
    assert mounts.cgroups(7, proc) == {"v1": "/a", "freezer": "/a", "v2": "/c"}
    of_devices, unified = mounts.Mount("/", f"{at}/devices"), mounts.Mount("/", f"{at}/unified")
    assert mounts.mounts(proc) == {"v1": [of_devices], "freezer": [of_devices], "v2": [unified]}
    assert mounts.directories(mounts.cgroups(7, proc), proc) == {
        "v1": f"{at}/devices/a",
        "freezer": f"{at}/devices/a",
        "v2": None,
    }


def test_of_several_mounts_the_topmost_and_the_innermost_count(host):
    """Lost: what another mount has covered would be changed, and nothing of what the container sees."""
    lower = "40 31 0:38 /lower {}/unified rw - cgroup2 cgroup2 rw"
    inner = "42 31 0:39 /inner {}/unified/c1 rw - cgroup2 cgroup2 rw"
    again = "43 31 0:40 / {}/again rw - cgroup2 cgroup2 rw"
    other = "30 23 0:28 / {} rw - tmpfs tmpfs rw"
    proc, at = host([other, lower, V2, inner, again], ["0::/a"], "unified/a", "unified/c1/b", "again/a")
    assert of_process(7, proc).v2.path == f"{at}/again/a"
    assert mounts.cgroup_at(f"{at}/unified/a", proc) == ("v2", "/a")
    assert mounts.cgroup_at(f"{at}/unified/c1/b", proc) == ("v2", "/inner/b")
    assert mounts.cgroup_at(at, proc) is None
    points = [mount.point[len(at) :] for mount, _versions in mounts.hierarchies(proc)]
    assert points == ["/again", "/unified/c1", "/unified", "/unified"]


@pytest.mark.parametrize("end", ["\r", "\x0b", "\x85", "\u2028"])
def test_a_cgroup_is_called_what_its_owner_likes(inside, stack, end):
    """Lost: all looks at who has a GPU of this host, once a container's root called a cgroup so."""
    path = f"{stack.enter_context(new_cgroup('v1'))}/a{end}0::"
    os.mkdir(path)
    stack.callback(os.rmdir, path)
    stack.callback(inside.end)
    inside.enter(path)
    assert mounts.directories(mounts.cgroups(inside.pid))["v1"] == path


@pytest.mark.parametrize("end", ["\r", "\x85", "\u2028"])
def test_an_init_does_not_choose_its_monitor(tmp_path, end):
    """Lost: the whole container's cgroup: its init would name another process, which has other folders open."""
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "status").write_text(f"Name:\ta{end}PPid:\t8\nPPid:\t9\n", newline="")
    assert mounts._parent(7, str(tmp_path)) == 9


def test_names_of_any_bytes(tmp_path, host):
    """Lost: each container of a host on which one folder or cgroup has a name that is no text, or has a colon."""
    proc, at = host([V2], ["0::/a:b:c"], "unified/a:b:c")
    assert of_process(7, proc).v2.path == f"{at}/unified/a:b:c"
    os.mkdir(os.fsencode(f"{at}/unified/") + b"\xff")
    (tmp_path / "proc/7/cgroup").write_bytes(b"0::/\xff\n")
    with open(f"{proc}/self/mountinfo", "ab") as file:
        file.write(b"44 31 0:41 / /mnt/\xff rw - ext4 /dev/sda1 rw\n")
    assert os.fsencode(of_process(7, proc).v2.path) == os.fsencode(f"{at}/unified/") + b"\xff"


@pytest.mark.parametrize(
    "function",
    [
        mounts.hierarchies,
        mounts.mounts,
        mounts.cgroups,
        mounts.container_cgroups,
        mounts.alone_in,
        mounts.directories,
        mounts.cgroup_at,
        of_process,
        of_container,
        of_path,
    ],
)
def test_it_is_this_hosts_processes_that_are_asked_for(function):
    """Lost: everything, to who does not say of which host."""
    assert inspect.signature(function).parameters["proc"].default == "/proc"


def test_blanks_in_a_mount_point(host):
    """mountinfo writes a blank as \\040: the folder would not be found."""
    proc, at = host(["41 31 0:38 / {}/my\\040own rw - cgroup2 cgroup2 rw"], ["0::/a"], "my own/a")
    assert of_process(7, proc).v2.path == f"{at}/my own/a"


@pytest.fixture
def monitored(host, tmp_path):
    """The same for a container's init 7 and its monitor 6, which is in a cgroup and has some folders open."""

    def build(cgroup, monitor, *held):
        proc, at = host([V2], [f"0::{cgroup}"], f"unified{cgroup}")
        (tmp_path / "proc/7/status").write_text("Name:\tinit\nPid:\t7\nPPid:\t6\n")
        fds = tmp_path / "proc/6/fd"
        fds.mkdir(parents=True)
        (tmp_path / "proc/6/cgroup").write_text(f"0::{monitor}\n")
        for number, folder in enumerate(["/dev", *(f"{at}/unified{one}" for one in held)]):
            (fds / str(number)).symlink_to(folder)
        if not held:
            (fds / "0").unlink()
            fds.rmdir()  # as for one that we may not look into
        return of_container(7, "c1", proc).v2.path[len(f"{at}/unified") :]

    return build


@pytest.mark.parametrize(
    ("cgroup", "top"),
    [
        ("/lxc.payload.c1", "lxc.payload.c1"),
        ("/lxc.payload.c1/init.scope", "lxc.payload.c1"),
        ("/lxc.payload.c1-2/init.scope", "lxc.payload.c1-2"),
        ("/lxc.payload.outer/lxc.payload.c1/init.scope", "lxc.payload.outer/lxc.payload.c1"),
        ("/lxc.payload.c10/lxc.payload.c1", "lxc.payload.c10/lxc.payload.c1"),
        ("/lxc/c1/init.scope", "lxc/c1"),
    ],
)
def test_a_containers_cgroup_is_the_whole_containers(host, cgroup, top):
    """A rule would count for the container's init only, and its services would keep the GPU."""
    proc, at = host([V2], [f"0::{cgroup}"], f"unified{cgroup}")
    assert of_container(7, "c1", proc).v2.path == f"{at}/unified/{top}"


@pytest.mark.parametrize("inner", ["lxc.payload.c1", "lxc.payload.c1-7", "a/lxc.payload.c1/b", "lxc/c1"])
@pytest.mark.parametrize("top", ["/lxc.payload.c1", "/lxc.payload.c1-2"])
def test_names_below_a_containers_cgroup_mean_nothing(host, top, inner):
    """Lost: a GPU that was taken back, to whoever moves init, and nothing else, into a cgroup of such a name."""
    proc, at = host([V2], [f"0::{top}/{inner}"], f"unified{top}/{inner}")
    assert of_container(7, "c1", proc).v2.path == f"{at}/unified{top}"


@pytest.mark.parametrize(
    ("cgroup", "monitor", "top"),
    [
        ("/lxc.payload.c1/lxc.payload.c1/a", "/lxc.payload.c1/lxc.monitor.c1", "/lxc.payload.c1/lxc.payload.c1"),
        ("/lxc.payload.c1-1/lxc.payload.c1/a", "/lxc.monitor.c1", "/lxc.payload.c1-1"),
        ("/lxc.payload.c1-1/lxc.monitor.c1/a", "/lxc.monitor.c1-4", "/lxc.payload.c1-1"),
    ],
)
def test_it_lies_beside_its_monitors(monitored, cgroup, monitor, top):
    """On a host that is a container of that name itself, a rule would count for the host."""
    assert monitored(cgroup, monitor) == top


@pytest.mark.parametrize(
    ("cgroup", "monitor", "held", "top"),
    [
        ("/own/name/lxc.payload.c1", "/their/monitors", ["/own/name", "/"], "/own/name"),
        ("/own/name/inner/a", "/own/monitor", ["/own/name/inner", "/own/name", "/own"], "/own/name"),
        ("/lxc.payload.c1/lxc.payload.c1", "/lxc.monitor.c1", ["/", "/lxc.payload.c1"], "/lxc.payload.c1"),
    ],
)
def test_what_the_monitor_has_open_is_the_containers(monitored, tmp_path, cgroup, monitor, held, top):
    """With lxc.cgroup.dir the tenant's own names and namespaces would be asked."""
    assert monitored(cgroup, monitor, *held) == top


def test_a_cgroup_that_nobody_knows_is_not_guessed(monitored):
    """Lost: what is in the cgroups above the one that is taken for the container's."""
    with pytest.raises(HeteroError, match="container c1: cannot tell which cgroup is the whole container's"):
        monitored("/own/name", "/lxc.monitor.c1")


@pytest.mark.parametrize("order", [False, True])
def test_what_else_a_monitor_has_open_says_nothing(monitored, tmp_path, monkeypatch, order):
    """Lost: the rules of a container, to a file, or to a folder of the host, that its monitor has open as well."""
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: sorted(listdir(folder), reverse=order))
    (tmp_path / "cgroup/unified").mkdir(parents=True)
    (tmp_path / "cgroup/unified/file").touch()
    held = ["/file", "/gone", "/own/name", "/gone", "/file"]
    assert monitored("/own/name/inner", "/own/monitor", *held) == "/own/name"


def test_a_container_without_a_cgroup_of_its_own(monitored):
    """Lost: what each process beside it may open, or an answer at all."""
    assert monitored("/", "/lxc.monitor.c1") == ""


def test_a_container_in_its_monitors_cgroup(monitored):
    """Lost: the same, where both were put into one cgroup."""
    assert monitored("/both", "/both") == "/both"


def test_a_freezer_of_another_name_is_left_out(host):
    """Lost: the devices of a container, for a hierarchy that has no say in them."""
    proc, _at = host([JOINED], ["5:devices:/lxc/c1/inner", "4:freezer:/own"], "devices/lxc/c1")
    assert mounts.container_cgroups(7, "c1", proc) == {"v1": "/lxc/c1"}


@pytest.fixture
def two(host, tmp_path):
    """Init 7 and monitor 6, which has those folders open, by lines that say where they are: /proc, and a folder."""

    def build(mountinfo, init, monitor, held, *folders):
        proc, at = host(mountinfo, init, *held, *folders)
        fds = tmp_path / "proc/6/fd"
        fds.mkdir(parents=True)
        (tmp_path / "proc/7/status").write_bytes(b"Name:\t\xff\nPid:\t7\nPPid:\t6\n")
        (tmp_path / "proc/6/cgroup").write_text("\n".join(monitor) + "\n")
        for number, folder in enumerate(held):
            (fds / str(number)).symlink_to(f"{at}/{folder}")
        return proc, at

    return build


def test_the_cgroups_that_a_container_is_alone_in(two):
    """Lost: every process beside it, which would be killed with it; or its end, where it froze itself."""
    init = ["5:devices:/both", "4:freezer:/lxc.payload.c1", "0::/lxc.payload.c1/inner"]
    monitor = ["5:devices:/both", "4:freezer:/lxc.monitor.c1", "0::/lxc.monitor.c1"]
    proc, at = two([V1, V2], init, monitor, [], "devices/both", "unified/lxc.payload.c1")
    assert mounts.alone_in(7, "c1", proc) == {"v2": f"{at}/unified/lxc.payload.c1"}


def test_in_a_root_nobody_is_alone(two):
    """Lost: every process of the host, where it cannot be seen that the monitor is in the root as well."""
    proc, _at = two([V1, V2], ["5:devices:/", "0::/"], ["0::/"], ["devices", "unified"])
    assert mounts.alone_in(7, "c1", proc) == {}


@pytest.mark.parametrize("status", [None, "Name:\tinit\nPPid:\t0\n"])
def test_of_a_process_without_a_monitor_nothing_is_known(host, tmp_path, status):
    """Lost: the end of a container that is ending by itself; or the processes of somebody who has its number now."""
    proc, _at = host([V2], ["0::/lxc.payload.c1"], "unified/lxc.payload.c1")
    if status:
        (tmp_path / "proc/7/status").write_text(status)
    assert mounts.alone_in(7, "c1", proc) == {}


def test_the_cgroups_of_a_container_whose_init_has_ended(two, tmp_path):
    """Lost: what is to be killed of a container that is just ending."""
    proc, _at = two([V1, V2], ["-"], ["0::/m", "5:devices:/m"], ["unified/c1", "devices/c1"])
    (tmp_path / "proc/7/cgroup").unlink()
    assert mounts.container_cgroups(7, "c1", proc) == {"v1": "/c1", "v2": "/c1"}
    with pytest.raises(HeteroError, match="process 7: has no cgroup to read"):
        mounts.cgroups(7, proc)
