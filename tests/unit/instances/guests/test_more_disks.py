# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest with a disk of data beside its root, which somebody attached (virsh attach-disk)."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.domain import Libvirt
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import BARE, bring, found

DATA = (
    '<disk type="file" device="disk"><driver name="qemu" type="raw" /><source file="{path}" />'
    '<target dev="{target}" bus="scsi" /></disk>'
)


@pytest.fixture
def one(site):
    site.provision("a", flavor=BARE)
    site.do("stopped", "a")
    return site


def attach(path, first=False):
    libvirt = Libvirt(Deadline(60))
    domain = libvirt.domain("a").xml(live=False)
    disk = ElementTree.fromstring(DATA.format(path=path, target="sda"))
    domain.find("devices").insert(0 if first else 99, disk)
    libvirt.define(ElementTree.tostring(domain, encoding="unicode"))


@pytest.mark.parametrize("name", ["disk.raw", "data.raw"])
@pytest.mark.parametrize("first", [True, False])
def test_a_disk_of_data_that_is_away_is_not_taken_for_the_root(one, name, first):
    """Lost: the disk of data of a guest, whose domain by the printed line has its root twice."""
    attach(one.folder / "volumes/a" / name, first)  # its file system is not mounted now
    assert found(one) == []
    assert "in place of" not in str(one.do("running", "a"))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("name", ["disk.raw", "data.raw"])
def test_nothing_is_moved_of_a_copied_one_with_data(one, first, name):
    """Lost: the root, under a disk of data that the printed line moves over it."""
    data = one.folder / "volumes" / name
    data.parent.mkdir()
    data.write_bytes(b"data" * 1000)
    attach(data, first)
    bring(one, "cp", "-a")
    (said,) = found(one)
    assert str(data) in said
    assert f"{one.folder}/guests-files/a/disk.raw" in said
    assert "virsh domblklist a" in said
    assert not re.search(r"\bmv\b|dumpxml|sed", said)
    assert str(data) in one.do("absent", "a")["msg"]
    (one.folder / "guests-files/a/kernel").unlink()
    said = one.do("running", "a")["msg"]
    assert f"by virsh edit a, which is to name {one.folder}/bigger/a/kernel as its kernel" in said
    assert "dumpxml" not in said


def test_a_missing_disk_of_data_of_a_copied_one_is_not_taken_for_the_root(one):
    """Lost: what the guest has written since it was copied, to a domain with the copy in place of its data."""
    data = one.folder / "volumes/disk.raw"
    attach(data)
    bring(one, "cp", "-a")
    said = one.do("running", "a")["msg"]
    assert f"has {data}, which is not there" in said
    assert f"domain a has {one.folder}/guests-files/a/disk.raw, {data}, and not" in said
    assert "as its root" not in said
    assert "dumpxml" not in said
