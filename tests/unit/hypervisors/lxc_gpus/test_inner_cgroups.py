# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container whose root makes cgroups of its own below the container's, with names and numbers as it likes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.devices import of_container
from ansible_collections.hetero.compute.tests.unit.devices.cgroup.real_cgroups import Inside
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES, MINORS

FIRST = ADDRESSES[0]
#: A container's root may make more cgroups than anybody looks at.
MANY = 10050


@pytest.fixture(params=["hybrid", "pure v2"])
def layout(request):
    """Device cgroups of both versions, and of version 2 alone."""
    if request.param == "pure v2":
        request.getfixturevalue("pure_v2")
    return request.param


@pytest.fixture
def given(host, layout):
    """A container that has the first GPU, and the folders of its cgroups."""
    box = host.boxes.make()
    host.attach(box, gpus=[FIRST])
    cgroup = of_container(box.init_pid, box.name)
    return box, [side.path for side in (cgroup.v1, cgroup.v2) if side]


@pytest.fixture
def inside(tmp_path):
    process = Inside(tmp_path)
    yield process
    if process.process.poll() is None:
        process.end()


def enter(pid, *folders):
    for folder in folders:
        os.makedirs(folder, exist_ok=True)
        Path(folder, "cgroup.procs").write_text(str(pid))


@pytest.mark.parametrize("inner", ["lxc.payload.{}", "lxc.payload.{}-7/a"])
def test_a_gpu_is_taken_back_wherever_init_is(host, given, inside, inner):
    """Lost: a GPU of the next tenant, to the last one's processes, when init alone went into a cgroup of its own."""
    box, tops = given
    enter(box.init_pid, *(os.path.join(top, inner.format(box.name)) for top in tops))
    enter(inside.pid, *tops)
    rule = f"c 195:{MINORS[FIRST]} rw"
    assert inside.may(rule)
    taken = host.detach(box)
    assert [node["opens"] for node in taken["nodes"]] == ["EPERM"] * len(taken["nodes"])
    assert not inside.may(rule)
    assert inside.may("c 1:3 rw")
    assert host.table() == {}
    inside.end()


def test_what_is_open_is_seen_wherever_init_is(host, given):
    """Lost: a GPU to two at once: the last tenant's process outside of init's cgroup still has it open."""
    box, tops = given
    with subprocess.Popen(["sleep", "300"]) as process:
        try:
            enter(process.pid, *tops)
            enter(box.init_pid, *(os.path.join(top, f"lxc.payload.{box.name}") for top in tops))
            host.uses(process.pid, FIRST)
            with pytest.raises(Refused, match=f"has GPU nodes open: pid {process.pid} sleep"):
                host.detach(box)
        finally:
            process.kill()


@pytest.mark.parametrize("layout", ["hybrid"], indirect=True)
def test_the_open_answer_of_either_cgroup_counts(host, given):
    """Proven closed would be what init's own cgroup denies, by its own doing."""
    box, tops = given
    inner = os.path.join(tops[0], "own")
    enter(box.init_pid, inner)
    Path(inner, "devices.deny").write_text(f"c 195:{MINORS[FIRST]} rw")
    assert host.can_open(box) == [FIRST]


def test_a_tree_that_nobody_looks_through(host, given):
    """Lost: a GPU to whoever makes so many cgroups that taking it back gives up, or so deep ones."""
    box, (top, *_more) = given
    for number in range(MANY):
        os.mkdir(f"{top}/{number}")
    here = os.open(".", os.O_PATH)
    try:
        os.chdir(top)
        for _level in range(1200):
            os.mkdir("deep")
            os.chdir("deep")
        Path("cgroup.procs").write_text(str(box.init_pid))
    finally:
        os.chdir(here)
        os.close(here)
    assert host.can_open(box) == [FIRST]
    assert host.detach(box)["changed"]
    assert host.can_open(box) == []
    assert host.table() == {}
