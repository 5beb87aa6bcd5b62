# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A link in the place of the mount point in a root's folder (fs_N/root). If this fails, an end is told as done while
the tenant's data stay mounted where the link leads, of which nothing knows any more.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.tests.unit.verbs.test_odd_root_folders import folder, is_refused, stopped

__all__ = ["stopped"]


@pytest.fixture
def linked(stopped):
    big = stopped.folder / "big"
    big.mkdir()
    (folder(stopped, 0) / "root").rmdir()
    (folder(stopped, 0) / "root").symlink_to(big)
    yield stopped, big
    for point in reversed(mounts_below(str(big))):
        unmount(point, detach=True)


def test_no_root_is_mounted_through_it_and_left_so_at_its_end(linked):
    """Lost: jackie's data and host key, which stay readable below the link's target after `given back`."""
    site, big = linked
    started = site.module("instance", kind="board", instance="jackie", state="running", timeout=3)
    assert f"is a link to {big}" in started["msg"]
    assert not mounts_below(str(big))
    assert is_refused(site.terminate("jackie"))
    (folder(site, 0) / "root").unlink()  # as printed, where the link is something else
    assert not is_refused(site.terminate("jackie"))
