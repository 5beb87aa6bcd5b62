# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks of guests of which nothing else is left in its place: what came into another's folder with the own disk.uuid,
and what was written into another's file. If these fail, a tenant's only disk runs as another's, or goes with its end.
"""

from __future__ import annotations

import shutil

import pytest

from ansible_collections.hetero.compute.tests.unit.instances.guests.test_disks_in_others_places import (
    disk,
    folder,
    two,
    whose,
)

__all__ = ["two"]

ANOTHERS = "a/disk.raw: this is the disk of guest b, not of a: put each back in its own place"


@pytest.mark.parametrize("verb", ["running", "absent"])
@pytest.mark.parametrize("left", ["nothing", "an empty folder", "a log"])
def test_a_disk_that_came_with_its_line_is_the_guests_whose_claim_that_is(two, verb, left):
    """Lost: b's only disk, which came back from a backup into a's folder, with its disk.uuid."""
    disk(two, "a").rename(two.folder / "kept")
    disk(two, "b").rename(disk(two, "a"))
    (folder(two, "b") / "disk.uuid").rename(folder(two, "a") / "disk.uuid")
    if left == "nothing":
        shutil.rmtree(folder(two, "b"))
    else:
        for path in folder(two, "b").iterdir():
            if left != "a log" or path.name != "console.log":
                path.unlink()
    line = (folder(two, "a") / "disk.uuid").read_text()
    two.do("stopped", "a")
    assert ANOTHERS in two.do(verb, "a", timeout=20)["msg"]
    assert whose(disk(two, "a")) == "b's own"
    assert (folder(two, "a") / "disk.uuid").read_text() == line, "it is not written down as a's"
    assert not two.virt.domain("a").active
    disk(two, "a").rename(two.folder / "kept of b")
    (two.folder / "kept").rename(disk(two, "a"))
    assert not two.do(verb, "a").get("failed")


@pytest.mark.parametrize("verb", ["running", "absent"])
def test_the_only_disk_of_another_in_the_file_that_was_made_for_a_guest(two, verb):
    """Lost: b's disk, which was put back by dd into the wrong file, and is nowhere else."""
    disk(two, "a").write_bytes(disk(two, "b").read_bytes())
    disk(two, "b").unlink()
    assert ANOTHERS in two.do(verb, "a", timeout=20)["msg"]
    assert whose(disk(two, "a")) == "b's own"
    disk(two, "a").rename(disk(two, "b"))
    assert two.do("running", "b")["instances"][0]["state"] == "running"
    assert not two.do("absent", "a").get("failed")
