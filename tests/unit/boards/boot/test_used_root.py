# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a root tells of who may be at work. If these fail, a board is cut under its tenant by who asks for it again."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import used_root
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError


@pytest.fixture
def folder(tmp_path):
    """A root as it was made, and when that was over."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "hostname").write_text("jackie")
    os.symlink("/nowhere", tmp_path / "link")
    time.sleep(0.02)  # a file system's clock goes by the kernel's tick
    began = time.time()
    time.sleep(0.02)
    return tmp_path, began


def test_a_root_that_nothing_was_written_into_was_not_used(folder):
    root, began = folder
    assert used_root.changed_since(root, began) is False
    assert used_root.changed_since(root, began - 3600) is True


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "etc" / "machine-id").write_text(""),
        lambda root: (root / "etc" / "hostname").write_text("other"),
        lambda root: (root / "etc" / "hostname").unlink(),
        lambda root: (root / "etc" / "hostname").chmod(0o600),
        lambda root: (root / "new").mkdir(),
        lambda root: (root / "link").unlink(),
    ],
    ids=["made", "written", "removed", "another mode", "a folder", "a link"],
)
def test_whatever_is_changed_in_it_is_seen(folder, change):
    """Lost: what a tenant did, which is nothing to who only looks for new files."""
    root, began = folder
    change(root)
    assert used_root.changed_since(root, began) is True


@pytest.mark.parametrize(
    ("mounted", "when", "disk", "used"),
    [
        (True, "now", False, False),
        (True, 1e12, False, True),
        (True, 0.0, False, True),
        (True, None, False, True),
        (False, "now", False, True),
        (True, "now", True, True),
        (HeteroError("not mounted"), "now", False, True),
        (OSError(5, "I/O"), "now", False, True),
    ],
)
def test_where_nobody_can_tell_it_may_have_been(monkeypatch, tmp_path, mounted, when, disk, used):
    """Lost: the power of a board whose root is on its own disk, or not mounted by now."""

    class Root:
        path = str(tmp_path)

        @property
        def is_mounted(self):
            if isinstance(mounted, Exception):
                raise mounted
            return mounted

    monkeypatch.setattr(used_root, "Place", lambda proxy, board: SimpleNamespace(root=Root()))
    work = SimpleNamespace(proxy=None, board=None, from_its_disk=disk)
    time.sleep(0.02)
    assert used_root.used_since(work, time.time() if when == "now" else when) is used
