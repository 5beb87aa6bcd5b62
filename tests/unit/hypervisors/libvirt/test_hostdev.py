# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI devices of libvirt's domains: what a guest gets, who is kept from it, and what people are told of bindings."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import (
    ATTACHED,
    Allocation,
    GpuRequest,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    HeteroError,
    Refused,
    TimedOut,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import hostdev
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD

#: As the blog writes it (spaces between elements do not count).
XML = (
    '<hostdev mode="subsystem" type="pci" managed="yes"><driver name="vfio" />'
    '<source><address domain="0x0000" bus="0x86" slot="0x00" function="0x0" /></source></hostdev>'
)


def test_a_stopped_domain_gets_a_device_for_its_next_start_once(virt):
    """Without this the next guest would start without its card, or a second run would fail at what is there."""
    guest = virt.define("ml-8")
    result = virt.attach(guest, CARD)
    assert result["changed"]
    assert result["diff"][0]["after"] == {"config": {CARD: "managed"}}
    device = result["devices"][0]
    assert (device["config"], device["live"], device["xml"]) == (True, False, XML)
    assert "not back to pci-stub" in device["afterwards"]
    again = virt.attach(guest, CARD)
    assert not again["changed"]
    assert virt.said() == ["define /dev/stdin", "attach-device ml-8 /dev/stdin --config"]


def test_a_running_guest_and_its_next_start_both_get_it_and_lose_it(virt):
    """A device that is only in one of the two would be gone after a restart, or come back after it."""
    guest = virt.define("ml-8")
    guest.start()
    result = virt.attach(guest, "86:00.0")
    assert [(one["live"], one["config"], one["driver"]) for one in result["devices"]] == [(True, True, "vfio-pci")]
    assert virt.table() == {CARD: "domain:ml-8"}
    result = virt.detach(guest, CARD)
    assert [(one["live"], one["config"], one["driver"]) for one in result["devices"]] == [(False, False, "bochs-drm")]
    assert result["devices"][0]["before"] == "vfio-pci"
    assert virt.table() == {}
    assert not virt.detach(guest, CARD)["changed"]


@pytest.mark.parametrize("driver", ["pci-stub", "vfio-pci", "bochs-drm"])
def test_what_is_said_of_the_binding_is_what_happens(virt, driver):
    """An operator who parked a card for guests must know that it is the host's again after the first one."""
    virt.add("0000:87:00.0", driver, group=7)
    guest = virt.define("ml-8")
    said = virt.attach(guest, "0000:87:00.0")["devices"][0]["afterwards"]
    guest.start()
    assert virt.host.driver("0000:87:00.0") == "vfio-pci"
    guest.stop()
    after = virt.host.driver("0000:87:00.0")
    assert after == ("vfio-pci" if driver == "vfio-pci" else "bochs-drm")
    words = {"pci-stub": "to the host's own driver", "vfio-pci": "stays on vfio-pci", "bochs-drm": "back to bochs-drm"}
    assert words[driver] in said


def test_check_mode_says_what_would_be_and_leaves_all(virt):
    """A dry run that attaches would take a card from whoever uses it."""
    guest = virt.define("ml-8")
    result = virt.attach(guest, CARD, check=True)
    assert result["diff"][0]["after"] == {"config": {CARD: "managed"}}
    assert result["devices"][0]["config"]
    assert virt.said() == ["define /dev/stdin"]
    assert virt.table() == {}


def test_all_functions_of_a_card_go_when_asked_and_else_the_group_is_refused(virt):
    """With its sound function left on the host's driver, the guest with the GPU does not start."""
    virt.add("0000:01:00.0", "pci-stub", group=9)
    virt.add("0000:01:00.1", "snd_hda_intel", group=9)
    guest = virt.define("ml-8")
    with pytest.raises(Refused, match=r"IOMMU group 9 is not viable: 0000:01:00.1 .* on the host's snd_hda_intel"):
        virt.attach(guest, "0000:01:00.0")
    assert virt.table() == {}
    result = virt.attach(guest, "0000:01:00.0", functions=True)
    assert [one["address"] for one in result["devices"]] == ["0000:01:00.0", "0000:01:00.1"]
    assert all(one["config"] for one in result["devices"])


def test_a_device_of_a_container_or_of_another_guest_is_refused(virt):
    """Two holders of one GPU crash each other; the table and libvirt both count."""
    guest = virt.define("ml-8")
    row = Allocation(CARD, "/var/lib/lxc/ml-7#1", None, False, ATTACHED, 1.0, GpuRequest(count=1))
    with virt.store() as store:
        store.grant(row)
    with pytest.raises(Refused, match=r"ml-8: 0000:86:00.0 cannot go to it: is allocated to /var/lib/lxc/ml-7#1"):
        virt.attach(guest, CARD)
    with virt.store() as store:
        store.free(row)
    other = virt.define("bob", uuid="22222222-2222-2222-2222-222222222222")
    other.attach(hostdev.xml(CARD), live=False)  # by hand, past the table
    other.start()
    with pytest.raises(Refused, match="running domain bob has it"):
        virt.attach(guest, CARD)
    assert virt.table() == {}


