# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What somebody else laid where one of our files goes. If these fail, it is overwritten."""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.by_hand import keep, kept_name


def test_it_stays_under_another_name(tmp_path):
    """Lost: the file that an administrator wrote."""
    path = tmp_path / "ftpd.conf"
    path.write_text("theirs")
    name = keep(str(path))
    os.replace(_made(tmp_path, "ours"), path)
    assert name == f"{path}.by-hand"
    assert (tmp_path / "ftpd.conf.by-hand").read_text() == "theirs"


def test_an_earlier_one_is_not_overwritten_by_a_later_one(tmp_path):
    """Lost: the first of two."""
    path = tmp_path / "a"
    for number, text in enumerate(["first", "second", "third"]):
        os.replace(_made(tmp_path, text), path)
        assert keep(str(path)) == f"{path}.by-hand" + (f"-{number + 1}" if number else "")
    assert [file.read_text() for file in sorted(tmp_path.glob("a.by-hand*"))] == ["first", "second", "third"]


def test_cut_off_before_the_new_file_came_it_is_kept_once(tmp_path):
    """Lost: a folder that fills with names of one file, each time that the caller is killed there."""
    path = tmp_path / "a"
    path.write_text("theirs")
    assert keep(str(path)) == keep(str(path)) == kept_name(str(path))
    assert len(list(tmp_path.iterdir())) == 2


def test_a_link_is_kept_as_the_link(tmp_path):
    """Lost: where it led."""
    path = tmp_path / "a"
    path.symlink_to("/nowhere")
    assert os.readlink(keep(str(path))) == "/nowhere"


def test_where_nothing_lies_nothing_is_kept(tmp_path):
    """Lost: the error, by which the caller knows that the file is gone."""
    with pytest.raises(FileNotFoundError):
        keep(str(tmp_path / "none"))


def _made(folder, text):
    made = folder / "made"
    made.write_text(text)
    return made
