# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers whose configuration or folder is gone: moved by hand, damaged, or on a file system that is not mounted.
If these fail, a root that somebody works in is removed, or a container runs on for nobody.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle, reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL

GONE = "ml-8/config: is gone, and ml-8 has run: nothing is made in its place: "
#: What is said of the way, by what is elsewhere: its folder is found where it lies.
WAYS = {
    "configuration": "put it back (is its file system mounted?)",
    "folder": "lxc/away is the container of ml-8, moved: not touched: end nothing of it, and move it back to ",
}
RUNS = "ml-8/config: is gone, and its container runs: put it back, or end its monitor (ss -xlp | grep "


@pytest.fixture
def kept(site):
    """ml-8 runs, and has written something to its root."""
    site.claim(flavor=SMALL)
    site.up()
    (Path(site.container().folder) / "rootfs" / "own").write_text("ml-8's own")
    return site


@contextmanager
def away(site, what):
    """Its configuration, or all of its folder, is elsewhere."""
    box = site.container()
    path = Path(box.config_file if what == "configuration" else box.folder)
    path.rename(path.with_name("away"))
    try:
        yield
    finally:
        path.with_name("away").rename(path)


def is_kept(site):
    return (Path(site.container().folder) / "rootfs" / "own").exists()


@pytest.mark.parametrize("what", ["configuration", "folder"])
def test_a_container_that_is_gone_is_not_made_anew(kept, what):
    """Lost: a root, by a start, for the file beside it; or the word that the containers' disk is not mounted."""
    kept.do(lifecycle.stopped)
    disks.unmount(kept.container(), kept.here.disks)
    with away(kept, what):
        verbs = (lifecycle.running, lifecycle.rebooted, lifecycle.stopped)
        for verb, check in [(verb, check) for verb in verbs for check in (True, False)]:
            said = kept.do(verb, check=check)
            assert said["failed"], said
            assert GONE in said["msg"]
            assert WAYS[what] in said["msg"]
        with kept.host() as host:
            (seen,) = reconciliation.reconcile(host, Change(), 5.0)["instances"]
        assert [GONE in one["found"] and WAYS[what] in one["found"] for one in seen["found"]] == [True]
    assert kept.up()["instances"][0]["state"] == "running"
    assert is_kept(kept)


@pytest.mark.parametrize("what", ["configuration", "folder"])
def test_a_container_that_runs_without_its_configuration_is_not_called_ended(kept, what):
    """Lost: its GPUs and address, to the next who asks, while it runs on under another name."""
    with away(kept, what):
        assert GONE in kept.do(lifecycle.stopped)["msg"]
        for said in (kept.do(lifecycle.rebuilt, fresh=True), kept.do(lifecycle.absent)):
            assert said["failed"], said
            assert RUNS in said["msg"]
        assert os.path.exists(f"{kept.lxcpath}/{'away' if what == 'folder' else 'ml-8'}/rootfs/own")
    assert [one["instance"] for one in kept.info()["instances"]] == ["ml-8"]
    assert kept.container().running
    assert kept.do(lifecycle.absent)["changed"]
    assert kept.nothing_is_left()


def test_what_is_given_back_as_surplus_may_have_lost_its_configuration(kept):
    """Lost: a root, to the other play of its owner that got too little."""
    kept.do(lifecycle.stopped)
    with away(kept, "configuration"):
        said = kept.do(lifecycle.absent, never_ran=True)
        assert "runs, or ran, since it was looked at: nothing of it is taken back" in said["msg"]
    assert kept.up()["instances"][0]["state"] == "running"
    assert is_kept(kept)


def test_one_that_runs_without_the_file_of_its_disk_is_not_rebooted(kept):
    """Lost: all that is in it: the file that somebody removed is there while it runs, and gone with its end."""
    path = Path(disks.file_of(kept.container()))
    path.rename(path.with_name("away"))
    said = kept.do(lifecycle.rebooted)["msg"]
    assert "root.ext4: is missing, and with it the container's root: put the file back" in said
    assert kept.container().running
    path.with_name("away").rename(path)
    assert not kept.do(lifecycle.rebooted).get("failed")
    assert is_kept(kept)
