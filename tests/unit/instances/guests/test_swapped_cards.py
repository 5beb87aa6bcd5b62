# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another device at the address of a guest's card, which was taken out, or moved as buses were numbered anew."""

from __future__ import annotations

import shutil
from dataclasses import replace

from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD


def put_in(site, ids, driver):
    host = site.virt.host
    shutil.rmtree(host.folder(CARD))
    (host.root / "sys/bus/pci/devices" / CARD).unlink()
    host.add(CARD, ids, driver, group=6, device_class="010400")
    (site.virt.root / "native" / CARD).write_text(driver)


def test_the_hosts_disk_controller_there_stays_on_its_driver(site):
    """Lost: the host's disks, to a guest that never had their controller."""
    site.provision("ml-9")
    site.do("stopped", "ml-9")
    put_in(site, "1000:005d", "megaraid_sas")
    said = site.do("running", "ml-9", timeout=20)
    assert f"its device at {CARD} was a 10de:11bf, and a 1000:005d is there now: put its card back" in said["msg"]
    assert site.virt.host.driver(CARD) == "megaraid_sas"
    assert site.table() == {CARD: "domain:ml-9"}
    gone = site.do("absent", "ml-9", timeout=20)
    assert gone["lines"][-1]["text"].endswith(f"; no more on this host: {CARD}")
    assert site.virt.host.driver(CARD) == "megaraid_sas"
    assert site.table() == {}


def test_anothers_card_there_that_is_kept_for_guests_is_not_run_with(site):
    """Lost: a card that is bound for guests, to one that was given another."""
    site.provision("ml-9")
    site.do("stopped", "ml-9")
    put_in(site, "10de:1180", "vfio-pci")
    assert "a 10de:1180 is there now" in site.do("running", "ml-9", timeout=20)["msg"]


def test_a_row_of_an_earlier_release_says_nothing_of_its_card_and_starts(site):
    """Lost: each guest that was made before its card's ids were written down."""
    site.provision("ml-9")
    site.do("stopped", "ml-9")
    with site.host() as host, host.store.transaction():
        [row] = host.store.allocations()
        assert row.wanted.arch == "10de:11bf"
        host.store.grant(replace(row, wanted=replace(row.wanted, arch=None)))
    assert not site.do("running", "ml-9").get("failed")
