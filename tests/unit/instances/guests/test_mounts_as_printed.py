# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The line that is printed of a guest's folder that is a mount point, typed as printed, and typed again after it was
stopped.
"""

from __future__ import annotations

import os
import re
import subprocess

import pytest

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


def printed(site):
    said = site.do("absent", "a")["msg"]
    return said, re.search(r"folder \((.*?)\); where that was cut off", said)


def typed(line):
    return subprocess.run(["bash", "-c", line[1]], check=False, capture_output=True).returncode


def is_whole(site, folder):
    assert not is_mounted(folder)
    assert (folder / ".notes").read_text() == "mine"
    assert not folder.with_name("a.new").exists()
    assert not folder.with_name("a.all").exists()
    assert site.do("running", "a").get("msg") is None


def test_all_of_it_comes(one):
    """Lost: what begins with a dot, in what is unmounted; and each way on, where a name has a blank."""
    site, folder = one
    big = bind(site, folder)
    assert typed(printed(site)[1]) == 0
    assert os.listdir(big) == []
    is_whole(site, folder)


def test_where_it_is_in_use(one):
    """Lost: the way on for a guest whose files are moved already, and whose folder is still in use."""
    site, folder = one
    bind(site, folder)
    line = printed(site)[1]
    shell = subprocess.Popen(["sleep", "60"], cwd=folder)
    try:
        assert typed(line) != 0
    finally:
        shell.kill()
        shell.wait()
    for verb in ("running", "absent"):
        said = site.do(verb, "a")["msg"]
        assert "rebuild" not in said
    assert "is a mount point" in said
    assert typed(line) == 0
    is_whole(site, folder)


def test_what_the_mount_hid_replaces_nothing(one):
    """Lost: what the guest has written since its folder was copied, to who types the line again."""
    site, folder = one
    big = bind(site, folder)
    subprocess.run(["umount", folder], check=True)
    (folder / ".notes").write_text("older")
    subprocess.run(["mount", "--bind", big, folder], check=True)
    line = printed(site)[1]
    for _time in range(2):
        assert typed(line) != 0
    assert (folder.with_name("a.all") / ".notes").read_text() == "mine"


def test_where_two_are_mounted(one):
    """Lost: the newer of two, under the files of the older one that is mounted below it."""
    site, folder = one
    bind(site, folder)
    subprocess.run(["mount", "--bind", site.folder / "big", folder], check=True)
    said, line = printed(site)
    assert line is None
    assert f"umount {folder} takes the upper one" in said.replace("'", "")
    subprocess.run(["umount", folder], check=True)
    assert typed(printed(site)[1]) == 0
    is_whole(site, folder)
