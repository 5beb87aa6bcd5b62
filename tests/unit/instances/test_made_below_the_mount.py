# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that was tried before its disk for containers was mounted (by a unit or ZFS, not fstab): the mark of that time
is in the bare mount point, and stays when its last instance is ended. Lost: an instance that is made while the disk is
not mounted: under the mount point, where it is hidden as soon as the disk is back.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL


def test_nothing_is_made_under_the_mount_point(site):
    bare, disk = site.folder / "bare", site.folder / "disk"
    site.claim("tried", flavor=SMALL)
    site.up("tried")
    site.do(lifecycle.absent, "tried")
    site.lxcpath.rename(bare)  # now the disk is mounted
    site.claim("c1", flavor=SMALL)
    site.up("c1")
    site.do(lifecycle.stopped, "c1")
    disks.unmount(site.container("c1"), site.here.disks)
    site.lxcpath.rename(disk)  # not mounted
    bare.rename(site.lxcpath)
    site.claim("c2", flavor=SMALL)
    said = site.up("c2").get("msg") or ""
    assert "has a file hetero.containers of another folder, and c1 was made in it: its file system may not" in said
    assert not (site.lxcpath / "c2").exists()
    site.lxcpath.rename(bare)
    disk.rename(site.lxcpath)
    assert not site.up("c1").get("failed")
