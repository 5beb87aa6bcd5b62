# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt's own files of domains. If these fail, a card that a guest has, or starts with, is given to another one."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci import domains
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.paths import below

CARD = "<address domain='0x0000' bus='0x01' slot='0x00' function='0x0'/>"
HOSTDEV = f"<hostdev mode='subsystem' type='pci'><source>{CARD}</source></hostdev>"
PORT = (
    "<interface type='hostdev'><source><address type='pci' bus='0x81' slot='0x10' function='0x2'/></source></interface>"
)


def domain(name, devices="", uuid="u-1"):
    return f"<domain type='kvm'><name>{name}</name><uuid>{uuid}</uuid><devices>{devices}</devices></domain>"


@pytest.fixture
def paths(tmp_path):
    found = below(str(tmp_path))
    (tmp_path / "etc/libvirt/qemu").mkdir(parents=True)
    (tmp_path / "run/libvirt/qemu").mkdir(parents=True)
    return found


def put(folder, name, text):
    with open(f"{folder}/{name}.xml", "w", encoding="utf-8") as file:
        file.write(text)
    return file.name


def test_who_has_which_device(paths):
    """Lost: a card, to two guests."""
    put(paths.domains, "db", domain("db", HOSTDEV + PORT))
    put(paths.domains, "web", domain("web", HOSTDEV))
    put(paths.running_domains, "db", f"<domstatus state='running'>{domain('db', HOSTDEV)}</domstatus>")
    defined, running = domains.holders(paths)
    assert defined == {"0000:01:00.0": ["db", "web"], "0000:81:10.2": ["db"]}
    assert running == domains.running(paths) == {"0000:01:00.0": ["db"]}


def test_other_devices_of_a_guest_are_no_cards(paths):
    """Lost: cards that nobody has, as one of USB or a bridge has such words too."""
    other = "<hostdev mode='subsystem' type='usb'><source><address bus='1' device='2'/></source></hostdev>"
    bridge = "<interface type='bridge'><source bridge='br0'/></interface>"
    put(paths.domains, "a", domain("a", other + bridge + "<hostdev type='pci'><source/></hostdev>"))
    assert domains.holders(paths) == ({}, {})


def test_a_domain_by_its_name_its_file_and_its_uuid(paths):
    """Lost: that a domain of the name is there, and whose."""
    put(paths.domains, "a", domain("a", uuid="u-a"))
    put(paths.running_domains, "b", domain("b", uuid="u-b"))
    put(paths.domains, "c", "<domain><devices/></domain>")
    assert domains.uuids(paths) == {"u-a", "u-b", None}
    assert [domains.is_there(name, paths) for name in "abcd"] == [True, True, True, False]


def test_without_libvirt_nobody_has_anything(tmp_path):
    """Lost: the answer of a host that has no libvirt."""
    assert domains.holders(below(str(tmp_path / "none"))) == ({}, {})


@pytest.mark.parametrize("left", ["", "\0" * 512, " \n"])
def test_a_file_that_a_power_cut_emptied_is_no_domain(paths, left):
    """Lost: all devices of the host, to one file; and who is told which file that is."""
    path = put(paths.domains, "db", left)
    assert domains.holders(paths) == ({}, {})
    assert domains.emptied("db", paths) == path
    put(paths.running_domains, "db", domain("db"))
    assert domains.emptied("db", paths) is None, "what runs is written again by libvirt"
    assert domains.emptied("none", paths) is None


def test_a_file_that_is_no_xml_is_told_and_not_passed_over(paths):
    """Lost: the card that is in the file, which somebody wrote by hand."""
    path = put(paths.domains, "db", "<domain><name>db</name>")
    with pytest.raises(HeteroError, match=r"db\.xml: is no XML .*: let virsh write it again") as error:
        domains.holders(paths)
    assert error.value.thing == path
    assert domains.emptied("db", paths) is None
