# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container whose root could not be made, beside one whose root is away. If this fails, nobody is told why, and the
claim stays for good, with its address.
"""

from __future__ import annotations

from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_own_roots import two

__all__ = ["two"]


def test_what_is_left_of_it_is_not_taken_for_the_root_that_is_away(two, monkeypatch):
    away = Path(disks.file_of(two.container("b"))).rename(two.folder / "away")
    two.claim("c", flavor=SMALL)

    def on_a_full_disk(path, uuid="random"):
        with open(path, "r+b") as file:  # mke2fs writes the superblock last
            file.seek(1 << 20)
            file.write(b"tables" * 1000)
        raise HeteroError("No space left on device", path)

    monkeypatch.setattr(disks, "make_empty", on_a_full_disk)
    said = two.up("c")["msg"]
    assert "No space left on device (c was taken back, nothing of it is left)" in said
    assert two.info(instance="c")["instances"] == []
    assert away.exists()
