# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest's disk that was moved to a block device, such as a logical volume, or away; and the way that is printed."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess

import pytest

from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import SMALL


@pytest.fixture
def volume(site, tmp_path):
    """The node of a device with the disk of ml-8, which is stopped."""
    site.provision("ml-8", flavor=SMALL)
    site.do("stopped", "ml-8")
    image = tmp_path / "volume.img"
    shutil.copy(site.folder / "guests-files/ml-8/disk.raw", image)
    made = subprocess.run(["losetup", "--find", "--show", image], check=True, capture_output=True, text=True)
    loop = made.stdout.strip()
    os.mknod(tmp_path / "vg-ml8", 0o600 | stat.S_IFBLK, os.stat(loop).st_rdev)
    yield tmp_path / "vg-ml8"
    subprocess.run(["losetup", "-d", loop], check=True)


@pytest.mark.parametrize("is_link", [True, False])
def test_a_disk_on_a_device_is_not_said_to_be_removed(site, volume, is_link):
    """Leaked: all that a tenant had, on the volume, whose node alone was moved and then removed."""
    disk = site.folder / "guests-files/ml-8/disk.raw"
    disk.unlink()
    disk.symlink_to(volume) if is_link else volume.rename(disk)
    said = site.do("absent", "ml-8")["msg"]
    assert f"is a link to {volume}" in said if is_link else "is a block device, and what belongs here" in said
    assert "What is on the device stays there" in said
    subprocess.run(re.search(r"\((umask .*?)\)", said)[1], shell=True, check=True)  # as printed
    assert (disk.is_file(), disk.is_symlink(), stat.S_IMODE(disk.stat().st_mode)) == (True, False, 0o600)
    assert volume.exists() == is_link
    assert not site.do("running", "ml-8").get("failed")
    assert not site.do("absent", "ml-8").get("failed")


def test_of_a_link_to_what_is_not_mounted_nobody_is_told_to_remove_it_first(site, tmp_path):
    """Lost: the link, which alone said where a tenant's data are."""
    site.provision("ml-8", flavor=SMALL)
    site.do("stopped", "ml-8")
    folder = site.folder / "guests-files/ml-8"
    folder.rename(tmp_path / "not-mounted")
    folder.symlink_to(tmp_path / "big")
    said = site.do("absent", "ml-8")["msg"]
    assert f"is a link to {tmp_path / 'big'}" in said
    assert "only the link says where the data are: mount what holds it" in said
    assert "rm " not in said
