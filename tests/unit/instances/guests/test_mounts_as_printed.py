# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way that is printed of a guest's folder that is a mount point, typed as printed, and again after it stopped."""

from __future__ import annotations

import os
import subprocess

import pytest

from ansible_collections.hetero.compute.tests.unit.files.printed_moves import followed, steps, typed
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import BARE


@pytest.fixture(params=["guests-files", "my guests"])
def one(site, request):
    """(the site, the folder of guest a)."""
    site.configure(guests_folder=str(site.folder / request.param))
    site.provision("a", flavor=BARE)
    site.do("stopped", "a")
    folder = site.folder / request.param / "a"
    yield site, folder
    while os.path.ismount(folder) or is_mounted(folder):
        subprocess.run(["umount", "-l", folder], check=True)


def is_mounted(folder):
    return subprocess.run(["mountpoint", "-q", folder], check=False).returncode == 0


def bind(site, folder):
    big = site.folder / "big"
    folder.rename(big)
    (big / ".notes").write_text("mine")
    folder.mkdir()
    subprocess.run(["mount", "--bind", big, folder], check=True)
    return big


def said(site):
    return site.do("absent", "a")["msg"]


def is_whole(site, folder):
    assert not is_mounted(folder)
    assert (folder / ".notes").read_text() == "mine"
    assert sorted(os.listdir(folder.parent)) == ["a"]
    return site.do("running", "a").get("msg") is None


def test_all_of_it_comes(one):
    """Lost: what begins with a dot; and each way on, where a name has a blank."""
    site, folder = one
    bind(site, folder)
    assert followed(said(site))
    assert is_whole(site, folder)


def test_where_it_is_in_use(one):
    """Lost: the way on for a guest whose files are copied already, and whose folder is still in use."""
    site, folder = one
    bind(site, folder)
    copy, unmount, put = steps(said(site))
    assert typed(copy).returncode == 0
    shell = subprocess.Popen(["sleep", "600"], cwd=folder)
    try:
        assert typed(unmount).returncode != 0
        assert typed(put).returncode != 0
    finally:
        shell.kill()
        shell.wait()
    assert "is a mount point" in said(site)
    assert f"{folder}.new is a copy of {folder}, or half of one" in site.do("running", "a")["msg"]
    assert followed(said(site))
    assert is_whole(site, folder)


def test_where_two_are_mounted(one):
    """Lost: the newer of two, under the files of the older one that is mounted below it."""
    site, folder = one
    bind(site, folder)
    subprocess.run(["mount", "--bind", site.folder / "big", folder], check=True)
    told = said(site)
    assert "cp -a" not in told
    assert f"umount {folder} takes the upper one" in told.replace("'", "")
    subprocess.run(["umount", folder], check=True)
    assert followed(said(site))
    assert is_whole(site, folder)
