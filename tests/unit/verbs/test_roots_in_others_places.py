# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files with boards' roots that lie in each other's places, say after a backup of a proxy was put back. If these fail,
a tenant's root goes with the end of another's instance, or is booted with another's key.

A root.ext4 is copied sparsely: it may have 900 GB.
"""

from __future__ import annotations

import subprocess
from uuid import UUID

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.file_system import make_empty, uuid_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import roots


def folder(site, board):
    return site.state / "board-roots" / f"fs_{board}"


@pytest.fixture
def two(site):
    """jackie's on board 0 and bob's on board 1, stopped, with a file of their own each; their roots are not mounted."""
    for name in ("jackie", "bob"):
        assert not any(result.get("failed") for result in site.provision(name))
    for board, name in enumerate(("jackie", "bob")):
        (folder(site, board) / "root" / "data").write_text(f"{name}'s")
        site.module("tilera_boot", boards=[board], state="stopped", timeout=10, instance=name)
    for board in (0, 1):
        for point in reversed(mounts_below(str(folder(site, board)))):
            unmount(point)
    return site


def swap(site):
    a, b, aside = folder(site, 0) / "root.ext4", folder(site, 1) / "root.ext4", site.folder / "aside"
    a.rename(aside)
    b.rename(a)
    aside.rename(b)


def copy(site):
    """A copy of bob's root in the place of jackie's."""
    (folder(site, 0) / "root.ext4").rename(site.folder / "kept")
    command = ["cp", "-a", "--sparse=always", folder(site, 1) / "root.ext4", folder(site, 0) / "root.ext4"]
    subprocess.run(command, check=True)


def numbers(site):
    """The inode numbers of the files with roots."""
    found = [folder(site, board) / "root.ext4" for board in (0, 1)]
    return {path.stat().st_ino for path in found if path.exists()}


def is_refused(results):
    return any(result.get("failed") for result in results)


def test_the_root_of_another_does_not_go_with_the_end_of_an_instance(two):
    """Lost: all that bob has, by the end of jackie's."""
    swap(two)
    before = numbers(two)
    results = two.terminate("jackie")
    assert numbers(two) == before, results
    assert is_refused(results)


@pytest.mark.parametrize("how", [swap, copy])
def test_the_root_of_another_is_not_booted(two, how):
    """Lost: all that bob has, to jackie, whose board boots it, with jackie's key in it."""
    how(two)
    results = two.provision("jackie")
    data = folder(two, 0) / "root" / "data"
    assert not (data.exists() and data.read_text() == "bob's"), [result.get("msg") for result in results]
    assert is_refused(results)
    assert two.outlets()["1"] == "off"


def test_roots_in_each_others_places_are_said(two):
    """Lost: that it is so, until one of them is ended."""
    swap(two)
    said = two.module("board_reconcile", timeout=10)
    found = [one["found"] for board in said["boards"] for one in board["found"]]
    assert any("root" in text for text in [*found, *said["others"]]), found


def test_a_file_back_in_its_place_is_taken_as_before(two):
    swap(two)
    assert is_refused(two.provision("jackie"))
    swap(two)
    assert not is_refused(two.provision("jackie"))
    assert (folder(two, 0) / "root" / "data").read_text() == "jackie's"


def test_roots_of_earlier_releases_are_taken_as_they_are(site, monkeypatch):
    """Lost: all instances that were made before roots had a UUID that says whose they are."""
    with monkeypatch.context() as patch:
        patch.setattr(roots, "make_empty", lambda path, _uuid: make_empty(path))
        assert not is_refused(site.provision("jackie"))
    assert UUID(uuid_of(str(folder(site, 0) / "root.ext4"))).version == 4
    site.module("tilera_boot", boards=[0], state="stopped", timeout=10, instance="jackie")
    for point in reversed(mounts_below(str(folder(site, 0)))):
        unmount(point)
    assert not is_refused(site.provision("jackie"))
    assert not is_refused(site.terminate("jackie"))
    assert not folder(site, 0).exists()
