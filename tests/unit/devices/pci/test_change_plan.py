# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which devices a request takes, and what it is refused for.

Tests devices/pci/holders.py, devices/pci/persistence.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci import sysfs
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.change_plan import plan, refuse
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.holders import Holder
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.persistence import Binding

CARD = ["0000:01:00.0", "0000:01:00.1", "0000:01:00.2"]


def planned(host, names, driver="vfio-pci", bindings=()):
    return plan(names, driver, sysfs.devices(host.paths), dict(bindings))


def refusal(host, names, driver="vfio-pci", held=(), force=False):
    with pytest.raises(Refused) as caught:
        refuse(planned(host, names, driver), dict(held), force)
    return str(caught.value)


@pytest.mark.parametrize("name", ["01:00.0", "0000:01:00.2", "10de:11bf", "10DE:11BF"])
def test_all_functions_of_the_card_go(card, name):
    """Whoever asks for the display gets its audio and USB functions, or the guest does not start."""
    assert [device.address for device in planned(card, [name]).chosen] == CARD


def test_all_cards_of_a_kind(card):
    """vendor:product means each of them."""
    card.add("0000:02:00.0", "10de:11bf", "nouveau", group=9)
    assert [device.address for device in planned(card, ["10de:11bf"]).chosen] == [*CARD, "0000:02:00.0"]


@pytest.mark.parametrize("name", ["02:00.0", "10de:1234"])
def test_what_is_not_there(card, name):
    """A typing error must not end in "nothing to do"."""
    with pytest.raises(BadInput, match="no such PCI device here"):
        planned(card, [name])


def test_what_is_neither(card):
    """A driver's or a card's name is no device."""
    with pytest.raises(BadInput, match="neither an address nor"):
        planned(card, ["nouveau"])


def test_a_stranger_in_the_group_is_named_with_the_way_out(host):
    """The kernel would start no guest with half a group; it says "group not viable" and names nobody."""
    host.add("0000:03:00.0", group=9, device_class="060400", header=1)
    host.add("0000:04:01.0", "8086:100e", "e1000", group=9)
    host.add("0000:04:02.0", "1234:11e8", group=9)
    said = refusal(host, ["04:02.0"])
    assert "IOMMU group 9 is not viable: 0000:04:01.0 (8086:100e) in it is on the host's e1000" in said
    assert "devices: [..., '0000:04:01.0']" in said
    refuse(planned(host, ["04:02.0", "04:01.0"]), {}, False)
    refuse(planned(host, ["04:01.0"]), {}, False)  # the other one has no driver, the bridge does not count


def test_force_does_not_make_a_group_viable(host):
    """It is the kernel that refuses."""
    host.add("0000:04:01.0", driver="e1000", group=9)
    host.add("0000:04:02.0", group=9)
    refusal(host, ["04:02.0"], force=True)


def test_a_function_of_the_chipset_is_no_card(host):
    """Bound with its neighbours, the machine would lose its ISA bridge."""
    host.add("0000:00:1f.0", driver="lpc_ich", group=6, device_class="060100")
    host.add("0000:00:1f.2", driver="ahci", group=6, device_class="010601")
    assert [device.address for device in planned(host, ["00:1f.2"]).chosen] == ["0000:00:1f.2"]
    assert "the chipset cannot be given away" in refusal(host, ["00:1f.2"])
    assert "0000:00:1f.0 is of the chipset" in refusal(host, ["00:1f.0"])


def test_vfio_needs_an_iommu_and_pci_stub_does_not(host):
    """Without, a guest could write to all of the host's memory."""
    host.add("0000:01:00.0", driver="nouveau")
    assert "intel_iommu=on" in refusal(host, ["01:00.0"])
    refuse(planned(host, ["01:00.0"], "pci-stub"), {}, False)


def test_a_card_with_virtual_functions_stays(host):
    """Taking it would take its functions from whoever has them."""
    host.add("0000:05:00.0", driver="ixgbe", group=20, sriov_totalvfs="63", sriov_numvfs="2")
    assert "has 2 virtual functions switched on" in refusal(host, ["05:00.0"])


def test_holders_are_listed_and_force_goes_past_those_it_may(card):
    """All reasons at once, not one a run."""
    held = {
        "0000:01:00.0": [Holder("0000:01:00.0", "process", "a process has it open: Xorg (pid 812)", 812, "Xorg")],
        "0000:01:00.2": [Holder("0000:01:00.2", "storage", "sda1 is mounted on /srv")],
    }
    said = refusal(card, ["01:00.0"], held=held)
    assert "Xorg (pid 812)" in said
    assert "sda1 is mounted on /srv" in said
    forced = refusal(card, ["01:00.0"], held=held, force=True)
    assert "Xorg" not in forced
    assert "sda1 is mounted on /srv" in forced
    refuse(planned(card, ["01:00.0"]), {"0000:01:00.0": held["0000:01:00.0"]}, True)


def test_what_needs_no_unbind_needs_no_holder_to_leave(card):
    """A second run while a guest has the card changes nothing, and so is not refused."""
    for address in CARD:
        (card.folder(address) / "driver").unlink()
        (card.folder(address) / "driver_override").write_text("vfio-pci\n")
        card.bind(address, "vfio-pci")
    assert planned(card, CARD).todo == planned(card, CARD).moving == []


def test_a_binding_of_what_is_gone_can_be_taken_out(card):
    """A card that was pulled out leaves its rule behind."""
    bindings = {"0000:09:00.0": Binding("0000:09:00.0", "10de", "11bf", "vfio-pci")}
    assert planned(card, ["09:00.0"], "default", bindings).gone == ("0000:09:00.0",)
    with pytest.raises(BadInput):
        planned(card, ["09:00.0"], "vfio-pci", bindings)
