# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that was tried before its disk for containers was mounted (by a unit or ZFS, not fstab): the mark of that time
is in the bare mount point, and stays when its last container is ended. Lost: the GPU of a container on that disk at the
first start of the host without it: that mark is taken for the disk's, and another gets the GPU.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES

FIRST, SECOND = ADDRESSES[:2]
MARK = "hetero.containers"


class Disk:
    """A disk for containers, in whose bare mount point the mark is."""

    def __init__(self, host):
        self.host, self.point = host, f"{host.boxes.top}/lxc"

    def mount(self):
        """Mount it for the first time."""
        os.rename(self.point, f"{self.point}-bare")
        os.mkdir(self.point)

    def unmount(self):
        os.rename(self.point, f"{self.point}-disk")
        os.rename(f"{self.point}-bare", self.point)

    def mount_again(self):
        os.rename(self.point, f"{self.point}-bare")
        os.rename(f"{self.point}-disk", self.point)

    def by_earlier_release(self):
        """Have the marks have no id, here and by the database."""
        (self.host.folder / "host.folders").write_text(f"{self.point}\n")
        with open(f"{self.point}/{MARK}", "w", encoding="utf-8") as file:
            file.write("Containers of hetero.compute were made in this folder.\n")


@pytest.fixture(params=["this", "an earlier"])
def disk(request, host):
    """The disk, with a container that has a GPU; the mark in its mount point is of a release."""
    disk = Disk(host)
    tried = host.boxes.make(name="tried", start=False)
    host.attach(tried, gpus=[SECOND])
    host.detach(tried)
    shutil.rmtree(tried.folder)
    host.boxes.made.remove(tried)
    assert os.listdir(disk.point) == [MARK]
    if request.param == "an earlier":
        disk.by_earlier_release()
    disk.mount()
    host.attach(host.boxes.make(name="a", start=False), gpus=[FIRST])
    assert sorted(os.listdir(disk.point)) == ["a", MARK]
    return disk


def has_nobody_else(host, disk, name="b"):
    disk.unmount()
    other = host.boxes.make(name=name, start=False)
    try:
        with pytest.raises(Refused, match="its file system may not be mounted") as refused:
            host.attach(other, gpus=[FIRST])
        assert host.table()[FIRST] == ["a"]
    finally:
        host.boxes.made.remove(other)
        shutil.rmtree(other.folder)
        disk.mount_again()
    return str(refused.value)


def test_a_gpu_stays_whose_it_is(host, disk):
    has_nobody_else(host, disk)
    assert host.reconcile(repair=True)["findings"] == []
    assert host.attach(host.boxes.make(name="c", start=False), gpus=[SECOND])["changed"]
    has_nobody_else(host, disk)


def test_one_of_an_earlier_release_has_its_own_mark_from_when_all_are_seen(host, disk):
    """Lost: GPUs on a host that was upgraded, for the want of an id; or the same as before."""
    disk.by_earlier_release()
    host.reconcile(repair=True)
    disk.unmount()
    disk.mount_again()
    has_nobody_else(host, disk)
    assert host.attach(host.boxes.make(name="c", start=False), gpus=[SECOND])["changed"]


def test_the_way_out_has_no_mark_of_the_disk_in_the_bare_point(host, disk):
    """Lost: what a person could not know then: it was there, and is mounted again."""
    said = has_nobody_else(host, disk)
    disk.unmount()
    subprocess.run(re.search(r"\((mkdir -p .*?)\)", said)[1], shell=True, check=True)
    host.reconcile(repair=True)
    assert host.table() == {}
    disk.mount_again()
    (box,) = [one for one in host.boxes.made if one.name == "a"]
    assert host.attach(box, gpus=[FIRST])["changed"]
    assert host.reconcile(repair=True)["findings"] == []
    has_nobody_else(host, disk)


def test_a_copied_mark_of_another_is_none(host, disk):
    """Lost: a host whose mark somebody removed, or took from elsewhere."""
    with open(f"{disk.point}/{MARK}", "w", encoding="utf-8") as file:
        file.write(f"id {'8' * 32}\n")
    assert host.reconcile(repair=True)["findings"] == []
    assert host.attach(host.boxes.make(name="c", start=False), gpus=[SECOND])["changed"]
