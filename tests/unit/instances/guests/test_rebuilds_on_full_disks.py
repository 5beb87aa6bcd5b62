# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rebuilds where the host's disk is nearly full. If these fail, a trial of the new root takes the last of it, so that
other guests cannot write, and the user is told to choose another image.

Tests files/scratch.py.
"""

from __future__ import annotations

import os
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import file_system, scratch
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import guests
from ansible_collections.hetero.compute.tests.unit.instances.guests.conftest import ROOM
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_rebuilds_that_cannot_be import take_in


def test_the_new_root_fits_once_the_old_one_is_gone(site, tmp_path_factory, monkeypatch):
    """Lost: a rebuild on a host whose disk is full of what the guest itself has written."""
    monkeypatch.setattr(guests, "ROOM", ROOM)  # so that its tenant can write so much
    folder = site.folder / "guests-files"
    folder.mkdir(exist_ok=True)
    take_in(site, tmp_path_factory, "large")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=150m", "none", folder], check=True)
    try:
        assert site.provision("ml-8", flavor=SMALL, image="large")["new"] == ["ml-8"]
        site.do("stopped", "ml-8")
        disk, there = folder / "ml-8/disk.raw", os.statvfs(folder)
        fill = there.f_bfree * there.f_frsize - (15 << 20)
        with disk.open("r+b") as file:  # what its tenant wrote
            file.seek(os.path.getsize(disk) - fill)
            file.write(os.urandom(fill))
        said = site.do("rebuilt", "ml-8", fresh=True)
        assert not said.get("failed"), said["msg"]
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def root(tmp_path):
    """A root of 20 MiB."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root/large").write_bytes(os.urandom(20 << 20))
    return str(tmp_path / "root")


def hold(root, mebibytes):
    file_system.must_hold(root, f"{root}.raw", mebibytes << 20, file_system.MAKE, "choose a smaller image")


def test_where_sizes_do_not_tell_it_is_tried(root, monkeypatch):
    """33 MiB hold it, though by its sizes it may need more; 20 do not."""
    hold(root, 33)
    with pytest.raises(HeteroError, match="choose a smaller image"):
        hold(root, 20)
    monkeypatch.setattr(scratch, "KEEP_FREE", 1 << 60)
    for mebibytes in (20, 33):
        with pytest.raises(HeteroError, match=r"has no room to try whether .*: free space on its file system, then"):
            hold(root, mebibytes)


def test_where_sizes_tell_nothing_is_tried(root, monkeypatch):
    monkeypatch.setattr(scratch, "KEEP_FREE", 1 << 60)
    hold(root, 64)
