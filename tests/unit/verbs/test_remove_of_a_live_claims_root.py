# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stopped instance's root was moved to another number. If these fail, what is printed for it there removes the only
root of a claim that is alive.
"""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back
from ansible_collections.hetero.compute.tests.unit.verbs.test_instance_on_boards import root, verb


@pytest.fixture
def moved(site):
    """Call it with a number to move the root of Jackie, who is off, there; it returns the new folder."""

    def move(number):
        assert not any(result.get("failed") for result in site.provision())
        (root(site) / "root" / "data").write_text("work")
        assert not verb(site, "stopped").get("failed")
        for point in reversed(mounts_below(str(site.state / "board-roots"))):
            unmount(point)
        return (site.state / "board-roots" / "fs_0").rename(site.state / "board-roots" / f"fs_{number}")

    return move


def comes_back(site, text):
    """The command that a text prints brings Jackie's root to its place, with her work in it."""
    subprocess.run(["sh", "-ec", text.split(f"run on {THIS_NODE}: ")[1]], check=True, timeout=600)
    assert not verb(site).get("failed")
    assert (root(site) / "root" / "data").read_text() == "work"


@pytest.mark.parametrize("database", ["there", "older"])
def test_it_is_not_removed_with_a_board_that_is_gone(site, moved, database):
    copy = site.copy_when_off()
    aside = moved(77)
    if database == "older":
        put_back(site, copy)
    said = reconcile(site)
    assert [text for text in said["others"] if "removes it" in text] == []
    [text] = [text for text in said["others"] if str(aside) in text]
    assert "is the root of jackie, who has board0, and none of that claim lies in its place" in text
    if database == "there":
        assert found(said)[0][0] == text[len("folder ") :]
    result = reconcile(site, remove=["board77"])
    assert (aside / "root.ext4").exists(), result
    assert f"{aside}: is the root of jackie, who has board0" in result["msg"]
    if database == "there":
        comes_back(site, text)


def test_nor_is_it_cleaned_from_the_place_of_a_free_board(site, moved):
    aside = moved(1)
    (site.state / "board-roots" / "fs_0").mkdir()
    [(text, _done)] = found(reconcile(site), 1)
    assert text.startswith(f"{aside}: is the root of jackie, who has board0")
    assert f"{aside} is the root of jackie" in site.module("board_info")["boards"][1]["note"]
    for module, state in (("tilera_boot", "stopped"), ("board_image", "absent")):
        result = site.module(module, boards=[1], state=state)
    assert (aside / "root.ext4").exists(), result["boards"]
    assert result["msg"] == text
    comes_back(site, text)


def test_the_files_of_a_root_on_a_disk_stay_too(site, moved):
    aside = moved(77)
    made = json.loads((aside / "made.json").read_text())
    shutil.rmtree(aside)
    folder = site.state / "disks" / "fs_77"
    folder.mkdir(parents=True)
    words = dict(claim=made["claim"], image=made["image"], own_sha256="", host_key="")
    (folder / "made.json").write_text(json.dumps(words))
    assert f"{folder}: is the root of jackie" in reconcile(site, remove=["board77"])["msg"]
    assert (folder / "made.json").exists()


@pytest.mark.parametrize("why", ["ended", "copied"])
def test_what_is_nobodys_or_a_copy_goes_by_the_word(site, moved, why):
    """Lost: the room that it takes, for ever."""
    aside = moved(77)
    if why == "copied":
        copied = site.state / "board-roots" / "fs_0"
        subprocess.run(["cp", "--archive", "--sparse=always", aside, copied], check=True)  # a full one fills the disk
    else:
        assert not site.terminate("jackie")[-1].get("failed")
    assert any("remove=board77 removes it" in text for text in reconcile(site)["others"])
    assert reconcile(site, remove=["board77"])["removed"] == ["board77"]
    assert not aside.exists()
