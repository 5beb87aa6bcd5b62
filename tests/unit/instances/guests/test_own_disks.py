# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The disk of one guest in the place of another's, as tests/unit/instances/test_own_roots.py has it of containers. If
these fail, a tenant's guest is started with another tenant's data, or that goes with the end of a guest not its own.

Tests hypervisors/libvirt/own_disk.py.
"""

from __future__ import annotations

import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.file_system import uuid_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import own_disk
from ansible_collections.hetero.compute.tests.unit.instances.guests.conftest import KG1

BARE = dict(KG1, extra_specs={"hypervisor": "s== kvm"})
COPY = "a/disk.raw: this is a copy of the disk of guest b, or has taken its UUID: not a's: remove nothing: move"
ANOTHERS = "a/disk.raw: this is the disk of guest b, not of a: put each back in its own place (mv"
SAME = "/disk.raw: this and the disk of guest {other} are copies of one another, and nobody can tell which is the first"


@pytest.fixture
def two(site):
    """Guests a of jo and b of bo, which are stopped."""
    for name, owner in (("a", "jo"), ("b", "bo")):
        assert not site.provision(name, flavor=BARE, owner=owner).get("failed")
        site.do("stopped", name)
    return site


def path(site, name, file="disk.raw"):
    return site.folder / "guests-files" / name / file


def copy(site, source, target):
    subprocess.run(["cp", "-a", str(path(site, source)), str(path(site, target))], check=True)


def swap(site):
    path(site, "a").rename(path(site, "a", "x"))
    path(site, "b").rename(path(site, "a"))
    path(site, "a", "x").rename(path(site, "b"))


def give_uuid(site, name, uuid):
    """What root of a guest can do to its disk."""
    subprocess.run(["tune2fs", "-U", uuid, str(path(site, name))], check=True, capture_output=True)


def runs(site, name):
    done = site.do("running", name)
    assert done["instances"][0]["state"] == "running", done["msg"]
    return not site.do("stopped", name).get("failed")


def is_active(site, name):
    domain = site.virt.domain(name)
    return domain.defined and domain.active


def found_by_reconcile(site, name):
    with site.host() as host:
        looks = reconcile(host, Change(False), 5.0)["instances"]
    return [one["found"] for look in looks if look["instance"] == name for one in look["found"]]


@pytest.mark.parametrize("over", [True, False])
def test_a_guest_is_not_started_with_the_copy_of_anothers_disk(two, over):
    """Lost: what bo has on his disk, to jo, whose guest was started with a copy of it.

    :param over: whether it was written into the guest's own file, or put in its place.
    """
    kept = path(two, "a").read_bytes()
    if not over:
        path(two, "a").unlink()
    copy(two, "b", "a")
    assert any(COPY in found for found in found_by_reconcile(two, "a"))
    for verb in ("running", "rebooted"):
        assert COPY in two.do(verb, "a")["msg"]
        assert not is_active(two, "a")
    assert COPY in two.provision("a", flavor=BARE, owner="jo", check=True)["msg"]
    assert runs(two, "b")
    path(two, "a").write_bytes(kept)
    assert runs(two, "a")


def test_disks_in_each_others_places_are_neither_started_nor_removed(two):
    """Lost: bo's only disk, to the end of jo's guest, in whose place it lay; or to jo, whose guest was started."""
    swap(two)
    for verb, options in (("running", {}), ("rebooted", {}), ("rebuilt", dict(fresh=True)), ("absent", {})):
        assert ANOTHERS in two.do(verb, "a", **options)["msg"]
        assert not is_active(two, "a")
    swap(two)
    assert runs(two, "a")
    assert runs(two, "b")
    path(two, "b").rename(path(two, "a"))
    path(two, "b", "disk.uuid").rename(path(two, "a", "disk.uuid"))
    assert ANOTHERS in two.do("absent", "a")["msg"]
    assert path(two, "a").exists()


def test_guests_of_an_earlier_release_are_taken_as_they_are_and_known_from_then_on(two):
    """Lost: a guest, to an upgrade; or, after it, what is on another's disk."""
    before = {name: path(two, name, own_disk.RECORD).read_text() for name in "ab"}
    for name in "ab":
        path(two, name, own_disk.RECORD).unlink()
    two.do("running", "a", check=True)
    assert not path(two, "a", own_disk.RECORD).exists(), "a look changes nothing"
    assert runs(two, "a")
    found_by_reconcile(two, "b")
    assert {name: path(two, name, own_disk.RECORD).read_text() for name in "ab"} == before
    path(two, "b", own_disk.RECORD).unlink()
    copy(two, "b", "a")
    assert COPY in two.do("running", "a")["msg"]
    assert runs(two, "b")
    assert path(two, "b", own_disk.RECORD).read_text() == before["b"]


def test_of_two_alike_of_an_earlier_release_nobody_can_tell_which_is_the_first(two):
    """Lost: bo's guest, for ever: it was written down that its disk is jo's, who had the copy and came first."""
    kept = path(two, "a").read_bytes()
    for name in "ab":
        path(two, name, own_disk.RECORD).unlink()
    copy(two, "b", "a")
    for name, other in ("ab", "ba"):
        for verb in ("stopped", "running"):
            said = two.do(verb, name)
        assert SAME.format(other=other) in said["msg"]
        assert not path(two, name, own_disk.RECORD).exists()
    path(two, "a").write_bytes(kept)
    assert runs(two, "a")
    assert runs(two, "b")


def test_what_a_guest_does_to_its_own_disk_harms_nobody_else_and_keeps_it_not_from_its_end(two):
    """Lost: a guest, to a new UUID of its own; or its cards, for ever, to who gave it that of another guest."""
    give_uuid(two, "a", "random")
    assert runs(two, "a")
    give_uuid(two, "a", uuid_of(str(path(two, "b"))))
    assert COPY in two.do("running", "a")["msg"]
    assert runs(two, "b")
    own = path(two, "a", own_disk.RECORD).read_text()
    path(two, "a", own_disk.RECORD).write_text(uuid_of(str(path(two, "a"))) + own[36:])  # an operator's word
    assert runs(two, "a")
    path(two, "a", own_disk.RECORD).write_text(own)
    assert not two.do("absent", "a").get("failed")
    assert not path(two, "a").exists()
    assert runs(two, "b")


def test_a_guest_whose_files_were_copied_to_another_file_system_is_its_own(two):
    """Lost: guests, to a bigger disk for their folder; or the end of one, to numbers of files that are no more."""
    parent = two.folder / "guests-files"
    subprocess.run(["cp", "-a", str(parent), str(two.folder / "new")], check=True)
    shutil.rmtree(parent)
    (two.folder / "new").rename(parent)
    for name in "ab":
        assert runs(two, name)
    give_uuid(two, "a", uuid_of(str(path(two, "b"))))
    assert not two.do("absent", "a").get("failed")
