# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sysfs says of devices, their names and their groups.

Tests devices/pci/groups.py, devices/pci/ids.py, devices/pci/info.py, devices/pci/paths.py.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci import groups, ids, info, sysfs
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.paths import below

IDS = """\
# a comment
10de  NVIDIA Corporation
\t11bf  GK104GL [GRID K2]
\t\t10de 100a  GRID K260
1b36  Red Hat, Inc.
\t000d  QEMU XHCI Host Controller
C 03  Display controller
\t00  VGA compatible controller
\t\t00  VGA controller
C 0c  Serial bus controller
\t03  USB controller
"""


def test_a_device_is_read_as_the_kernel_shows_it(host):
    """A user binds the wrong card if an id, a group or a node is read wrongly."""
    host.add("0000:85:00.0", "10de:11bf", "nouveau", 12, "030000", numa=1, boot_vga="1", driver_override="vfio-pci")
    device = sysfs.devices(host.paths)["0000:85:00.0"]
    assert (device.ids, device.class_code, device.revision) == ("10de:11bf", "030000", "a1")
    assert (device.driver, device.override, device.group, device.numa_node) == ("nouveau", "vfio-pci", 12, 1)
    assert device.boot_display
    assert not device.of_the_host


def test_what_is_not_there_is_none(host):
    """A machine with one NUMA node and no IOMMU must not look as if it had node -1 or group 0."""
    host.add("0000:00:02.0")
    device = sysfs.devices(host.paths)["0000:00:02.0"]
    assert (device.driver, device.override, device.group, device.numa_node) == (None, None, None, None)
    assert device.kind == "type-PCI"


def test_bridges_are_told_by_their_header(host):
    """The kernel refuses a bridge (EINVAL); its class may be anything."""
    host.add("0000:00:01.0", device_class="060400", header=1)
    host.add("0000:00:1f.0", device_class="060100")
    host.add("0000:03:00.0", device_class="068000", header=0x81)
    found = sysfs.devices(host.paths)
    assert [device.bridge for device in found.values()] == [True, False, True]
    assert all(device.of_the_host for device in found.values())


def test_functions_of_sriov(host):
    """Nova schedules by these types; a card with functions switched on must not be taken from its driver."""
    host.add("0000:05:00.0", driver="ixgbe", group=20, sriov_totalvfs="63", sriov_numvfs="2")
    virtual = host.add("0000:05:10.0", "8086:10ed", group=21)
    (virtual / "physfn").symlink_to(host.folder("0000:05:00.0"))
    card, function = list(sysfs.devices(host.paths).values())
    assert (card.kind, card.vfs, card.parent) == ("type-PF", 2, None)
    assert (function.kind, function.parent) == ("type-VF", "0000:05:00.0")


def test_a_device_that_leaves_while_it_is_read_is_not_there(host):
    """Hot-unplug of one device must not break the view of all others."""
    host.add("0000:01:00.0")
    (host.add("0000:02:00.0") / "revision").unlink()
    assert list(sysfs.devices(host.paths)) == ["0000:01:00.0"]


def test_a_device_whose_lock_is_held_keeps_nobody_waiting(host, monkeypatch):
    """While a driver waits for a guest to let go, the kernel answers no reader: pci_info would hang with it."""
    monkeypatch.setattr(sysfs, "READ_LIMIT", 2)
    host.add("0000:01:00.0")
    folder = host.add("0000:02:00.0")
    host.add("0000:03:00.0", driver_override="vfio-pci")
    (folder / "driver_override").unlink()
    os.mkfifo(folder / "driver_override")
    found = sysfs.devices(host.paths)
    assert [device.changing for device in found.values()] == [False, True, False]
    assert found["0000:03:00.0"].override == "vfio-pci"
    os.close(os.open(folder / "driver_override", os.O_WRONLY | os.O_NONBLOCK))  # who still waits for it reads its end


@pytest.mark.parametrize("text", ["85:00.0", "0000:85:00.0", " 0000:85:00.0", "0000:85:00.0 "])
def test_addresses_as_people_write_them(text):
    """lspci leaves the domain out."""
    assert sysfs.address_of(text) == "0000:85:00.0"


@pytest.mark.parametrize("text", ["85:00", "0000:85:00.8", "85:20.0", "../85:00.0", ""])
def test_what_is_no_address(text):
    """A path that is made of it would name another file."""
    with pytest.raises(BadInput):
        sysfs.address_of(text)


def test_a_machine_without_pci_is_said(tmp_path):
    """Run on the controller by mistake, it names the mistake."""
    with pytest.raises(HeteroError, match="no PCI bus here"):
        sysfs.devices(below(str(tmp_path)))


def test_names_by_pci_ids(host):
    """lspci's line is what people compare with the blog's and the vendor's."""
    path = host.root / "usr/share/misc/pci.ids"
    path.parent.mkdir(parents=True)
    path.write_text(IDS)
    host.add("0000:85:00.0", "10de:11bf", device_class="030000")
    host.add("0000:86:00.0", "10de:ffff", device_class="0c0330", revision="0x00")
    shown = info.information(host.paths)["devices"]
    assert [device["description"] for device in shown] == [
        "VGA compatible controller [0300]: NVIDIA Corporation GK104GL [GRID K2] [10de:11bf] (rev a1)",
        "USB controller [0c03]: NVIDIA Corporation Device [10de:ffff]",
    ]


def test_without_names_there_are_ids(host):
    """pci.ids is a package of its own."""
    host.add("0000:85:00.0", "10de:11bf", device_class="030000")
    device = sysfs.devices(host.paths)["0000:85:00.0"]
    assert ids.names([device], host.paths).vendor(device) is None
    assert info.information(host.paths)["devices"][0]["description"] == "Class [0300]: Device [10de:11bf] (rev a1)"


def test_the_functions_of_a_card_and_nobody_elses(card):
    """A display without its audio function cannot go to a guest; the next card in the group is another matter."""
    card.add("0000:01:00.3", group=8)
    card.add("0000:02:00.0", group=7)
    found = sysfs.devices(card.paths)
    own = [device.address for device in groups.card(found["0000:01:00.1"], found)]
    assert own == ["0000:01:00.0", "0000:01:00.1", "0000:01:00.2"]
    assert [device.address for device in groups.siblings(found["0000:02:00.0"], found)] == own
