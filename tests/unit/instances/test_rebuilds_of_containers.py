# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rebuild of a container that cannot be done, as guests/test_rebuilds_that_cannot_be.py has it of guests. If these
fail, it is refused after all that its tenant had is gone.

Tests compute_host/container.py.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle, reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.container import ContainerWork
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import file_system
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import (
    disks,
    id_maps,
    new_container,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import image_removal
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_own_roots import top
from ansible_collections.hetero.compute.tests.unit.killed_at import killed_at


@pytest.fixture
def one(site):
    site.claim("a", flavor=SMALL, owner="jo", key=KEY)
    site.up("a")
    top(site, "a").joinpath("own").write_text("a's")
    site.do(lifecycle.stopped, "a")
    disks.unmount(site.container("a"), site.here.disks)
    return site


def kept(site):
    """What jo wrote, as it stands in the file of the root."""
    argv = ["debugfs", "-R", "cat /root/own", disks.file_of(site.container("a"))]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout


def refused(site, words, **wanted):
    """Nothing is lost by a rebuild, which says what is wrong, also in a dry run."""
    for check in (True, False):
        result = site.do(lifecycle.rebuilt, "a", check=check, **(wanted or {"fresh": True}))
        assert result.get("failed"), (check, result)
        assert words in result["msg"]
        assert kept(site) == "a's"


def test_no_ids_are_left(one, monkeypatch):
    """Lost: all that jo had, where containers are unprivileged from now on, and root has no more ids in /etc/subuid."""
    one.config.write_text(json.dumps(dict(one.settings, unprivileged=True)))
    monkeypatch.setattr(id_maps, "free_range", lambda taken, wish: None)
    refused(one, "no 65536 ids are left")


def test_no_file_of_its_size_can_be_made(one, monkeypatch):
    """Lost: all that jo had, where the file system has no files of that size."""
    real = os.ftruncate

    def limited(file, size):
        if size >= 1 << 30:
            raise OSError(27, "File too large")
        real(file, size)

    monkeypatch.setattr(os, "ftruncate", limited)
    refused(one, "File too large")


def test_the_image_has_no_room_in_its_disk(one, monkeypatch):
    """Lost: all that jo had, to an image that is larger than the disk of the flavor. (18 MiB stand for its GiB.)"""
    real = os.ftruncate
    with monkeypatch.context() as patch:
        patch.setattr(file_system, "SURE", 1 << 30)
        patch.setattr(os, "ftruncate", lambda file, size: real(file, min(size, 18 << 20)))
        refused(one, "see whether image and keys have room in its 1 GiB (local_gb of its flavor)")
    result = one.do(lifecycle.rebuilt, "a", fresh=True)
    assert result["instances"][0]["state"] == "running", result.get("msg")


@pytest.fixture
def other(one, image, tmp_path):
    """Takes in a second image, to whose root something is added before."""

    def take_in(add):
        folder = tmp_path / "other"
        shutil.copytree(image, folder, symlinks=True)
        add(folder / "root")
        one.take_in(folder, "other")

    return take_in


def test_the_image_has_more_files_than_its_disk_can_hold(one, other):
    """Lost: all that jo had, to an image with room enough for its bytes and not for its many small files."""

    def many(root):
        for number in range(66):
            folder = root / "many" / str(number)
            folder.mkdir(parents=True)
            for file in range(1000):
                os.close(os.open(folder / str(file), os.O_CREAT | os.O_WRONLY))

    other(many)
    refused(one, "see whether image and keys have room in its 1 GiB (local_gb of its flavor)", image="other")


def test_the_image_has_nothing_that_starts(one, other):
    """Lost: all that jo had, to an image that lost its files, or is a mere archive of data."""
    other(lambda root: [root.joinpath(init).unlink(missing_ok=True) for init in new_container.INITS])
    refused(one, "image other: has no /sbin/init, which a container starts", image="other")


def test_holes_and_second_names_of_files_take_no_room(one, other, monkeypatch):
    """Lost: the rebuild, on a host that has room for it: lastlog is as long as the largest user id is high."""

    def sparse(root):
        with open(root / "lastlog", "wb") as file:
            file.truncate(400 << 20)
        file = root / "large"
        file.write_bytes(os.urandom(40 << 20))
        for number in range(10):
            os.link(file, root / f"large-{number}")

    other(sparse)
    room = SimpleNamespace(f_bfree=(300 << 20) // 4096, f_frsize=4096, f_bavail=(300 << 20) // 4096)
    monkeypatch.setattr(os, "statvfs", lambda path: room)
    result = one.do(lifecycle.rebuilt, "a", image="other")
    assert result["instances"][0]["state"] == "running", result.get("msg")


def test_what_is_printed_of_a_rebuild_that_was_cut_off_ends_it(one, other):
    """Lost: the way on, to a command that asks for another image than the rebuild did, and is refused."""
    other(lambda root: (root / "more").write_text("more"))
    killed_at(new_container, "create", lambda: one.do(lifecycle.rebuilt, "a", image="other"))
    with one.host() as host:
        found = str(reconciliation.reconcile(host, Change(False), 5.0)["instances"][0]["found"])
    assert "provision_instance -e instance=a -e flavor=small -e image=other makes it" in found
    one.claim("a", flavor=SMALL, owner="jo", key=KEY, image="other")
    assert one.up("a")["instances"][0]["state"] == "running"


@pytest.mark.parametrize(("was", "now"), [("stopped", "stopped"), ("starting", "error")])
def test_the_image_is_removed_while_it_is_looked_at(one, other, monkeypatch, was, now):
    """Lost: all that jo had, to the minutes in which a large image is tried: nothing names it yet."""
    with one.host() as host:
        if was != "stopped":
            host.store.put("a", state=was)
    other(lambda root: (root / "more").write_text("more"))
    real = ContainerWork.must_be_makeable

    def then_removed(work, found):
        real(work, found)
        with one.host() as host:
            image_removal.remove(host.images, "other", host.store.claims, {}, Change(False), Deadline(20))

    before = one.info(instance="a")["instances"][0]
    with monkeypatch.context() as patch:
        patch.setattr(ContainerWork, "must_be_makeable", then_removed)
        result = one.do(lifecycle.rebuilt, "a", image="other")
    assert "other: no such image in the store" in result["msg"]
    assert kept(one) == "a's"
    after = one.info(instance="a")["instances"][0]
    assert (after["image"], after["state"]) == (before["image"], now)
    assert one.up("a")["instances"][0]["state"] == "running"


@pytest.mark.parametrize("verb", ["rebuilt", "absent"])
def test_something_is_mounted_in_its_folder(one, verb):
    """Lost: a container's configuration, so that it does not start again, by a verb that is refused."""
    inside = Path(one.container("a").folder) / "backup"
    inside.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", inside], check=True)
    try:
        (inside / "kept").write_text("kept")
        result = one.do(getattr(lifecycle, verb), "a", **({"fresh": True} if verb == "rebuilt" else {}))
        assert f"{inside}: is mounted in it: unmount it, then run this again" in result["msg"]
        assert one.container("a").defined
        assert kept(one) == "a's"
        assert (inside / "kept").exists()
    finally:
        subprocess.run(["umount", inside], check=True)
    assert one.up("a")["instances"][0]["state"] == "running"
