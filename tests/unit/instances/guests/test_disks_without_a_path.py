# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest whose disk somebody moved to a volume of a pool, to a disk of the network, or to a LUN, which libvirt names
by no path, or not as a disk. Lost: the word that what its tenant has is elsewhere, and stays when it is ended:
reconcile found nothing, and the end said that guest and disk were removed.
"""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.domain import Libvirt
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import BARE, found

DISKS = {
    "volume": '<disk type="volume" device="disk"><driver name="qemu" type="raw" /><source pool="big" volume="a" />'
    '<target dev="vda" bus="virtio" /></disk>',
    "network": '<disk type="network" device="disk"><driver name="qemu" type="raw" /><source protocol="rbd" '
    'name="big/a"><host name="mon" /></source><target dev="vda" bus="virtio" /></disk>',
    "lun": '<disk type="block" device="lun"><driver name="qemu" type="raw" /><source dev="/dev/sdb" />'
    '<target dev="sda" bus="scsi" /></disk>',
}


@pytest.mark.parametrize("kind", sorted(DISKS))
def test_it_is_told_and_not_ended(site, kind):
    site.provision("a", flavor=BARE)
    site.do("stopped", "a")
    libvirt = Libvirt(Deadline(60))
    domain = libvirt.domain("a").xml(live=False)
    devices = domain.find("devices")
    devices.remove(devices.find("disk"))
    devices.append(ElementTree.fromstring(DISKS[kind]))
    libvirt.define(ElementTree.tostring(domain, encoding="unicode"))
    words = {"volume": "big/a (volume)", "network": "rbd/big/a (network)", "lun": "/dev/sdb"}[kind]
    (said,) = found(site)
    assert f"domain a has {words}, and not {site.folder}/guests-files/a/disk.raw" in said
    for verb, options in (("absent", {}), ("rebuilt", {"fresh": True})):
        assert f"domain a: has {words} in place of" in site.do(verb, "a", **options)["msg"]
