# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest with a disk of data beside its root (virsh attach-disk), in its folder or elsewhere, that is made anew or
ended. Lost: the disk of data in its folder, which went with the root; one elsewhere was no more the guest's. No word
told of either.
"""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.domain import Libvirt
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_more_disks import attach
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import BARE

VERBS = pytest.mark.parametrize(("verb", "options"), [("absent", {}), ("rebuilt", {"fresh": True})])


def with_data(site, where):
    site.provision("a", flavor=BARE)
    site.do("stopped", "a")
    data = site.folder / where / "data.raw"
    data.parent.mkdir(exist_ok=True)
    data.write_bytes(b"data" * 1000)
    attach(data)
    return data


@VERBS
def test_one_in_its_folder_stays(site, verb, options):
    data = with_data(site, "guests-files/a")
    said = site.do(verb, "a", **options)["msg"]
    assert f"domain a: has {data} beside its root, in its folder" in said
    assert f"virsh detach-disk a {data} --config" in said
    assert data.exists()
    assert not site.do("running", "a").get("failed")
    site.do("stopped", "a")
    libvirt = Libvirt(Deadline(60))
    domain = libvirt.domain("a").xml(live=False)
    (disk,) = [one for one in domain.findall("devices/disk") if one.find("source").get("file") == str(data)]
    domain.find("devices").remove(disk)
    libvirt.define(ElementTree.tostring(domain, encoding="unicode"))
    data.rename(site.folder / "data.raw")
    assert not site.do(verb, "a", **options).get("failed")


@VERBS
def test_one_elsewhere_is_told(site, verb, options):
    data = with_data(site, "volumes")
    done = site.do(verb, "a", **options)
    assert not done.get("failed")
    told = f"further disks of the domain stay where they are: {data}"
    assert told in [line["text"] for line in done["lines"]]
    assert data.exists()
