# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A clone that lies on a guest's disk, and whose domain is down, is on a file system that is not mounted since the
host's last boot. Lost: all of the clone that it has not written itself, with the guest's end, as at that of its lease;
what else is missing of other domains keeps no guest from its end.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import folders
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_snapshots_and_clones import (
    clone,
    overlay,
    own,
)

__all__ = ["own"]


@pytest.mark.parametrize("is_snapshot", [False, True])
def test_the_disk_below_it_stays(site, own, monkeypatch, is_snapshot):
    point, table = site.folder / "data", site.folder / "fstab"
    point.mkdir()
    table.write_text(f"/dev/sdz1 {point} ext4 nofail 0 2\n")
    over = overlay(point / "clone.qcow2", own)
    top = overlay(site.folder / "clone.snap1", over, "qcow2") if is_snapshot else over
    clone(site.virt.paths.domains, top)
    over.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(folders, "FSTAB", str(table))
        said = site.do("absent", "a").get("msg") or ""
    assert own.exists(), "removed, and a clone lies on it"
    assert f"domain clone: has {over}, and by /etc/fstab a file system is to be at {point}, which is not moun" in said
    assert not site.do("absent", "a").get("failed")
