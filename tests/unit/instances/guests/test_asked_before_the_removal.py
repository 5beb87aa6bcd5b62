# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that could not start again, as a look shows, is neither made anew nor ended. If these fail, its tenant loses
its disk, or its work, to a verb that is refused afterwards.
"""

from __future__ import annotations

import shutil

import pytest

from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_swapped_cards import put_in


def replaced(site):
    put_in(site, "1000:005d", "megaraid_sas")
    return f"its device at {CARD} was a 10de:11bf, and a 1000:005d is there now"


def pulled(site):
    shutil.rmtree(site.virt.host.folder(CARD))
    (site.virt.root / "sys/bus/pci/devices" / CARD).unlink()
    return f"its device at {CARD} is no more on this host: put its card back there, or terminate it"


def flushed(site):
    (site.virt.root / "flushed").touch()
    return "is not pinned on the bridge"


def joined(site):
    """A card of the host's in its IOMMU group, as after a change of slots."""
    site.virt.host.add("0000:87:00.0", "8086:1521", "igb", group=6)
    return "IOMMU group 6 is not viable: 0000:87:00.0 (8086:1521) in it is on the host's igb"


FAULTS = pytest.mark.parametrize("fault", [replaced, pulled, joined, flushed])


@FAULTS
def test_a_rebuild_removes_nothing(site, fault):
    site.provision("ml-9")
    site.do("stopped", "ml-9")
    said = fault(site)
    disk = site.folder / "guests-files/ml-9/disk.raw"
    number = disk.stat().st_ino
    for check in (True, False):
        assert said in site.do("rebuilt", "ml-9", fresh=True, timeout=20, check=check)["msg"]
        assert disk.stat().st_ino == number
    assert site.info(instance="ml-9")["instances"][0]["state"] == "stopped"


@FAULTS
def test_a_reboot_ends_nothing(site, fault):
    site.provision("ml-9")
    said = fault(site)
    assert said in site.do("rebooted", "ml-9", timeout=20)["msg"]
    assert site.virt.domain("ml-9").active
    assert site.info(instance="ml-9")["instances"][0]["state"] == "running"


def test_a_start_names_the_card_that_was_pulled(site):
    """Not libvirt's raw words; and its end is in no way."""
    site.provision("ml-9")
    site.do("stopped", "ml-9")
    said = pulled(site)
    assert said in site.do("running", "ml-9", timeout=20)["msg"]
    assert not site.do("absent", "ml-9", timeout=20).get("failed")
