# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest of which somebody made a snapshot (virsh snapshot-create-as --disk-only): its domain then has an overlay over
the disk in its folder.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.domain import Libvirt
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import BARE, found


@pytest.mark.parametrize("overlay", ["guests-files/a/disk.snap1", "guests-files/a/snaps/disk.raw", "aside/disk.raw"])
@pytest.mark.parametrize("kind", ["qcow2", "raw"])
def test_no_printed_way_puts_an_overlay_over_what_it_lies_on(site, overlay, kind):
    """Lost: a guest, whose overlay by the printed line is its own backing file."""
    site.provision("a", flavor=BARE)
    site.do("stopped", "a")
    path = site.folder / overlay
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"QFI\xfb")
    libvirt = Libvirt(Deadline(60))
    domain = libvirt.domain("a").xml(live=False)
    disk = domain.find("devices/disk")
    disk.find("driver").set("type", kind)
    disk.find("source").set("file", str(path))
    base = {"file": str(site.folder / "guests-files/a/disk.raw")}
    ElementTree.SubElement(ElementTree.SubElement(disk, "backingStore", type="file"), "source", base)
    libvirt.define(ElementTree.tostring(domain, encoding="unicode"))
    (said,) = found(site)
    assert f"domain a has {path}, and not {base['file']}" in said
    assert "virsh domblklist a" in said
    assert not re.search(r"\bmv\b|dumpxml|sed", said)
    assert "in place of" in site.do("absent", "a")["msg"]
    assert path.exists()
