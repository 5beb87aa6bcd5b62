# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person laid into the folder of a root on a board's own disk (disks/fs_N), as in a root's folder on the proxy
(verbs/test_odd_root_folders.py). If these fail, another's only archive with its host key goes with an instance's end,
or an end is told as done while the archive still lies where a link leads.
"""

from __future__ import annotations

import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError


def folder(disks, number):
    return disks.folder / "state" / "disks" / f"fs_{number}"


def removed(disks, number):
    try:
        return disks.remove(number)["boards"]
    except HeteroError as error:
        return str(error)


@pytest.fixture
def two(disks):
    """vm0 on board 0 and vm1 on board 1, each with its root on its board's disk."""
    disks.ask(0)
    disks.ask(1)
    return disks


def test_anothers_archive_beside_it_does_not_go_with_an_archive(two):
    """Lost: vm1's host key and data for cloud-init, with vm0's end."""
    aside = folder(two, 0) / "own.tar.vm1"
    (folder(two, 1) / "own.tar").rename(aside)
    result = removed(two, 0)
    assert aside.exists(), result


def test_an_archive_in_anothers_place_does_not_go_with_that_ones_end(two):
    """Lost: the same, where two archives were put back into each other's places."""
    here, there, spare = folder(two, 0) / "own.tar", folder(two, 1) / "own.tar", two.folder / "spare"
    number = there.stat().st_ino
    here.rename(spare)
    there.rename(here)
    spare.rename(there)
    assert "may be another instance's: it is not removed" in str(removed(two, 0))
    assert here.stat().st_ino == number
    here.rename(two.folder / "aside")
    assert "may be another" not in str(removed(two, 0)), "by the way that is printed"
    assert not folder(two, 0).exists()


def test_no_archive_to_which_a_link_leads_is_told_as_removed(two):
    """Lost: what was to be removed, which stays readable where the link leads."""
    big = two.folder / "big"
    shutil.move(folder(two, 0), big)
    folder(two, 0).symlink_to(big)
    result = removed(two, 0)
    assert folder(two, 0).is_symlink() or not big.exists(), (result, sorted(path.name for path in big.iterdir()))
