# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has on a disk. If these fail, a guest is given the disk that the host runs from."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.storage import uses


@pytest.fixture
def disk(host):
    """nvme0n1 (259:0), with dm-0 (254:0) on it, which holds a mount and swap's disk dm-1 (254:1)."""

    def block(name, number, *holders):
        folder = host.root / "sys/devices/block" / name
        (folder / "holders").mkdir(parents=True)
        (folder / "dev").write_text(f"{number}\n")
        for above in holders:
            (folder / "holders" / above).symlink_to(host.root / "sys/devices/block" / above)
        for where in (f"sys/dev/block/{number}", f"sys/class/block/{name}"):
            (host.root / where).parent.mkdir(parents=True, exist_ok=True)
            (host.root / where).symlink_to(folder)

    block("dm-1", "254:1")
    block("dm-0", "254:0", "dm-1")
    block("nvme0n1", "259:0", "dm-0")
    block("sdb", "8:16")
    (host.root / "dev/mapper").mkdir(parents=True)
    (host.root / "dev/dm-1").touch()
    (host.root / "dev/mapper/swap").symlink_to(host.root / "dev/dm-1")
    return host


def test_what_lies_on_it_is_found_through_all_that_is_stacked(disk):
    """Lost: the file system, which LVM hides from who looks at the disk alone."""
    paths = disk.own_proc("20 1 254:0 / /srv rw - ext4 /dev/mapper/srv rw\n", "/dev/mapper/swap partition 9 0 -2\n")
    assert uses(["259:0"], paths) == [
        "nvme0n1 is part of dm-0",
        "dm-0 is mounted on /srv",
        "dm-0 is part of dm-1",
        "dm-1 is used as swap",
    ]
    assert uses(["8:16"], paths) == []
    assert uses([], paths) == []


def test_a_file_system_without_a_number_is_found_by_its_source(disk):
    """Lost: btrfs, whose mounts have a number that no disk has."""
    (disk.root / "dev/sdb").touch()
    paths = disk.own_proc("20 1 0:40 /@ / rw shared:1 - btrfs /dev/sdb rw\n")
    assert uses(["8:16"], paths) == ["sdb is mounted on /"]
