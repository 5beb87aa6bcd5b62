# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A card that an instance's guest was given by hand was pulled out of the host, and the guest is not started. Lost: the
instance with its disk, for its tenant is told to terminate it, although the card can be taken from it.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import OTHER
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import SMALL


def test_it_is_said_how_the_guest_starts_without_it(site):
    site.provision("a", flavor=SMALL)
    site.virt.attach(site.virt.domain("a"), OTHER)
    site.do("stopped", "a")
    (site.virt.root / "sys/bus/pci/devices" / OTHER).unlink()
    said = site.do("running", "a", timeout=300)["msg"]
    assert f"its device at {OTHER} is no more on this host: put its card back there, or take it from its guest" in said
    assert "terminate" not in said
    site.virt.detach(site.virt.domain("a"), OTHER)
    assert not site.do("running", "a", timeout=300).get("failed")
