# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels that an administrator put into the TFTP root. If these fail, one that is there is not served, and nobody says
why, or a board is led to a file that is gone.

Tests tftp/kernels_by_hand.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.tftp.kernels_by_hand import lead, names, put_there


class Files:
    """A board's folder, by the names that it leads to."""

    def __init__(self, *there):
        self.there = set(there)

    def by_hand(self):
        return sorted(self.there)

    def lead_to(self, name):
        self.there.add(name)

    def lead_no_more(self, name):
        self.there.remove(name)


def test_a_board_has_a_kernel_and_an_initrd_by_its_id():
    """Lost: the names that OpenStack's blueprint gave."""
    assert names(3) == ["vmlinux_3", "initrd_3"]


def test_what_is_there_and_can_be_read_is_served(tmp_path):
    """Lost: the kernel; or why the server does not serve it."""
    (tmp_path / "vmlinux_3").touch(mode=0o644)
    (tmp_path / "vmlinux_33").touch()
    assert put_there(str(tmp_path), 3) == {"vmlinux_3": ""}
    (tmp_path / "vmlinux_3").chmod(0o640)
    path = tmp_path / "vmlinux_3"
    assert put_there(str(tmp_path), 3) == {"vmlinux_3": f"cannot be read by the TFTP server: chmod o+r {path}"}


@pytest.mark.parametrize(("lay", "kind"), [("mkdir", "a folder"), ("symlink_to", "a link")])
def test_what_is_no_file_is_named(tmp_path, lay, kind):
    """Lost: the same. A link may lead out of what TFTP serves."""
    getattr(tmp_path / "initrd_3", lay)(*(["vmlinux_4"] if lay == "symlink_to" else []))
    assert put_there(str(tmp_path), 3) == {"initrd_3": f"is {kind}: put the file itself there"}


def test_a_folder_leads_to_what_is_wanted_and_to_nothing_else():
    """Lost: the kernel that was put there last, or a link that leads nowhere."""
    files = Files("vmlinux_3")
    assert lead(files, {"initrd_3"}, check=True) == (["initrd_3"], ["vmlinux_3"])
    assert files.there == {"vmlinux_3"}, "check mode changes nothing"
    assert lead(files, {"initrd_3"}) == (["initrd_3"], ["vmlinux_3"])
    assert files.there == {"initrd_3"}
    assert lead(files, {"initrd_3"}) == ([], [])
