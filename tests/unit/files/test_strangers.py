# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person laid into a folder that is about to go. If these fail, all that somebody has goes with it."""

from __future__ import annotations

import re

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.strangers import must_hold_only

MADE = re.compile(r"disk\.raw|console\.log")


def look(folder):
    must_hold_only(str(folder), MADE, "holds {names}", "move it away")


def test_what_was_made_and_empty_folders_may_go(tmp_path):
    """Lost: terminate, to a lost+found."""
    (tmp_path / "disk.raw").touch()
    (tmp_path / "lost+found").mkdir()
    look(tmp_path)
    look(tmp_path / "none")


def test_anything_else_is_named_and_stays(tmp_path):
    """Lost: somebody's only copy."""
    (tmp_path / "disk.raw").touch()
    (tmp_path / "notes").write_text("all that I have")
    (tmp_path / "disk.raw.old").touch()
    with pytest.raises(Refused, match=r"holds disk\.raw\.old and notes: move it away"):
        look(tmp_path)


def test_a_folder_that_holds_something_and_a_link_are_somebodys(tmp_path):
    """Lost: what lies in the folder, or where the link leads."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").touch()
    with pytest.raises(Refused, match="holds data"):
        look(tmp_path)
    (tmp_path / "data" / "a").unlink()
    (tmp_path / "there").symlink_to(tmp_path / "data")
    with pytest.raises(Refused, match="holds there"):
        look(tmp_path)
