# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of containers was moved while one runs, or its own was removed: LXC knows it by the path of its start, and
by no other. If these fail, it is given other GPUs in place of its own, or these are said to be taken back, or go to
another container, while its processes can open them.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import liblxc
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES

OWN, FREE = ADDRESSES[:2]


@pytest.fixture
def box(host):
    """A container with a GPU, which runs."""
    box = host.boxes.make(name="box")
    host.attach(box, gpus=[OWN])
    yield box
    subprocess.run(["lxc-stop", "-k", "-P", box.lxcpath, "-n", "box"], check=False)


def end_as_said(error, box):
    """Type the first command of a message."""
    said = re.search(r"\(((?:lxc-stop|kill) [^;)]*)", str(error.value))
    subprocess.run(shlex.split(said[1]), check=True)
    deadline = Deadline(20)
    while box.name in liblxc.running(box.lxcpath):
        assert not deadline.passed
        deadline.nap()


def move(host, box):
    """Move the folder of containers; the container in its new place."""
    host.boxes.lxcpath = f"{host.boxes.top}/srv"
    os.rename(box.lxcpath, host.boxes.lxcpath)
    return Container("box", host.boxes.lxcpath)


def test_one_that_was_moved_keeps_its_gpus_until_it_is_ended(host, box):
    there = move(host, box)
    file = Path(there.folder, "hetero.d", "devices.conf")
    before = file.read_text()
    for work in (lambda: host.attach(there, count=1), lambda: host.detach(there)):
        with pytest.raises(Refused, match=f"runs, and was started in {box.folder}: LXC knows it by that") as refused:
            work()
    assert file.read_text() == before
    other = host.boxes.make(name="other", start=False)
    host.attach(other, gpus=[FREE])
    with pytest.raises(NoneFree, match="allocated to box"):
        host.attach(other, gpus=[OWN])
    host.reconcile(repair=True)
    assert host.table() == {OWN: ["box"], FREE: ["other"]}
    end_as_said(refused, box)
    host.detach(there)


def test_a_copy_is_no_moved_one(host, box):
    """Lost: each GPU of a container that somebody made from a copy."""
    copy = Container("box", f"{host.boxes.top}/copy")
    subprocess.run(["cp", "-a", box.lxcpath, copy.lxcpath], check=True)
    move(host, box)
    assert host.attach(copy, gpus=[FREE])["changed"]


def test_the_gpu_of_one_without_a_folder_is_not_said_to_be_taken_back(host, box):
    host.boxes.make(name="other", start=False)
    shutil.rmtree(box.folder)
    with pytest.raises(Refused, match="it runs, by its init") as refused:
        host.detach(box)
    assert host.table() == {OWN: ["box"]}
    end_as_said(refused, box)
    host.detach(box)
    assert host.table() == {}
