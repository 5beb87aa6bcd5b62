# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways that are printed of a link, typed as printed: the link, which alone says where the data are, is not removed
before a copy of them lies beside it.
"""

from __future__ import annotations

import stat
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.links import must_be_no_link
from ansible_collections.hetero.compute.tests.unit.files.printed_moves import followed, steps, typed


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


def said(folder, *parts):
    with pytest.raises(Refused) as refused:
        must_be_no_link(str(folder), *map(str, parts))
    return str(refused.value)


def is_whole(folder):
    assert not folder.is_symlink()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o751
    assert (folder / "root.ext4").read_text() == "data"
    assert (folder / ".notes").read_text() == "mine"
    must_be_no_link(str(folder), str(folder / "root.ext4"))


def test_of_a_folder(folder, to):
    folder.symlink_to(to)
    assert followed(said(folder))
    is_whole(folder)


def test_of_a_file(folder, to):
    folder.mkdir()
    (folder / "root.ext4").symlink_to(to / "root.ext4")
    assert followed(said(folder, folder / "root.ext4"))
    assert (folder / "root.ext4").read_text() == "data"


def test_of_a_link_by_a_link(folder, to, tmp_path):
    (tmp_path / "middle").symlink_to(to)
    folder.symlink_to(tmp_path / "middle")
    assert followed(said(folder))
    is_whole(folder)


def test_where_the_copy_fails_the_link_is_there(folder, to):
    """Say as the disk is full."""
    folder.symlink_to(to)
    folder.with_name("a.new").touch()
    copy, put = steps(said(folder))
    assert typed(copy).returncode != 0
    assert typed(put).returncode != 0
    assert (folder / "root.ext4").read_text() == "data"
    assert folder.is_symlink()


@pytest.mark.parametrize("stopped", [False, True])
def test_of_a_mount_point(folder, to, tmp_path, stopped):
    """Whose copy is typed again after it was stopped."""
    point = tmp_path / "a point"
    point.mkdir()
    folder.symlink_to(point)
    subprocess.run(["mount", "--bind", to, point], check=True)
    try:
        if stopped:
            new = folder.with_name("a.new")
            new.mkdir()
            (new / "root.ext4").write_text("da")
        assert followed(said(folder))
        is_whole(folder)
    finally:
        subprocess.run(["umount", point], check=True)


def test_of_a_file_that_is_mounted(folder, to, tmp_path):
    folder.mkdir()
    point = tmp_path / "point"
    point.touch()
    (folder / "root.ext4").symlink_to(point)
    subprocess.run(["mount", "--bind", to / "root.ext4", point], check=True)
    try:
        assert followed(said(folder, folder / "root.ext4"))
    finally:
        subprocess.run(["umount", point], check=True)
    assert (folder / "root.ext4").read_text() == "data"
