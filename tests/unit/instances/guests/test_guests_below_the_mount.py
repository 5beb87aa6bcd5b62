# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that is asked for while the file system with all guests is not mounted. Lost: that guest: it was made under
the mount point, and hidden as soon as the file system was back. Of containers it is refused.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import BARE


def test_nothing_is_made_under_the_mount_point(site):
    site.provision("g1", flavor=BARE)
    site.do("stopped", "g1")
    folder, disk = site.folder / "guests-files", site.folder / "disk"
    folder.rename(disk)  # not mounted
    folder.mkdir()
    said = site.provision("g2", flavor=BARE)["msg"]
    assert f"{folder}: has no guests, and g1 was made in it: its file system may not be mounted" in said
    assert list(folder.iterdir()) == []
    assert [one["instance"] for one in site.info()["instances"]] == ["g1"]
    folder.rmdir()
    disk.rename(folder)
    assert not site.provision("g2", flavor=BARE).get("failed")


def test_where_all_are_lost_one_is_made_anew_as_printed(site):
    """If this fails, no guest is made on this host any more."""
    for name in ("g1", "g2"):
        site.provision(name, flavor=BARE)
        site.do("stopped", name)
    (site.folder / "guests-files").rename(site.folder / "lost")
    assert "rebuild_instance -e instance=g1 -e fresh=true" in site.provision("g3", flavor=BARE)["msg"]
    assert not site.do("rebuilt", "g1", fresh=True).get("failed")
    assert not site.provision("g3", flavor=BARE).get("failed")
