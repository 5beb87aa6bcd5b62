# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rebuild of a guest that cannot be done. If these fail, it is refused after all that its tenant had is gone.

Tests compute_host/guest_devices.py.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.guest import GuestWork
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import file_system
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import image_removal
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_disks_in_others_places import (
    disk,
    two,
    whose,
)

__all__ = ["two"]


def take_in(site, folders, name, kernel=True):
    folder = folders.mktemp(name)
    for part in ("etc/ssh", "root", "bin"):
        (folder / "root" / part).mkdir(parents=True)
    shutil.copy("/bin/busybox", folder / "root/bin/busybox")
    (folder / "root/large").write_bytes(os.urandom(20 << 20))
    if kernel:
        (folder / "kernel").write_bytes(b"kernel")
        (folder / "initrd").write_bytes(b"initrd")
    (folder / "image.json").write_text(json.dumps({"arch": platform.machine()}))
    with site.host() as host:
        host.images.import_image(str(folder), name)


def refused(site, words, **options):
    """Nothing is lost by a rebuild, which says what is wrong, also in a dry run."""
    for check in (True, False):
        said = site.do("rebuilt", "a", check=check, timeout=60, **options)
        assert said.get("failed"), (check, said)
        assert words in said["msg"]
        assert whose(disk(site, "a")) == "a's own"
        assert site.info(instance="a")["instances"][0]["state"] == "stopped"
    assert site.do("running", "a")["instances"][0]["state"] == "running"
    assert whose(disk(site, "a")) == "a's own"


def test_an_image_without_a_kernel(two, tmp_path_factory):
    """Lost: all that jo had, to the name of an image that is for containers."""
    take_in(two, tmp_path_factory, "box", kernel=False)
    refused(two, "image box has no kernel", image="box")


@pytest.mark.parametrize("part", ["initrd", "kernel"])
def test_a_damaged_image(two, tmp_path_factory, part):
    """Lost: all that jo had, to an image that `image` calls damaged, and that boots nowhere."""
    take_in(two, tmp_path_factory, "large")
    with two.host() as host:
        folder = Path(host.images.get("large").folder)
    folder.joinpath(part).chmod(0o644)
    os.truncate(folder / part, 1)
    refused(two, f"image large: is damaged ({part} is not there as it was imported)", image="large")


def test_an_image_that_is_removed_while_it_is_looked_at(two, tmp_path_factory, monkeypatch):
    """Lost: all that jo had, to the minutes in which a large image is tried: nothing names it yet."""
    take_in(two, tmp_path_factory, "large")
    real = GuestWork.must_be_makeable

    def then_removed(work, image):
        real(work, image)
        if not work.change.check:
            with two.host() as host:
                image_removal.remove(host.images, "large", host.store.claims, {}, Change(False), Deadline(20))

    with monkeypatch.context() as patch:
        patch.setattr(GuestWork, "must_be_makeable", then_removed)
        assert "large: no such image in the store" in two.do("rebuilt", "a", image="large")["msg"]
    assert whose(disk(two, "a")) == "a's own"
    assert two.do("running", "a")["instances"][0]["state"] == "running"
    assert whose(disk(two, "a")) == "a's own"


@pytest.mark.parametrize("verb", ["rebuilt", "absent"])
def test_something_is_mounted_in_its_folder(two, verb):
    """Lost: jo's disk and domain, by a verb that is refused afterwards, since the folder cannot be removed."""
    inside = disk(two, "a").parent / "backup"
    inside.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", inside], check=True)
    try:
        said = two.do(verb, "a", **({"fresh": True} if verb == "rebuilt" else {}))
        assert f"{inside}: is mounted in it: unmount it, then run this again" in said["msg"]
        assert whose(disk(two, "a")) == "a's own"
    finally:
        subprocess.run(["umount", inside], check=True)
    assert two.do("running", "a")["instances"][0]["state"] == "running"


def test_a_host_that_runs_no_guests_of_its_type(two):
    """Lost: all that jo had, where /dev/kvm is gone since the firmware was reset."""
    two.configure(domain_type="kvm")
    refused(two, "runs no guests of type kvm, only qemu", fresh=True)


def test_an_image_that_has_no_room_in_the_guests_disk(two, tmp_path_factory, monkeypatch):
    """Lost: all that jo had, to an image that is larger than the disk of the flavor. (10 MiB stand for its GiB.)"""
    take_in(two, tmp_path_factory, "large")
    with two.host() as host:
        host.store.put("a", local_gb=1)
    real = os.ftruncate
    monkeypatch.setattr(file_system, "SURE", 1 << 30)
    monkeypatch.setattr(os, "ftruncate", lambda file, size: real(file, min(size, 10 << 20)))
    refused(two, "choose an image that has room in the 1 GiB of its flavor (local_gb)", image="large")


def test_a_host_that_has_no_room_for_the_image(two, monkeypatch):
    """Lost: all that jo had, where the host's disk is full."""
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_bfree=0, f_frsize=4096, f_bavail=0))
    for check in (True, False):
        assert two.do("rebuilt", "a", check=check, fresh=True)["failed"]
        assert whose(disk(two, "a")) == "a's own"


@pytest.mark.parametrize("cut", [True, False])
def test_a_rebuild_that_was_cut_off_before_the_removal(two, tmp_path_factory, cut, monkeypatch):
    """Lost: all that jo had, by the next start, to an image that is none for guests any more."""
    work = "ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.guest.GuestWork"
    take_in(two, tmp_path_factory, "large")

    def killed(_work):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"{work}.remove", killed)
        with pytest.raises(KeyboardInterrupt):
            two.do("rebuilt", "a", image="large")
    assert whose(disk(two, "a")) == "a's own"
    if cut:
        two.configure(domain_type="kvm")
        assert "runs no guests of type kvm" in two.do("running", "a")["msg"]
        assert whose(disk(two, "a")) == "a's own"
    else:
        assert two.do("running", "a")["instances"][0]["state"] == "running"
        assert whose(disk(two, "a")) != "a's own"
