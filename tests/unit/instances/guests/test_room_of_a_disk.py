# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How large a guest's disk is whose flavor names no size. The other tests here give it less room, and so cost less."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import guests
from ansible_collections.hetero.compute.tests.unit.instances.guests.conftest import KG1, ROOM

BARE = dict(KG1, extra_specs={"hypervisor": "s== kvm"})


def test_a_guest_has_room_beside_its_image(site, monkeypatch):
    """Lost: a guest that can write nothing, for its disk is as large as its image."""
    monkeypatch.setattr(guests, "ROOM", ROOM)
    assert site.provision("a", flavor=BARE)["instances"][0]["state"] == "running"
    size = (site.folder / "guests-files/a/disk.raw").stat().st_size >> 20
    assert 256 <= size <= 256 + 8, size
