# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest whose disk somebody copied to a logical volume (virsh blockcopy --blockdev --pivot): its domain has that."""

from __future__ import annotations

import os
import re
import stat
from xml.etree import ElementTree

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.domain import Libvirt
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import BARE, found


@pytest.mark.parametrize("name", ["a", "disk.raw"])
def test_no_printed_way_moves_the_node_of_a_device(site, name):
    """Lost: the name of the volume with all that the guest has, to a line that says it brings that into its folder."""
    site.provision("a", flavor=BARE)
    site.do("stopped", "a")
    volume = site.folder / "dev/vg0" / name
    volume.parent.mkdir(parents=True)
    os.mknod(site.folder / "dev/dm-3", stat.S_IFBLK | 0o600, os.makedev(253, 250))
    volume.symlink_to("../dm-3")  # as LVM has them
    libvirt = Libvirt(Deadline(60))
    domain = libvirt.domain("a").xml(live=False)
    disk = domain.find("devices/disk")
    disk.set("type", "block")
    source = disk.find("source")
    del source.attrib["file"]
    source.set("dev", str(volume))
    libvirt.define(ElementTree.tostring(domain, encoding="unicode"))
    (said,) = found(site)
    assert f"domain a has {volume}, and not {site.folder}/guests-files/a/disk.raw" in said
    assert "virsh domblklist a" in said
    assert not re.search(r"\bmv\b|dumpxml|sed", said)
