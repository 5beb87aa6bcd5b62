# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders that do not exist yet. If these fail, the room for a folder is looked up on another file system."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.paths import existing


def test_the_nearest_folder_that_is_there(tmp_path, monkeypatch):
    """Lost: the file system whose room counts."""
    (tmp_path / "state").mkdir()
    assert existing(str(tmp_path / "state" / "roots" / "fs_1")) == str(tmp_path / "state")
    assert existing(str(tmp_path / "state")) == str(tmp_path / "state")
    monkeypatch.chdir(tmp_path)
    assert existing("none/further") == str(tmp_path), "a relative path is taken from the current folder"
    assert existing("/none/further") == "/"


def test_a_link_that_leads_nowhere_is_not_there(tmp_path):
    """Lost: a traceback where the file system of a link's target is not mounted."""
    (tmp_path / "roots").symlink_to("/not/mounted")
    assert existing(str(tmp_path / "roots" / "fs_1")) == str(tmp_path)
