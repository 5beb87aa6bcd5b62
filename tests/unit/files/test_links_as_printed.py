# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways that are printed of a link, typed as printed: the link, which alone says where the data are, is not removed
before they lie beside it.
"""

from __future__ import annotations

import re
import stat
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.links import must_be_no_link


@pytest.fixture(params=["big", "Big Disk", "it's $HOME & more"])
def to(request, tmp_path):
    """A folder with the data of an instance."""
    to = tmp_path / request.param / "a"
    to.mkdir(parents=True)
    to.chmod(0o751)
    (to / "root.ext4").write_text("data")
    (to / ".notes").write_text("mine")
    return to


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "lxc").mkdir()
    return tmp_path / "lxc/a"


def typed(folder, *parts):
    with pytest.raises(Refused) as refused:
        must_be_no_link(str(folder), *map(str, parts))
    line = re.search(r"of the link \((.*?)\);", str(refused.value))[1]
    return subprocess.run(["bash", "-c", line], check=False, capture_output=True).returncode


def is_whole(folder):
    assert not folder.is_symlink()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o751
    assert (folder / "root.ext4").read_text() == "data"
    assert (folder / ".notes").read_text() == "mine"
    must_be_no_link(str(folder), str(folder / "root.ext4"))


def test_of_a_folder(folder, to):
    folder.symlink_to(to)
    assert typed(folder) == 0
    is_whole(folder)


def test_of_a_file(folder, to):
    folder.mkdir()
    (folder / "root.ext4").symlink_to(to / "root.ext4")
    assert typed(folder, folder / "root.ext4") == 0
    assert (folder / "root.ext4").read_text() == "data"


def test_of_a_link_by_a_link(folder, to, tmp_path):
    (tmp_path / "middle").symlink_to(to)
    folder.symlink_to(tmp_path / "middle")
    assert typed(folder) == 0
    is_whole(folder)


def test_where_the_move_fails_the_link_is_there(folder, to):
    """Say as the disk is full."""
    folder.symlink_to(to)
    folder.with_name("a.new").mkdir()
    (folder.with_name("a.new") / "rest").touch()
    assert typed(folder) != 0
    assert (folder / "root.ext4").read_text() == "data"
    assert folder.is_symlink()


@pytest.mark.parametrize("stopped", [False, True])
def test_of_a_mount_point(folder, to, tmp_path, stopped):
    """Which cannot be moved itself, and whose move is typed again after it was stopped."""
    point = tmp_path / "a point"
    point.mkdir()
    folder.symlink_to(point)
    subprocess.run(["mount", "--bind", to, point], check=True)
    try:
        if stopped:
            new = folder.with_name("a.new")
            new.mkdir()
            (new / "root.ext4").write_text("da")
            (to / ".notes").rename(new / ".notes")
        assert typed(folder) == 0
        is_whole(folder)
    finally:
        subprocess.run(["umount", point], check=True)


def test_of_a_file_that_is_mounted(folder, to, tmp_path):
    """It cannot be moved, and the link stays."""
    folder.mkdir()
    point = tmp_path / "point"
    point.touch()
    (folder / "root.ext4").symlink_to(point)
    subprocess.run(["mount", "--bind", to / "root.ext4", point], check=True)
    try:
        typed(folder, folder / "root.ext4")
        assert (folder / "root.ext4").read_text() == "data"
    finally:
        subprocess.run(["umount", point], check=True)
