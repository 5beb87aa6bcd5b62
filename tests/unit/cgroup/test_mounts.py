# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which cgroups of which hierarchies are a process's, from files as the kernel writes them on other kinds of hosts."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.cgroup.devices import of_container, of_path, of_process
from ansible_collections.hetero.compute.plugins.module_utils.errors import HeteroError


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
    proc, _at = host([V2], ["0::/../other"], "unified", "other")
    with pytest.raises(HeteroError, match="process 7: is in no device cgroup that is mounted here"):
        of_process(7, proc)


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
