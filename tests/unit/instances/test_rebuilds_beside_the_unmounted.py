# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rebuild on a host of an earlier release, beside a container of which nothing is left in the folder. If this fails,
the root is removed for a new one, and then the new one is refused, as if its file system were not mounted.
"""

from __future__ import annotations

import shutil

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks, folders
from ansible_collections.hetero.compute.tests.unit.instances.test_own_roots import two

__all__ = ["two"]


def test_what_was_in_the_folder_until_its_rebuild_shows_that_it_is_mounted(two):
    disks.unmount(two.container("b"), two.here.disks)
    shutil.move(two.container("b").folder, two.folder / "b-away")
    (two.lxcpath / folders.MARK).unlink()
    assert not two.do(lifecycle.rebuilt, "a", fresh=True).get("failed")
    assert two.container("a").running
    assert not two.do(lifecycle.absent, "a").get("failed")
    assert folders.is_seen(two.lxcpath)
