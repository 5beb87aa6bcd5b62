# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container runs whose folder was moved aside or removed, or whose configuration was. If this fails, each request for
a GPU on that host and each look of reconcile does, also for others; or another gets the GPU that it can open.
"""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import liblxc
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES


def test_it_is_asked_by_itself_where_the_kernels_list_lacks_it(host, monkeypatch):
    """Lost: its GPU, to the next request, where so many sockets come and go that three lists of them lacked its own."""
    box, other = host.boxes.make(name="box"), host.boxes.make(name="other", start=False)
    pid = box.init_pid
    host.attach(box, gpus=ADDRESSES[:1])
    os.unlink(box.config_file)
    monkeypatch.setattr(liblxc, "running", lambda lxcpath: [])
    try:
        assert [one["kind"] for one in host.reconcile(repair=True)["findings"]] == ["not seen"]
        with pytest.raises(NoneFree, match="allocated to box"):
            host.attach(other, gpus=ADDRESSES[:1])
        assert host.table() == {ADDRESSES[0]: ["box"]}
    finally:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("what", ["moved aside", "removed", "its configuration"])
def test_it_is_in_no_others_way(host, what):
    box, other = host.boxes.make(name="box"), host.boxes.make(name="other", start=False)
    pid = box.init_pid
    host.attach(box, gpus=ADDRESSES[:1])
    if what == "moved aside":
        os.rename(box.folder, f"{box.folder}.aside")
    elif what == "removed":
        shutil.rmtree(box.folder)
    else:
        os.unlink(box.config_file)
    try:
        host.attach(other, gpus=ADDRESSES[1:2])
        found = host.reconcile(repair=True)["findings"]
        with pytest.raises(NoneFree, match="allocated to box"):
            host.attach(other, gpus=ADDRESSES[:1])
    finally:
        os.kill(pid, signal.SIGKILL)
    assert host.table() == {ADDRESSES[0]: ["box"], ADDRESSES[1]: ["other"]}
    assert [(one["kind"], one["container"]) for one in found] == [("not seen", "box")]
    assert f"it runs, by its init, process {pid}, and {box.config_file} is not there" in found[0]["found"]
    deadline = Deadline(20)
    while box.name in liblxc.running(host.boxes.lxcpath) or os.path.exists(f"/proc/{pid}"):
        assert not deadline.passed
        deadline.nap()
    if what == "moved aside":
        with pytest.raises(NoneFree, match="allocated to box"):
            host.attach(other, gpus=ADDRESSES[:1])  # a container that was renamed keeps its GPU
        shutil.rmtree(f"{box.folder}.aside")
    assert host.attach(other, gpus=ADDRESSES[:1])["changed"]
