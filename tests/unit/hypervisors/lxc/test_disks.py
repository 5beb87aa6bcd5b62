# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks of containers, on real loop devices. If these fail, one tenant fills what all others write to, reads what was
another's, or leaves behind what is never removed.
"""

from __future__ import annotations

import errno
import os
import random
import signal
import stat
import subprocess
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.tests.unit.images.devices import break_file_system


class Box:
    """The folder of a container that has nothing but a disk."""

    def __init__(self, folder):
        self.lxcpath, self.base = str(folder / "lxc"), str(folder / "nodes")
        self.container = Container("ml-8", self.lxcpath)
        os.makedirs(self.container.folder)
        self.file, self.root = disks.file_of(self.container), disks.root_of(self.container)
        self.node = disks.node_of(self.container, self.base)

    def make(self):
        disks.make(self.container, 1, self.base)

    def mount(self):
        disks.mount(self.container, self.base)

    def unmount(self):
        disks.unmount(self.container, self.base)

    @property
    def mounted(self):
        return disks.is_mounted(self.container, self.base)


@pytest.fixture
def box(tmp_path):
    one = Box(tmp_path)
    yield one
    one.unmount()


def test_only_root_reads_it_from_its_first_byte_and_nothing_in_it_runs_here(box):
    """Lost: a local account reads a tenant's disk, or becomes root by a set-uid file that a tenant made."""
    before = os.umask(0)
    try:
        box.make()
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(box.file).st_mode) == 0o600
    node = os.stat(box.node)
    assert (stat.S_ISBLK(node.st_mode), stat.S_IMODE(node.st_mode)) == (True, 0o600)
    assert stat.S_IMODE(os.stat(box.base).st_mode) == 0o700
    flags = os.statvfs(box.root).f_flag
    for flag in (os.ST_NOSUID, os.ST_NODEV, os.ST_NOEXEC):
        assert flags & flag
    assert os.listdir(box.root) == []


@pytest.mark.dear
def test_its_size_is_what_it_holds_and_the_disk_below_has_only_what_is_used(box):
    """Lost: a tenant that fills its root takes the space of all others, or keeps it when it has deleted its files."""
    box.make()

    def taken():
        os.sync()
        return os.stat(box.file).st_blocks * 512

    with open(f"{box.root}/fill", "wb", buffering=0) as file:
        assert _fill(file) == errno.ENOSPC
    size = os.stat(f"{box.root}/fill").st_size
    assert 800 << 20 < size < 1 << 30
    assert taken() > size * 0.9
    os.unlink(f"{box.root}/fill")
    deadline = Deadline(20.0)  # the kernel gives it back in the background
    while taken() > size * 0.1:
        assert not deadline.passed, taken()
        deadline.nap()


def _fill(file):
    """The number of the error that ends writing to it."""
    try:
        while True:
            file.write(b"x" * (1 << 20))
    except OSError as error:
        return error.errno


def test_asked_for_again_it_is_as_it_was(box):
    """Lost: two loop devices write to one file, which destroys what is in it."""
    box.make()
    assert box.mounted
    number = os.stat(box.root).st_dev
    os.unlink(box.node)
    assert not box.mounted
    box.mount()
    assert (box.mounted, os.stat(box.root).st_dev) == (True, number)
    os.unlink(box.node)
    os.mknod(box.node, 0o600 | stat.S_IFBLK, os.makedev(7, 1000))  # another container's
    box.mount()
    assert os.stat(box.node).st_rdev == number
    assert len(mounts_below(box.lxcpath)) == 1
    box.unmount()
    assert (box.mounted, os.path.exists(box.node), os.path.exists(box.file)) == (False, False, True)
    box.unmount()


def test_one_that_is_still_used_is_not_called_gone(box, monkeypatch):
    """Lost: ids or a name become the next container's while the last one's files are mounted somewhere."""
    monkeypatch.setattr(loop, "LET_GO", 0.3)
    box.make()
    user = os.open(box.node, os.O_RDONLY)
    with pytest.raises(HeteroError, match="is still mounted elsewhere"):
        box.unmount()
    os.close(user)
    box.unmount()
    box.mount()
    with open(f"{box.root}/in-use", "w", encoding="ascii"), pytest.raises(HeteroError, match="see who uses it"):
        box.unmount()


def test_killed_at_any_moment_the_next_one_goes_on(box):
    """Lost: a start that was killed leaves a disk that never comes up again, or comes up twice."""
    rng = random.Random(7)
    box.make()
    deep = f"{box.root}/kept"
    with open(deep, "w", encoding="ascii") as file:
        file.write("data")
    box.unmount()
    for _turn in range(25):
        child = os.fork()
        if child == 0:
            box.mount()
            os._exit(0)
        time.sleep(rng.uniform(0, 0.01))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        box.mount()
        assert box.mounted
        assert len(mounts_below(box.lxcpath)) == 1
        with open(deep, encoding="ascii") as file:
            assert file.read() == "data"
        box.unmount()


def test_one_that_has_errors_is_checked_before_it_is_mounted_and_left_while_it_runs(box, monkeypatch):
    """Lost: a container whose root takes no writes any more, however often it is started; or one that runs loses it."""
    box.make()
    with open(f"{box.root}/kept", "w", encoding="ascii") as file:
        file.write("data")
    os.sync()
    break_file_system(box.file)
    assert disks.has_errors(box.container)
    for runs in (True, False):
        monkeypatch.setattr(Container, "running", runs)
        box.mount()
        assert (box.mounted, disks.has_errors(box.container)) == (True, runs)
    with open(f"{box.root}/kept", encoding="ascii") as file:
        assert file.read() == "data"
    with open(f"{box.root}/more", "w", encoding="ascii"):
        pass


def test_one_that_cannot_be_corrected_is_named_and_left_as_it_is(box):
    """Lost: what could still be read of it."""
    box.make()
    box.unmount()
    command = "set_super_value state 2\nset_inode_field <2> mode 0\n"
    subprocess.run(["debugfs", "-w", "-f", "-", box.file], input=command, text=True, check=True, capture_output=True)
    with pytest.raises(HeteroError, match=r"look at it: e2fsck .*/root.ext4, while nothing uses it"):
        box.mount()
    assert (box.mounted, disks.has(box.container)) == (False, True)


def test_after_a_restart_of_the_host_all_are_there_and_one_that_is_not_is_named(box, monkeypatch):
    """Lost: containers do not come back with their host, or one that is broken keeps all others from it."""
    box.make()
    box.unmount()
    for name in ("ml-8", "broken", "odd"):
        os.makedirs(f"{box.lxcpath}/{name}/rootfs", exist_ok=True)
        with open(f"{box.lxcpath}/{name}/config", "w", encoding="ascii") as file:
            file.write(f"lxc.uts.name = {name}\n")
    with open(f"{box.lxcpath}/broken/root.ext4", "w", encoding="ascii") as file:
        file.truncate(1 << 20)
    os.makedirs(f"{box.lxcpath}/a-folder/config")
    has = disks.has

    def odd(container):
        if container.name == "odd":
            raise ValueError("embedded null byte")
        return has(container)

    monkeypatch.setattr(disks, "has", odd)
    failed = disks.restore(box.lxcpath, box.base)
    assert (box.mounted, list(failed)) == (True, ["a-folder", "broken", "odd"])
    assert "container odd of " in failed["odd"]
    assert "a-folder/config: cannot be read as a container's configuration (Is a directory)" in failed["a-folder"]
    assert "its file system cannot be mounted" in failed["broken"]
