# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container's folder is moved aside while it runs (mv box box.old), and another container of its name is made in its
place (lxc-create -n box), which does not run: the first one's monitor still answers by that path. If these fail, a GPU
that is given to the new one is opened to the processes of the old one; or that one's own is closed under them, and is
free for anybody.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.devices import of_container
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES, MINORS

OWN, FREE, THIRD = ADDRESSES[:3]


@pytest.fixture
def old(host):
    """A container with a GPU, which runs."""
    box = host.boxes.make(name="box")
    host.attach(box, gpus=[OWN])
    yield box
    subprocess.run(["lxc-stop", "-k", "-P", box.lxcpath, "-n", "box"], check=False)


def made_anew(host, old):
    """Another container in place of the one that runs."""
    os.rename(old.folder, f"{old.folder}.old")
    return host.boxes.make(name="box", start=False)


def opened(pid):
    view = of_container(pid, "box").look()
    return [address for address in ADDRESSES if view.may("c", 195, MINORS[address], "rw")]


def test_nothing_is_done_to_the_old_one_in_the_name_of_the_new_one(host, old):
    pid = old.init_pid
    new = made_anew(host, old)
    for work in (lambda: host.attach(new, gpus=[FREE]), lambda: host.detach(new)):
        with pytest.raises(Refused, match=f"process {pid} runs by its path, and has another root") as refused:
            work()
    found = host.reconcile(repair=True)["findings"]
    assert [(one["kind"], one["container"]) for one in found] == [("not looked at", "box")]
    assert (host.table(), opened(pid)) == ({OWN: ["box"]}, [OWN])
    subprocess.run(shlex.split(re.search(r"\((lxc-stop [^)]*)\)", str(refused.value))[1]), check=True)
    assert host.attach(new, gpus=[FREE])["changed"]
    assert host.table() == {FREE: ["box"]}


def test_the_gpu_of_the_old_one_goes_to_no_other(host, old):
    pid = old.init_pid
    new, other = made_anew(host, old), host.boxes.make(name="other", start=False)
    host.attach(other, gpus=[THIRD])
    with pytest.raises(NoneFree, match="allocated to box"):
        host.attach(other, gpus=[OWN])
    assert (host.table(), opened(pid)) == ({OWN: ["box"], THIRD: ["other"]}, [OWN])
    os.rename(new.folder, f"{new.folder}.new")
    os.rename(f"{old.folder}.old", old.folder)
    assert not host.attach(old, gpus=[OWN])["changed"]
