# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks that lie where a guest is made or ended, and were not made for it; and disks that lie elsewhere than where a
guest's own is to be. If these fail, a tenant's only disk is removed, runs as another's, or stays where it is said to be
gone.

Tests hypervisors/libvirt/guests.py.
"""

from __future__ import annotations

import re
import shutil
from xml.etree import ElementTree

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import guests
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import instance_states
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_disks_in_others_places import (
    BARE,
    disk,
    folder,
    looked,
    two,
    whose,
)

__all__ = ["two"]

STRANGE = "something lies there that was not made for {name}, and may be all that somebody has: move it away, then"


def redefine(site, name, old, new):
    """What `virsh edit` does to a path."""
    domain = site.virt.domain(name)
    text = ElementTree.tostring(domain.xml(False), encoding="unicode")
    assert str(old) in text
    domain.libvirt.define(text.replace(str(old), str(new)))


def test_a_guest_is_not_made_where_anothers_only_disk_lies(two):
    """Lost: b's only disk, which somebody put into a folder of nobody's, to who asks for an instance of that name."""
    folder(two, "c").mkdir()
    disk(two, "b").rename(disk(two, "c"))
    said = two.provision("c", flavor=BARE, owner="bo", timeout=20)
    assert whose(disk(two, "c")) == "b's own"
    assert "c/disk.raw: this is the disk of guest b, not of c" in said["msg"]
    disk(two, "c").rename(disk(two, "b"))
    assert two.do("running", "b")["instances"][0]["state"] == "running"
    assert two.do("running", "c")["instances"][0]["state"] == "running"


@pytest.mark.parametrize("what", ["disk", "line", "other"])
def test_a_guest_is_not_made_where_something_of_nobody_known_lies(two, what):
    """Lost: the only disk of a guest whose description and claim are lost; or what somebody keeps there."""
    with two.host() as host:
        host.store.release("b")
    two.virt.domain("b").undefine()
    (folder(two, "b") / "domain.xml").unlink()
    kept = disk(two, "b")
    if what == "line":
        (folder(two, "b") / "disk.uuid").unlink()
    elif what == "other":
        kept = kept.rename(folder(two, "b") / "kept.qcow2")
    for verb in ("provision", "running", "absent"):
        said = two.provision("b", flavor=BARE, owner="bo", timeout=20) if verb == "provision" else two.do(verb, "b")
        assert f"guests-files/b: {STRANGE.format(name='b')}" in said["msg"], verb
        assert whose(kept) == "b's own"
        assert two.info(instance="b")["instances"][0]["state"] == "claimed", verb  # its end was not begun
    folder(two, "b").rename(two.folder / "away")
    assert two.do("running", "b")["instances"][0]["state"] == "running"


@pytest.mark.parametrize("when", ["begin", "_copy", "_disk"])
def test_what_a_making_that_was_cut_off_left_is_made_anew(site, monkeypatch, when):
    """Lost: an instance that can neither be made nor ended, for what lies there is its own."""

    def killed(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(guests.own_disk if when == "begin" else guests, "_write" if when == "begin" else when, killed)
        with pytest.raises(KeyboardInterrupt):
            site.provision("a", flavor=BARE)
    assert site.do("running", "a")["instances"][0]["state"] == "running"


@pytest.mark.parametrize("verb", ["running", "absent"])
def test_anothers_disk_where_an_end_was_cut_off_is_kept(two, verb):
    """Lost: b's only disk, which lies where the end of a has left off."""
    with two.host() as host:
        host.store.put("a", state=instance_states.ENDING)
    two.virt.domain("a").undefine()
    (folder(two, "a") / "domain.xml").unlink()
    disk(two, "a").unlink()
    disk(two, "b").rename(disk(two, "a"))
    assert "this is the disk of guest b, not of a" in two.do(verb, "a", timeout=20)["msg"]
    assert whose(disk(two, "a")) == "b's own"


def test_a_disk_that_is_not_started_goes_not_with_the_end(two):
    """Lost: the only disk of an ended guest, to the end of who has it in place of the own one."""
    disk(two, "a").rename(two.folder / "kept")
    shutil.copy2(disk(two, "b"), two.folder / "only")
    two.do("absent", "b")
    (two.folder / "only").rename(disk(two, "a"))
    for verb in ("running", "absent"):
        assert "this is not the disk that was made for a" in two.do(verb, "a", timeout=20)["msg"]
        assert whose(disk(two, "a")) == "b's own"
    (folder(two, "a") / "disk.uuid").unlink()
    assert not two.do("absent", "a").get("failed")


