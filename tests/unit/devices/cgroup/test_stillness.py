# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container that stands still for a moment, in real cgroups. If these fail, a GPU is given on while a tenant has it,
or a tenant's container never goes on.
"""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import mounts, stillness
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.members import pids_below
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.stillness import still
from ansible_collections.hetero.compute.tests.unit.devices.cgroup.chain import program
from ansible_collections.hetero.compute.tests.unit.devices.cgroup.real_cgroups import new_cgroup

COUNTING = "n=0; while :; do n=$((n+1)); echo $n >{}; done"
#: Longer than anything here takes on a busy machine (seconds).
LONG = 30
HOLDING = """
import os, signal, sys
sys.path.insert(0, {path!r})
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.stillness import still
with still({folders!r}) as stands:
    print(stands([]), flush=True)
    signal.pause()
"""


@pytest.fixture(params=["v2", "freezer"])
def box(request, stack, tmp_path):
    """([folders of a container's device cgroups], a process in it, the folder where it is frozen, where it counts)."""
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
        assert stands([process.pid])
        assert not stands([process.pid, os.getpid()])
        before = count.stat().st_mtime_ns
        time.sleep(0.2)
        assert count.stat().st_mtime_ns == before
        assert state(other) == (True, [stillness.MARK])
    assert state(other) == (False, [])
    assert goes_on(count)


def test_another_look_that_ends_is_noticed(box):
    """Lost: a GPU, to what went on while it was looked at, for a dry run that looked as well."""
    folders, process, other, _count = box
    with still(folders) as stands:
        with still(folders):
            assert stands([process.pid])
        assert not stands([process.pid])
    assert state(other) == (False, [])


def test_it_goes_on_after_an_error_in_the_block(box):
    """Lost: the tenant's container, to a fault of ours."""
    folders, _process, other, _count = box
    with pytest.raises(FileNotFoundError), still(folders):
        raise FileNotFoundError
    assert state(other) == (False, [])


def test_it_goes_on_where_we_are_killed(box):
    """Lost: the tenant's container, to the end of an operator's ssh, or to who kills a play."""
    folders, _process, other, count = box
    text = HOLDING.format(path=str(Path(__file__).parents[4] / "build"), folders=folders)
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, start_new_session=True) as holding:
        assert holding.stdout.readline() == b"True\n"
        assert state(other)[0]
        os.killpg(holding.pid, signal.SIGKILL)
        await_that(lambda: state(other) == (False, []))
    assert goes_on(count)


def test_what_somebody_else_froze_stays_so(box):
    """Lost: why an operator froze it."""
    folders, process, other, _count = box
    file = other / "cgroup.freeze"
    file.write_text("1") if file.exists() else (other / "freezer.state").write_text("FROZEN")
    with still(folders) as stands:
        assert stands([process.pid])
    assert state(other) == (True, [])
    # what we left frozen, once we and our guardian were killed, goes on after the next look
    os.setxattr(other, stillness.MARK, b"1")
    with still(folders) as stands:
        assert stands([process.pid])
    assert state(other) == (False, [])


def test_nobody_freezes_himself(stack):
    """Lost: this process, for ever, where a container has no cgroup of its own."""
    mine = mounts.directories(mounts.cgroups("self"))
    with still([mine["v1"], mine["v2"]]) as stands:
        assert not stands([])
    freezer = stillness.Freezer("/x", "v2", mounts.cgroups("self")["v2"], "f", "f", b"1", b"0")
    assert freezer.holds("self")
    with still([stack.enter_context(new_cgroup("v1"))]) as stands:
        assert not stands([]), "it is in no freezer"


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
            assert stands(pids)
            assert set(pids) > {process.pid}, "and not those alone that are ending"
    with still(folders):
        for pid in set(pids_below(folders)) - {process.pid}:
            os.kill(pid, signal.SIGKILL)
    await_that(lambda: pids_below(folders) == [process.pid])
