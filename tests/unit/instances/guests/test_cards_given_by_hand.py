# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A card that module libvirt_hostdev gave to an instance's guest, besides those of its flavor."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD, OTHER
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_swapped_cards import put_in


@pytest.fixture(params=[CARD, OTHER])
def given(request, site):
    """The card that guest ml-9 was given: one that is kept for guests, or one that is on the host's own driver."""
    site.provision("ml-9", flavor=SMALL)
    site.virt.attach(site.virt.domain("ml-9"), request.param)
    return request.param


@pytest.mark.parametrize("verb", ["running", "absent"])
def test_the_hosts_disk_controller_in_its_place_stays_on_its_driver(site, verb):
    """Lost: the host's disks, to a guest that never had their controller."""
    site.provision("ml-9", flavor=SMALL)
    site.virt.attach(site.virt.domain("ml-9"), CARD)
    site.do("stopped", "ml-9")
    put_in(site, "1000:005d", "megaraid_sas")
    said = site.do(verb, "ml-9", timeout=20)
    assert verb == "absent" or f"its device at {CARD} was a 10de:11bf, and a 1000:005d is there now" in said["msg"]
    assert site.virt.host.driver(CARD) == "megaraid_sas"


@pytest.mark.parametrize("is_started_anew", [True, False])
def test_it_goes_back_to_the_driver_that_it_was_on(site, is_started_anew):
    """Lost: the card, which would be on a driver "libvirt" that no kernel has; and where asking for that fails, the
    end of the instance comes to none.
    """
    modprobe = site.virt.root / "programs/modprobe"
    modprobe.write_text('#!/bin/sh\n[ "$1" != libvirt ] || { echo "Module libvirt not found" >&2; exit 1; }\n')
    before = site.drivers()
    site.provision("ml-9", flavor=SMALL)
    site.virt.attach(site.virt.domain("ml-9"), CARD, OTHER)
    if is_started_anew:
        site.do("rebooted", "ml-9", how="hard")
        assert site.drivers() == {CARD: "vfio-pci", OTHER: "vfio-pci"}
    said = site.do("absent", "ml-9", timeout=20)
    assert not said.get("failed"), said
    assert (site.drivers(), site.table()) == (before, {})
    assert not site.provision("ml-10").get("failed")


def test_one_of_which_an_earlier_release_wrote_no_driver_down_stays_where_it_is(given, site):
    """Lost: the instance's end, which would ask for a driver that no kernel has."""
    with site.host() as host, host.store.transaction():
        [row] = host.store.allocations()
        host.store.grant(replace(row, method="libvirt", wanted=replace(row.wanted, arch=None)))
    assert not site.do("rebooted", "ml-9", how="hard").get("failed")
    said = site.do("absent", "ml-9", timeout=20)
    assert not said.get("failed"), said
    assert site.drivers()[given] == "vfio-pci"
    assert site.table() == {}


def test_what_is_taken_from_it_does_not_come_back(given, site):
    """Lost: a card that the module says to have taken back, to the next start of the guest that had it."""
    before, guest = site.drivers(), site.virt.domain("ml-9")
    assert site.virt.detach(guest, given)["changed"]
    assert site.table() == {}
    said = site.do("rebooted", "ml-9", how="hard")
    assert not any("put back" in line["text"] for line in said["lines"])
    assert (site.table(), site.drivers()) == ({}, {**before, given: "bochs-drm"})


def test_a_card_of_its_flavor_stays_its_own_while_it_is_taken_from_its_guest(site):
    """Lost: the card that the instance was claimed with, to the next who asks."""
    site.provision("ml-9")
    site.virt.detach(site.virt.domain("ml-9"), CARD)
    assert site.table() == {CARD: "domain:ml-9"}