def test_the_newer_of_two_is_not_taken_for_a_copy(two):
    """Lost: what a wrote since its backup: a's disk was moved into b's place, a got its backup, and b ended."""
    shutil.copy2(disk(two, "a"), two.folder / "backup")
    disk(two, "b").rename(two.folder / "kept")
    disk(two, "a").rename(disk(two, "b"))
    number = disk(two, "b").stat().st_ino
    (two.folder / "backup").rename(disk(two, "a"))
    two.do("running", "a", timeout=20)
    two.do("stopped", "a")
    assert "this is not the disk that was made for b" in two.do("absent", "b", timeout=20)["msg"]
    assert disk(two, "b").stat().st_ino == number


def test_the_number_of_a_lost_disk_that_is_used_again_is_no_sign(two, monkeypatch):
    """Lost: cy's disk, to bo's guest, by the printed way: the new file got the number of b's, which was lost."""
    real, line = guests.own_disk.begin, folder(two, "b") / "disk.uuid"

    def begun(path, guest):
        uuid = real(path, guest)
        number = disk(two, "c").stat().st_ino
        line.write_text(re.sub(r"inode \d+", f"inode {number}", line.read_text()))
        return uuid

    monkeypatch.setattr(guests.own_disk, "begin", begun)
    disk(two, "b").unlink()
    assert not two.provision("c", flavor=BARE, owner="cy", timeout=20).get("failed")
    assert not two.do("stopped", "c").get("failed")
    assert two.do("running", "c")["instances"][0]["state"] == "running"
    two.do("stopped", "c")
    disk(two, "c").rename(disk(two, "b"))
    assert "this is the disk of guest c, not of b" in two.do("running", "b", timeout=20)["msg"]
    assert not two.virt.domain("b").active
    disk(two, "b").rename(disk(two, "c"))
    assert not two.do("absent", "c").get("failed")


def test_a_copy_that_the_guest_runs_from_is_not_told_to_be_removed(two):
    """Lost: what a has written since its folder was copied to a bigger disk, and its domain was given the copy."""
    shutil.copytree(folder(two, "a"), folder(two, "a-new"))
    _found, (said,) = looked(two)
    assert "once it is known that nothing uses it" in said
    redefine(two, "a", folder(two, "a"), folder(two, "a-new"))
    assert two.do("running", "a", timeout=20)["instances"][0]["state"] == "running"
    _found, (said,) = looked(two)
    assert "a-new is a copy of the guest in " in said
    assert "and domain a uses it: remove nothing" in said


@pytest.mark.parametrize("how", ["link of the disk", "link of the folder", "path in the domain"])
def test_a_disk_that_was_moved_to_a_bigger_one_is_not_said_to_be_removed(two, how):
    """Lost: that all of a tenant's data are there, to who hears that guest and disk are removed."""
    big = two.folder / "big"
    if how == "link of the disk":
        left = disk(two, "a").rename(big)
        disk(two, "a").symlink_to(big)
    elif how == "link of the folder":
        left = folder(two, "a").rename(big) / "disk.raw"
        folder(two, "a").symlink_to(big)
    else:
        left = shutil.copy2(disk(two, "a"), big)
        redefine(two, "a", disk(two, "a"), big)
    assert two.do("running", "a", timeout=20)["instances"][0]["state"] == "running"
    for verb, options in (("absent", {}), ("rebuilt", dict(fresh=True))):
        said = two.do(verb, "a", timeout=20, **options)
        how_said = "has {} in place of" if "path" in how else "is a link to {}, and what belongs here has to lie here"
        assert how_said.format(big) in said["msg"]
        assert whose(left) == "a's own"
    two.do("stopped", "a")
    if how == "path in the domain":
        big.rename(disk(two, "a"))
        redefine(two, "a", big, disk(two, "a"))
    else:
        own = disk(two, "a") if how == "link of the disk" else folder(two, "a")
        own.unlink()
        big.rename(own)
    assert two.do("running", "a")["instances"][0]["state"] == "running"
    assert not two.do("absent", "a").get("failed")


@pytest.mark.parametrize("defined", [True, False])
def test_a_domain_that_names_anothers_disk_is_not_started(two, defined):
    """Lost: all that bo has, to jo's guest, whose domain (virsh edit) or description (a backup) names b's file."""
    redefine(two, "a", disk(two, "a"), disk(two, "b"))
    if not defined:
        text = ElementTree.tostring(two.virt.domain("a").xml(False), encoding="unicode")
        (folder(two, "a") / "domain.xml").write_text(text)
        two.virt.domain("a").undefine()
    words = f"domain a: has {disk(two, 'b')} in place of {disk(two, 'a')}: this is the disk of guest b, not of a"
    found, _others = looked(two)
    assert words in found["a"][-1]
    for verb in ("running", "rebooted", "absent"):
        said = two.do(verb, "a", timeout=20)
        assert f"domain a: has {disk(two, 'b')} in place of {disk(two, 'a')}" in said["msg"]
        assert not (two.virt.domain("a").defined and two.virt.domain("a").active)
    assert whose(disk(two, "b")) == "b's own"
