# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A root's folder that an operator moved to another disk, or laid something else into. If these fail, an end is told as
done while the tenant's data and key still lie there, or another's only root goes with the end of an instance.
"""

from __future__ import annotations

import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.tests.unit.verbs.test_roots_in_others_places import folder, two

__all__ = ["two"]


def said(results):
    return [result.get("msg") for result in results]


def is_refused(results):
    return any(result.get("failed") for result in results)


@pytest.fixture
def stopped(jackie):
    """jackie's instance on board 0, stopped, and its root not mounted."""
    jackie.module("instance", kind="board", instance="jackie", state="stopped", timeout=3)
    for point in reversed(mounts_below(str(folder(jackie, 0)))):
        unmount(point)
    return jackie


@pytest.fixture(params=["", "root.ext4"])
def linked(request, stopped):
    """(site, where a root's folder or file was, where it is now and a link leads to)."""
    place, big = folder(stopped, 0) / request.param, stopped.folder / "big"
    shutil.move(place, big)
    place.symlink_to(big)
    return stopped, place, big


def test_no_root_to_which_a_link_leads_is_told_as_removed(linked):
    """Lost: jackie's data, to whoever has that disk."""
    site, place, big = linked
    results = site.terminate("jackie")
    assert is_refused(results)
    assert big.exists()
    assert f"{place}: is a link to {big}" in str(said(results))
    place.unlink()
    shutil.move(big, place)
    assert not is_refused(site.terminate("jackie"))
    assert not folder(site, 0).exists()


def test_no_root_to_which_a_link_leads_is_mounted(linked):
    """Lost: how to end the mount, of which nothing of ours knows."""
    site, place, big = linked
    results = site.provision("jackie")
    assert f"{place}: is a link to {big}" in str(said(results))
    assert not mounts_below(str(big))
    place.unlink()
    shutil.move(big, place)
    assert not is_refused(site.provision("jackie"))


@pytest.mark.parametrize("name", ["", "own.tar"])
def test_no_archive_to_which_a_link_leads_is_told_as_removed(stopped, name):
    """Lost: the private host key of jackie's root on the board's own disk, to whoever has the disk to which the archive
    was moved, though its removal is said.
    """
    archive = stopped.state / "disks/fs_0"
    archive.mkdir(parents=True)
    (archive / "own.tar").write_bytes(b"key")
    place, big = archive / name, stopped.folder / "big"
    shutil.move(place, big)
    place.symlink_to(big)
    there = sorted(stopped.state.rglob("*"))
    for verb in ("terminate", "rebuild", "reap"):
        results = VERBS[verb](stopped)
        assert f"{place}: is a link to {big}, and what belongs here has to lie here itself" in str(results)
        assert big.exists()
        assert folder(stopped, 0).exists()
    assert [path for path in there if not path.exists()] == []
    place.unlink()
    shutil.move(big, place)
    assert not is_refused(stopped.terminate("jackie"))
    assert not archive.exists()


def test_a_disk_that_is_mounted_on_the_folder_stays_mounted(stopped):
    """Lost: jackie's data, which an end told as done unmounts and leaves on that disk."""
    place, big = folder(stopped, 0), stopped.folder / "big"
    shutil.move(place, big)
    place.mkdir()
    subprocess.run(["mount", "--bind", big, place], check=True)
    try:
        assert is_refused(stopped.terminate("jackie"))
        assert not (big / "root.ext4").exists()
    finally:
        assert unmount(str(place)) == 0
    assert not is_refused(stopped.terminate("jackie"))
    assert not place.exists()


VERBS = {
    "terminate": lambda site: site.terminate("jackie"),
    "rebuild": lambda site: [
        site.module("instance", kind="board", instance="jackie", state="rebuilt", fresh=True, timeout=3)
    ],
    "reap": lambda site: site.expire("jackie") or site.reap(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_anothers_root_beside_it_does_not_go_with_a_root(two, verb):
    """Lost: bob's root, where an operator who puts two files right had to lay one of them somewhere for a moment."""
    aside = folder(two, 0) / "root.ext4.bob"
    (folder(two, 1) / "root.ext4").rename(aside)
    results = VERBS[verb](two)
    assert aside.exists(), results
    assert (folder(two, 0) / "root.ext4").exists()
    assert "holds root.ext4.bob, which is no part of a root" in str(results)
    aside.rename(folder(two, 1) / "root.ext4")
    assert not is_refused(VERBS[verb](two))
