# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks of guests in the places of others, where what is written down of one of them is lost or forged.

If these fail, a disk goes with the end of another guest.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.instances.guests.test_own_disks import (
    give_uuid,
    path,
    swap,
    two,
)

__all__ = ["two"]


@pytest.mark.parametrize("verb", ["absent", "rebuilt"])
@pytest.mark.parametrize("what", ["missing", "empty", "garbage"])
def test_anothers_disk_does_not_go_with_a_guest_whose_own_line_is_lost(two, what, verb):
    """Lost: bo's only disk, though what is written down of it names it: jo's guest has no such line (of an earlier
    release, put back from a backup of then, or the file was damaged)."""
    line = path(two, "a", "disk.uuid")
    line.unlink() if what == "missing" else line.write_text("" if what == "empty" else "garbage\n")
    number = path(two, "b").stat().st_ino
    path(two, "a").rename(two.folder / "kept")
    path(two, "b").rename(path(two, "a"))
    result = two.do(verb, "a", **(dict(fresh=True) if verb == "rebuilt" else {}))
    there = path(two, "a").exists() and path(two, "a").stat().st_ino == number
    assert there, (result.get("failed"), result.get("msg"), str(result)[:600])


@pytest.mark.parametrize("verb", ["absent", "running"])
@pytest.mark.parametrize("how", ["uuid", "btrfs"])
def test_anothers_file_is_known_by_its_number_whatever_its_guest_did_to_its_uuid(two, verb, how):
    """Lost: bo's only disk. Its guest gave it a UUID of its own (tune2fs -U random: allowed), or another file system;
    the number of its file, which no guest can change, is written down in b's folder."""
    if how == "uuid":
        give_uuid(two, "b", "random")
    else:
        with open(path(two, "b"), "r+b") as file:  # no ext4 any more, as after mkfs of another kind
            file.seek(1024)
            file.write(bytes(1024))
    number = path(two, "b").stat().st_ino
    assert f"inode {number} " in path(two, "b", "disk.uuid").read_text()
    swap(two)
    result = two.do(verb, "a")
    if verb == "running":
        assert result.get("failed"), str(result)[:600]
    there = path(two, "a").exists() and path(two, "a").stat().st_ino == number
    assert there, (result.get("failed"), result.get("msg"), str(result)[:600])
