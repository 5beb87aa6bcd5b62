# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest had a card by hand as it was rebuilt; it was taken back (module libvirt_hostdev), and is on the host's driver
again, or free for any guest. Later libvirt loses the guest's domain (its file is empty after a power cut), and the
start makes it of the guest's own description, which is as old as the rebuild. If this fails, the guest has the card
again, taken off the host's driver, and no row of the table says so.
"""

from __future__ import annotations

import subprocess

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host_claims import present
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import hostdev
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD, OTHER
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import SMALL


def test_what_was_taken_back_stays_so(site):
    site.provision("a", flavor=SMALL)
    site.virt.attach(site.virt.domain("a"), OTHER)
    assert not site.do("rebuilt", "a", fresh=True).get("failed")
    site.virt.detach(site.virt.domain("a"), OTHER)
    assert not site.do("stopped", "a").get("failed")
    assert site.table() == {}
    assert hostdev.devices_in(site.virt.domain("a").xml(live=False)) == {}
    subprocess.run([site.virt.root / "programs/virsh", "undefine", "a"], check=True)
    said = site.do("running", "a")
    assert not said.get("failed"), said
    assert set(hostdev.devices_in(site.virt.domain("a").xml(live=True))) == set()


def test_it_is_not_given_again_as_another_guest_gets_its_card(site):
    """Lost: the card, which is the former guest's own until its end, and no module takes it back."""
    site.virt.add("0000:87:00.0", "pci-stub", group=7)
    site.provision("a", flavor=SMALL)
    site.virt.attach(site.virt.domain("a"), CARD)
    assert not site.do("rebuilt", "a", fresh=True, timeout=300).get("failed")
    site.virt.detach(site.virt.domain("a"), CARD)
    assert not site.do("stopped", "a").get("failed")
    subprocess.run([site.virt.root / "programs/virsh", "undefine", "a"], check=True)
    with site.host() as host:
        assert present(host, site.request("b"), Change(False))["new"] == ["b"]
    assert list(site.table()) == ["0000:87:00.0"]