def test_without_managed_only_what_is_on_vfio_pci_goes(virt):
    """libvirt would refuse the start, long after the device was attached."""
    guest = virt.define("ml-8")
    with pytest.raises(Refused, match="is on pci-stub, and with managed no libvirt binds nothing"):
        virt.attach(guest, CARD, managed=False)
    virt.add("0000:87:00.0", "vfio-pci", group=7)
    result = virt.attach(guest, "0000:87:00.0", managed=False)
    assert "leaves its binding alone" in result["devices"][0]["afterwards"]
    result = virt.attach(guest, "0000:87:00.0")
    assert result["diff"][0]["before"] == {"config": {"0000:87:00.0": "not managed"}}
    assert virt.said()[-1] == "define /dev/stdin"


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("refused", ["attach-device", "define"])
def test_a_refused_change_of_managed_leaves_the_device_with_its_domain(virt, first, refused):
    """Lost: the card, from the domain and the table, to a change of how libvirt binds it."""
    address = "0000:87:00.0"
    virt.add(address, "vfio-pci", group=7)
    guest = virt.define("ml-8")
    virt.attach(guest, address, live=False, managed=first)
    virt.fail(refused, "error: internal error: no")
    with suppress(HeteroError):
        virt.attach(guest, address, live=False, managed=not first)
    assert address in hostdev.devices_in(guest.xml(False))
    assert virt.table() == {address: "domain:ml-8"}


def test_a_guest_that_keeps_a_device_is_waited_for_and_named(virt):
    """libvirt only asks a guest to let go: reporting it as done would hand a card to two guests."""
    guest = virt.define("ml-8")
    guest.start()
    virt.attach(guest, CARD)
    keeps = virt.root / "keeps"
    keeps.touch()
    with pytest.raises(TimedOut, match=r"domain ml-8: its guest has not let go of 0000:86:00.0 within 6 s"):
        virt.detach(virt.domain("ml-8", timeout=6), CARD)
    assert virt.table() == {CARD: "domain:ml-8"}

    def let_go():
        keeps.unlink()
        guest.detach(hostdev.xml(CARD), live=True)

    domain, later = virt.domain("ml-8"), threading.Timer(1.0, let_go)
    ask = domain.detach

    def asked(xml, live):
        ask(xml, live)
        if live:
            later.start()  # once it was asked in vain: it is to let go by itself

    domain.detach = asked
    assert not virt.detach(domain, CARD)["devices"][0]["live"]
    later.join()
    assert virt.table() == {}


def test_a_device_that_the_guest_lets_go_of_just_then_is_gone(virt):
    """Asked again, a guest obeys the first time between two calls: an error would keep the card from the next."""
    guest = virt.define("ml-8")
    guest.start()
    virt.attach(guest, CARD)
    domain = virt.domain("ml-8")
    ask = domain.detach

    def too_late(xml, live):
        guest.detach(xml, live=live)
        ask(xml, live)

    domain.detach = too_late
    assert not virt.detach(domain, CARD)["devices"][0]["live"]
    assert virt.table() == {}


def test_a_failed_attach_leaves_nothing_in_the_table(virt):
    """A row without a guest behind it would keep the card from everybody."""
    guest = virt.define("ml-8")
    virt.fail("attach-device", "internal error: No more available PCI slots")
    with pytest.raises(Refused, match=r"domain ml-8: the machine has no free slot .*pcie-root-port"):
        virt.attach(guest, CARD)
    assert virt.table() == {}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("failed to connect to the hypervisor", "libvirt does not answer: see: systemctl status libvirtd"),
        ("PCI device 0000:86:00.0 must be manually detached from the host", "bind it first"),
        ("Requested operation is not valid: PCI device 0 is in use by driver QEMU, domain bob", "domain bob has it"),
        ("qemu: vfio 0000:01:00.0: group 9 is not viable", "IOMMU group 9 is not viable"),
        ("something new", "virsh domstate: something new"),
    ],
)
def test_errors_of_virsh_are_named_with_a_way_out(virt, said, told):
    """A person must not have to read libvirt's sources."""
    guest = virt.define("ml-8")
    virt.fail("domstate", said)
    with pytest.raises(HeteroError, match=told.replace("(", r"\(")):
        virt.attach(guest, CARD)


def test_unknown_domains_and_devices_are_bad_input(virt):
    """A typing error must be named, and change nothing."""
    with pytest.raises(BadInput, match="domain ml-9: there is no such domain"):
        virt.attach(virt.domain("ml-9"), CARD)
    with pytest.raises(BadInput, match=r"0000:99:00.0: no such PCI device here"):
        virt.attach(virt.define("ml-8"), "99:00.0")


def test_a_card_that_left_the_machine_can_be_taken_from_a_domain(virt):
    """Otherwise a domain with a broken card could not be started without an editor."""
    guest = virt.define("ml-8")
    virt.attach(guest, CARD)
    (virt.root / "sys/bus/pci/devices" / CARD).unlink()
    assert virt.detach(guest, CARD)["changed"]
    assert virt.table() == {}
