# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The PCI devices of a guest. If these fail, a guest is started with another card than its own, or keeps one that is
another guest's.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import guest_devices
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.guest_devices import GuestDevices
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused

OWN, SECOND, OTHER = "0000:01:00.0", "0000:02:00.0", "0000:03:00.0"


def row(address, holder="kvm:db", persistent=True, before="nouveau", hand=False):
    wanted = SimpleNamespace(arch="fermi")
    return SimpleNamespace(
        address=address, holder=holder, persistent=persistent, wanted=wanted, before=before, hand=hand
    )


class Site:
    """Guest db, the table of allocations, and the devices that are in the host: {address: is it the one given}."""

    def __init__(self, monkeypatch, *rows, there, running=()):
        self.rows, self.there, self.running, self.asked = list(rows), there, running, []
        self.failed = None
        store = SimpleNamespace(
            allocations=lambda holder=None: [one for one in self.rows if holder in (None, one.holder)]
        )
        self.taken = []
        self.work = SimpleNamespace(
            host=SimpleNamespace(store=store, pci="paths"),
            claim=SimpleNamespace(holder="kvm:db", instance="db"),
            deadline=SimpleNamespace(left=5.0),
            change=SimpleNamespace(take=self.taken.append),
        )

        def look(address, _paths):
            here = address in there
            return SimpleNamespace(address=address, driver="nouveau", ids="10de:1") if here else None

        monkeypatch.setattr(guest_devices, "sysfs", SimpleNamespace(look=look))
        monkeypatch.setattr(guest_devices, "is_own", lambda one, _device: there[one.address])
        monkeypatch.setattr(guest_devices, "by_hand", lambda one: one.hand)
        monkeypatch.setattr(guest_devices, "driver_before", lambda one: one.before)
        monkeypatch.setattr(guest_devices, "domains", SimpleNamespace(running=self._running))
        monkeypatch.setattr(guest_devices, "change_driver", self._change)
        self.devices = GuestDevices(self.work)

    def _running(self, _paths):
        if isinstance(self.running, Exception):
            raise self.running
        return dict(self.running)

    def _change(self, asked, change, deadline, _paths):
        self.asked.append((asked["devices"], asked["driver"], asked["force"], round(deadline.left)))
        return dict(failed=bool(self.failed), msg=self.failed)


@pytest.fixture
def site(monkeypatch):
    return lambda *rows, **more: Site(monkeypatch, *rows, **more)


def test_what_it_starts_with_is_what_lasts(site):
    """Lost: a device that was given for one run, at the next start."""
    found = site(row(OWN), row(SECOND, persistent=False), row(OTHER, "kvm:web"), there={}).devices
    assert [one.address for one in found.rows] == [OWN, SECOND]
    assert found.told == f" with {OWN}"
    assert site(there={}).devices.told == ""


def test_what_others_have_by_the_table_or_run_with(site):
    """Lost: a card, to two guests."""
    running = {SECOND: ["web"], OWN: ["db"]}
    assert site(row(OWN), row(OTHER, "kvm:web"), there={}, running=running).devices.of_others == [SECOND, OTHER]
    broken = HeteroError("is no XML", "web.xml", "remove it")
    assert site(row(OTHER, "kvm:web"), there={}, running=broken).devices.of_others == [OTHER]


def test_another_card_at_its_address_is_not_its_own(site):
    """Lost: a guest with a card of another kind, which was put into the slot."""
    site(row(OWN), there={OWN: True}).devices.must_be_there()
    with pytest.raises(Refused, match=r"was a fermi, and a 10de:1 is there now: .*terminate leaves the other device"):
        site(row(OWN), there={OWN: False}).devices.must_be_there()
    with pytest.raises(Refused, match=rf"db: its device at {OWN} is no more on this host: .*, or terminate it"):
        site(row(OWN), there={}).devices.must_be_there()
    with pytest.raises(Refused, match="or take it from its guest"):
        site(row(OWN, hand=True), there={}).devices.must_be_there()


def test_whether_a_device_is_there(site):
    """Lost: the same, for who starts the guest."""
    assert site(there={OWN: True}).devices.is_there(row(OWN))
    assert not site(there={OWN: False}).devices.is_there(row(OWN))
    assert not site(there={}).devices.is_there(row(OWN))


def test_each_goes_back_to_the_driver_that_it_had(site):
    """Lost: the host's own driver; or another card, taken from the driver that it is on."""
    there = {OWN: True, SECOND: True, OTHER: False}
    found = site(row(OWN), row(SECOND, before="nvidia"), row(OTHER), row("0000:04:00.0", before=None), there=there)
    found.devices.give_back()
    assert [one[:2] for one in found.asked] == [([OWN], "nouveau"), ([SECOND], "nvidia")]
    assert found.asked[0][3] >= 5, "there is time for it, even at the end of the verb's"
    assert len(found.taken) == 2


def test_what_is_refused_is_an_error_of_the_instance(site):
    """Lost: why it does not start."""
    found = site(row(OWN), there={OWN: True})
    found.failed = "0000:01:00.0 is used by Xorg"
    with pytest.raises(Refused, match=r"db: 0000:01:00\.0 is used by Xorg: then run this again"):
        found.devices.bind("vfio-pci", check=True)
    assert found.taken == [], "check mode changes nothing"
    site(row(OWN), there={}).devices.bind("vfio-pci")
