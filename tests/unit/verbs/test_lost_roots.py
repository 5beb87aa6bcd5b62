# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A root whose file is gone from the proxy. If these fail, its tenant loses work that was still there, or an operator
hours of looking at a disk that is sound.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_instance_on_boards import REQUEST, root, verb


@pytest.fixture
def file(jackie):
    """The file of jackie's root."""
    (root(jackie) / "root" / "data").write_text("work")
    return root(jackie).parent / "root.ext4"


def unmounted(site):
    """Her root, as a restart of the proxy's machine leaves it."""
    assert verb(site, "stopped")["changed"]
    for point in reversed(mounts_below(str(site.state / "board-roots"))):
        unmount(point)


@pytest.mark.parametrize("check", [True, False])
def test_what_is_missing_is_said_and_nothing_is_changed(jackie, file, check):
    unmounted(jackie)
    aside = file.rename(jackie.folder / "aside.ext4")
    there = jackie.what_is_there()
    for given in ({}, REQUEST):
        result = verb(jackie, check=check, **given)
        assert (result["failed"], result["changed"], result["diff"]) == (True, False, [])
        assert result["msg"].startswith(f"board0: jackie ran from {file}, which is not there: nothing is made: mount")
        assert "or bring it back; or rebuild the instance for a new root, or terminate it" in result["msg"]
    result = reconcile(jackie, check=check)
    assert not result["changed"]
    ((said, done),) = found(result)
    assert f"jackie ran from {file}, which is not there" in said
    assert done is None
    assert jackie.what_is_there() == there
    aside.rename(file)
    assert not verb(jackie).get("failed")
    assert (root(jackie) / "root" / "data").read_text() == "work"


@pytest.mark.parametrize(("state", "given"), [("rebuilt", dict(fresh=True)), ("absent", {})])
def test_its_owner_s_word_leads_out_of_it(jackie, file, state, given):
    unmounted(jackie)
    file.unlink()
    result = verb(jackie, state, **given)
    assert not result.get("failed"), result
    assert jackie.what_is_there() == (jackie.running("jackie") if given else jackie.clean())


def test_one_that_never_ran_is_made_anew(site):
    """Nothing is lost with it."""
    claim = site.module("board_claim", instance="jackie", **REQUEST)
    assert not claim.get("failed"), claim
    image = dict(boards=[0], instance="jackie", image="debian")
    assert site.module("board_image", **image)["changed"]
    for point in reversed(mounts_below(str(site.state / "board-roots"))):
        unmount(point)
    (root(site).parent / "root.ext4").unlink()
    result = verb(site, **REQUEST)
    assert not result.get("failed"), result
    assert site.what_is_there() == site.running("jackie")


def test_what_is_mounted_still_is_said_and_can_be_saved(jackie, file):
    """It is there as long as nobody unmounts it: everything looks well until the proxy is restarted."""
    file.unlink()
    assert not verb(jackie, **REQUEST)["changed"]
    ((said, done),) = found(reconcile(jackie))
    assert said.startswith(f"{file} is gone, and what is in jackie's root stays only as long as it is mounted: ")
    assert done is None
    # as it says
    assert verb(jackie, "stopped")["changed"]
    (device,) = (
        path.parts[3]
        for path in Path("/sys/block").glob("loop*/loop/backing_file")
        if path.read_text().strip() == f"{file} (deleted)"
    )
    subprocess.run(["sync", "-f", root(jackie)], check=True, timeout=600)
    subprocess.run(["e2image", "-fra", f"/dev/{device}", file], check=True, timeout=600)
    for point in reversed(mounts_below(str(jackie.state / "board-roots"))):
        unmount(point)
    assert not verb(jackie).get("failed")
    assert (root(jackie) / "root" / "data").read_text() == "work"
    assert found(reconcile(jackie)) == []
