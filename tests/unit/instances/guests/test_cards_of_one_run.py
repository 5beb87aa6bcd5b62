# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A card that an instance's guest was given by hand for one run alone (config: false); the run is over, and libvirt
gave the card back to the host's driver. Lost otherwise: the card, which stays allocated to the instance until its end
and which nobody gets, and no look of reconcile tells.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import OTHER
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import (
    SMALL,
    found_by_reconcile,
)


def test_reconcile_tells_once_its_run_is_over_and_how_it_is_free(site):
    before = site.drivers()
    site.provision("a", flavor=SMALL)
    site.virt.attach(site.virt.domain("a"), OTHER, config=False)
    assert found_by_reconcile(site)["domains"] == []
    assert not site.do("rebooted", "a", how="hard").get("failed")
    assert site.drivers() == before
    (told,) = found_by_reconcile(site)["domains"]
    assert (told["domain"], told["address"], told["done"]) == ("a", OTHER, None)
    found = "allocated to its guest for one run, which is over (libvirt_hostdev, state detached, frees it)"
    assert told["found"] == found
    site.virt.detach(site.virt.domain("a"), OTHER)
    assert (site.table(), found_by_reconcile(site)["domains"]) == ({}, [])
