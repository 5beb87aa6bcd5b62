# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks of guests in each other's places, and copies of guests' folders, as test_own_roots.py has it of containers.

If these fail, a guest runs with another tenant's disk, or that goes with its end.
"""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.tests.in_time import in_time
from ansible_collections.hetero.compute.tests.unit.instances.guests.conftest import KG1

BARE = dict(KG1, extra_specs={"hypervisor": "s== kvm"})


@pytest.fixture
def two(site):
    """Guests a of jo and b of bo, stopped, with something of their own on their disks."""
    for name, owner in (("a", "jo"), ("b", "bo")):
        site.provision(name, flavor=BARE, owner=owner)
        site.do("stopped", name)
        with disk(site, name).open("ab") as file:
            file.write(f"{name}'s own".encode())
    return site


def folder(site, name):
    return site.folder / "guests-files" / name


def disk(site, name):
    return folder(site, name) / "disk.raw"


def whose(path):
    return path.read_bytes()[-7:].decode(errors="replace") if path.exists() else None


def swap(site):
    a, b, aside = disk(site, "a"), disk(site, "b"), site.folder / "aside"
    a.rename(aside)
    b.rename(a)
    aside.rename(b)


def looked(site):
    with site.host() as host:
        done = reconcile(host, Change(False), 5.0)
    return {look["instance"]: [one["found"] for one in look["found"]] for look in done["instances"]}, done["others"]


@pytest.mark.parametrize(("verb", "options"), [("absent", {}), ("rebuilt", {"fresh": True})])
def test_the_disk_of_another_is_not_removed(two, verb, options):
    """Lost: bo's only disk, by the end of jo's guest, after two files were put back into each other's places."""
    swap(two)
    said = two.do(verb, "a", **options)
    left = {whose(disk(two, name)) for name in "ab"}
    assert left == {"a's own", "b's own"}, f"{verb} a: {said}"
    assert said["failed"]


def test_disks_in_each_others_places_are_said(two):
    """Lost: that it is so, until one of them is ended."""
    swap(two)
    found, _others = looked(two)
    assert found["a"] != []
    assert found["b"] != []


@pytest.mark.parametrize("verb", ["running", "rebooted"])
def test_a_copy_of_anothers_disk_is_not_started(two, verb):
    """Lost: all that bo has in b, to a guest of jo's; and that it runs, behind an error about a host key."""
    disk(two, "a").rename(two.folder / "kept")
    shutil.copy2(disk(two, "b"), disk(two, "a"))
    said = two.do(verb, "a", timeout=20)
    assert not two.virt.domain("a").active, said["msg"]


def test_a_copy_of_an_ended_guests_disk_is_not_started(two):
    """Lost: all that bo had in b, to a guest of jo's, once nothing of b is left to compare the copy with."""
    own, record = disk(two, "a"), folder(two, "a") / "disk.uuid"
    kept = own.rename(two.folder / "kept")
    shutil.copy2(disk(two, "b"), own)
    two.do("absent", "b")
    said = two.do("running", "a", timeout=20)
    assert f"{own}: this is not the disk that was made for a, but another file with another UUID" in said["msg"]
    assert f"remove {record}; then run this again" in said["msg"]
    assert not two.virt.domain("a").active
    kept.rename(own)
    assert two.do("running", "a")["instances"][0]["state"] == "running"


def test_a_guests_own_disk_from_a_backup_is_started_as_printed(two):
    """Lost: a guest that gave its file system another UUID, and whose disk was put back from a backup."""
    own = disk(two, "a")
    shutil.copy2(own, two.folder / "backup")
    os.replace(two.folder / "backup", own)
    subprocess.run(["tune2fs", "-f", "-U", "random", own], check=True, capture_output=True, input=b"y\n")
    assert two.do("running", "a", timeout=20)["failed"]
    (folder(two, "a") / "disk.uuid").unlink()
    assert two.do("running", "a")["instances"][0]["state"] == "running"


def test_a_copy_of_a_guests_folder_is_not_said_to_be_the_guest(two):
    """Lost: what a guest has written since a copy of its folder was made, to who moves the copy "back" as printed."""
    shutil.copytree(folder(two, "a"), folder(two, "a old"))
    found, others = looked(two)
    assert found["a"] == []
    assert "a old is the guest of a, moved" not in " ".join(others)
    assert "move it back" not in " ".join(others)


def test_a_pipe_in_place_of_a_guests_description_is_waited_for_by_nobody(two):
    """Lost: a verb that never ends, with the instance's lock."""
    own = folder(two, "b") / "domain.xml"
    own.rename(two.folder / "description")
    os.mkfifo(own)
    with in_time(60):
        for verb in ("running", "stopped", "rebooted"):
            assert two.do(verb, "b", timeout=20)["failed"]


def test_what_cannot_be_read_is_not_said_to_be_gone(two):
    """Lost: b's disk, to a rebuild that is printed as the way for one whose description is "gone"."""
    own = folder(two, "b") / "domain.xml"
    own.rename(two.folder / "description")
    own.symlink_to("domain.xml")
    said = two.do("running", "b", timeout=20)
    assert said["failed"]
    assert "is gone" not in said["msg"]
    assert "fresh=true" not in said["msg"]
