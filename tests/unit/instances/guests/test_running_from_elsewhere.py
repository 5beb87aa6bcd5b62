# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that runs from a disk elsewhere (virsh create of an edited description, a blockcopy of a transient job),
while its next start has the one in its folder. Lost: what its tenant has written, of which nothing was told: reconcile
found nothing, a reboot began with the older disk, an end said that the disk was removed.
"""

from __future__ import annotations

import shutil

import pytest

from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import BARE, OWN, found


@pytest.fixture
def elsewhere(site):
    site.provision("a", flavor=BARE)
    own, there = site.folder / "guests-files/a/disk.raw", site.folder / "bigger/a/disk.raw"
    there.parent.mkdir(parents=True)
    shutil.copy(own, there)
    with there.open("ab") as disk:
        disk.write(OWN)
    live = site.folder / "run/libvirt/qemu/a.xml"
    text = live.read_text()
    assert str(own) in text
    live.write_text(text.replace(str(own), str(there)))
    assert site.virt.domain("a").xml(live=True).find("devices/disk/source").get("file") == str(there)
    assert site.virt.domain("a").xml(live=False).find("devices/disk/source").get("file") == str(own)
    return site, str(there)


def test_reconcile_tells_it(elsewhere):
    site, there = elsewhere
    assert any(there in text for text in found(site)), found(site)


@pytest.mark.parametrize(
    ("verb", "options"), [("absent", {}), ("rebooted", {"how": "hard"}), ("rebuilt", {"fresh": True})]
)
def test_it_is_not_ended(elsewhere, verb, options):
    site, there = elsewhere
    said = site.do(verb, "a", **options)["msg"]
    assert f"it runs from {there}, and would start again from {site.folder}/guests-files/a/disk.raw" in said
    assert site.virt.domain("a").active
    assert "stop_instance" in said


def test_a_stop_tells_it_and_the_way_leads_on(elsewhere):
    """The disk is put in place of the older one, as is printed."""
    site, there = elsewhere
    assert not site.do("running", "a").get("failed")
    done = site.do("stopped", "a", how="hard")
    assert there in str(done["lines"])
    assert not done.get("failed")
    shutil.move(there, site.folder / "guests-files/a/disk.raw")
    assert found(site) == []
    assert not site.do("running", "a").get("failed")
    assert not site.do("absent", "a").get("failed")


def test_one_that_starts_from_there_too_is_rebooted(elsewhere):
    """Its next start is told, and leaves nothing behind. If this fails, nobody reboots it before its disk is moved."""
    site, there = elsewhere
    defined = site.folder / "etc/libvirt/qemu/a.xml"
    defined.write_text(defined.read_text().replace(str(site.folder / "guests-files/a/disk.raw"), there))
    done = site.do("rebooted", "a", how="hard")
    assert not done.get("failed"), done["msg"]
    assert "would start again from" not in str(done["lines"])
    assert any("what its guest writes is in the former alone" in line["text"] for line in done["lines"])
