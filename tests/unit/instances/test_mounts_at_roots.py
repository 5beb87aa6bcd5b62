# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What somebody has mounted at a container's root. If these fail, an end removes the container's configuration and then
stops at the mount; or it says that all is removed, and a tenant's data are still on a disk that nobody knows of.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.tests.unit.files.printed_moves import followed
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL

SAID = "/rootfs: something is mounted here that was not made for it: it would be unmounted, and what is on it would"
VERBS = pytest.mark.parametrize(("verb", "options"), [(lifecycle.absent, {}), (lifecycle.rebuilt, {"fresh": True})])


@pytest.fixture
def box(site):
    """A container that is stopped, whose disk is not mounted."""
    site.claim(flavor=SMALL)
    site.up()
    site.do(lifecycle.stopped)
    disks.unmount(site.container(), site.here.disks)
    return site.container()


def as_earlier(box):
    """Have its root be a folder, as an earlier release made it; the disk with its data, for another place."""
    file, config = Path(disks.file_of(box)), Path(box.config_file)
    disk = file.rename(file.parents[2] / "disk")
    subprocess.run(["tune2fs", "-U", "random", disk], check=False, capture_output=True)
    text = re.sub(r"# hetero.compute: root .*\n", "", config.read_text())
    config.write_text(re.sub("(?m)^lxc.rootfs.path = .*$", f"lxc.rootfs.path = dir:{disks.root_of(box)}", text))
    return disk


def refused(site, box, verb, options):
    """Whether a verb is refused, with all that is there in its place, and goes on after the printed way."""
    state = site.info()["instances"][0]["state"]
    said = site.do(verb, **options)["msg"]
    untouched = Path(box.config_file).exists() and site.info()["instances"][0]["state"] == state
    subprocess.run(re.search(r"\((umount \S+)\)", said)[1].split(), check=True)
    assert SAID in said, said
    assert untouched
    again = site.do(verb, **options)
    assert not again.get("failed"), again["msg"]
    return True


@VERBS
def test_a_folder_that_is_bound_over_its_disk(site, box, verb, options):
    other = site.folder / "other"
    (other / "data").mkdir(parents=True)
    subprocess.run(["mount", "--bind", other, disks.root_of(box)], check=True)
    assert refused(site, box, verb, options)
    assert (other / "data").exists()


@VERBS
def test_a_disk_to_which_a_plain_root_was_moved(site, box, verb, options):
    subprocess.run(["mount", "-o", "loop", as_earlier(box), disks.root_of(box)], check=True)
    assert not site.up().get("failed")
    site.do(lifecycle.stopped)
    assert refused(site, box, verb, options)


def test_a_folder_to_which_a_plain_root_was_moved(site, box):
    disk, moved = as_earlier(box), site.folder / "moved"
    moved.mkdir()
    subprocess.run(["mount", "-o", "loop", disk, "/mnt"], check=True)
    subprocess.run(["cp", "-a", "/mnt/.", moved], check=True)
    subprocess.run(["umount", "/mnt"], check=True)
    subprocess.run(["mount", "--bind", moved, disks.root_of(box)], check=True)
    assert not site.up().get("failed")
    site.do(lifecycle.stopped)
    assert refused(site, box, lifecycle.absent, {})


def test_a_folder_that_is_a_mount_point_itself(site, box):
    """Its end goes on by the ways that are printed."""
    folder, big = Path(box.folder), site.folder / "big"
    folder.rename(big)
    folder.mkdir()
    subprocess.run(["mount", "--bind", big, folder], check=True)
    said = site.do(lifecycle.absent)["msg"]
    assert f"{folder}: is a mount point" in said
    assert followed(said)
    new, old = re.search(r"write (\d+) in place of (\d+) into the line", site.do(lifecycle.absent)["msg"]).groups()
    config = Path(box.config_file)
    config.write_text(config.read_text().replace(f"of folder {old}\n", f"of folder {new}\n"))
    assert site.do(lifecycle.absent)["lines"][-1]["text"] == "container and root removed"
