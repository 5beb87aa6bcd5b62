# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests that have their own disk. If these fail, they are refused it, or nobody can end them."""

from __future__ import annotations

import os
import shutil
import subprocess

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.file_system import uuid_of
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_own_disks import (
    give_uuid,
    path,
    runs,
    two,
)

__all__ = ["two"]


def test_forged_for_one_without_a_line(two):
    """b, root in its guest, gives its disk a's UUID before a's line is written (a of an earlier release)."""
    path(two, "a", "disk.uuid").unlink()
    give_uuid(two, "b", uuid_of(str(path(two, "a"))))
    assert runs(two, "a")


def test_backup_folder_of_a_beside_it_is_no_other(two):
    """cp -a of a's folder beside it, then a's line lost, a starts."""
    subprocess.run(["cp", "-a", str(path(two, "a").parent), str(path(two, "a").parent.parent / "a-old")], check=True)
    assert runs(two, "a")
    path(two, "a", "disk.uuid").unlink()
    assert runs(two, "a")
    assert not two.do("absent", "a").get("failed")


def test_rebuild_makes_a_new_line(two):
    before = path(two, "a", "disk.uuid").read_text()
    done = two.do("rebuilt", "a", fresh=True)
    assert not done.get("failed"), done
    assert path(two, "a", "disk.uuid").read_text() != before
    assert runs(two, "a")


def test_a_pipe_or_folder_in_place_of_the_line(two):
    for how in ("pipe", "folder", "link"):
        line = path(two, "a", "disk.uuid")
        if line.is_dir() and not line.is_symlink():
            shutil.rmtree(line)
        elif os.path.lexists(line):
            line.unlink()
        if how == "pipe":
            os.mkfifo(line)
        elif how == "folder":
            line.mkdir()
        else:
            line.symlink_to(line)
        assert runs(two, "a"), how
    assert not two.do("absent", "a").get("failed")


def test_moved_to_another_disk_while_the_uuid_was_changed_by_its_guest(two):
    """a's guest gave its disk b's UUID; all folders moved to a bigger disk; a's end."""
    give_uuid(two, "a", uuid_of(str(path(two, "b"))))
    parent = two.folder / "guests-files"
    subprocess.run(["cp", "-a", str(parent), str(two.folder / "new")], check=True)
    shutil.rmtree(parent)
    (two.folder / "new").rename(parent)
    done = two.do("absent", "a")
    assert not done.get("failed"), done["msg"]
