# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which domains run from a guest's disk. If these fail, a rebuild removes the disk from under another domain, or the
only copy of what a guest wrote.
"""

from __future__ import annotations

import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.paths import below
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import domain_disks

DISK = "<disk type='file' device='disk'><driver type='raw'/><source file='{}'/></disk>"
QCOW2 = "<disk type='file' device='disk'><driver type='qcow2'/><source file='{}'/></disk>"


def domain(name, *disks, uuid="u-other"):
    return f"<domain><name>{name}</name><uuid>{uuid}</uuid><devices>{''.join(disks)}</devices></domain>"


@pytest.fixture
def host(tmp_path):
    """libvirt's folders, and the disk of guest db: a function that has a domain defined, or running."""
    paths = below(str(tmp_path))
    for folder in (paths.domains, paths.running_domains, f"{tmp_path}/etc/libvirt/storage"):
        Path(folder).mkdir(parents=True)
    disk = tmp_path / "db" / "disk.raw"
    disk.parent.mkdir()
    disk.touch()

    class Host:
        own, folder = str(disk), tmp_path

        def put(self, name, text, running=False):
            where = paths.running_domains if running else paths.domains
            Path(where, f"{name}.xml").write_text(text)

        def look(self):
            domain_disks.must_have_one_name("db", "u-db", self.own, paths)

        def carries(self, not_mounted=lambda _path: None):
            domain_disks.must_carry_none("db", self.own, paths, not_mounted)

    return Host()


def overlay(path, *lies_on):
    """A qcow2 file on others, as its header says it; each but the last is an overlay itself."""
    name = lies_on[0].encode()
    version = b"\xe2\x79\x2a\xca" + struct.pack(">I", 5) + b"qcow2" if len(lies_on) > 1 else b""
    head = struct.pack(">4sIQI", b"QFI\xfb", 3, 120, len(name)).ljust(100, b"\0") + version
    path.write_bytes(head.ljust(120, b"\0") + name)
    if len(lies_on) > 1:
        overlay(path.parent / lies_on[0], *lies_on[1:])
    return str(path)


def test_the_guest_itself_and_strangers_pass(host):
    """Lost: each verb, to a domain that has nothing to do with it."""
    host.put("db", domain("db", DISK.format(host.own), uuid="u-db"), running=True)
    host.put("web", domain("web", DISK.format("/srv/web.raw")), running=True)
    host.put("broken", "<domain>")
    host.look()
    host.carries()


def test_a_guest_under_another_name_is_known_by_its_uuid(host):
    """Lost: the guest, which runs on while its files are removed."""
    host.put("new", domain("new name", uuid="u-db"))
    with pytest.raises(Refused, match=r"domain new name: by its UUID this is guest db .*virsh domrename 'new name' db"):
        host.look()


def test_a_domain_that_runs_from_the_disk_keeps_it(host):
    """Lost: the disk of a domain that a person defined over it; also by a link."""
    link = host.folder / "link.raw"
    link.symlink_to(host.own)
    host.put("other", domain("other", DISK.format(link)))
    host.look()
    host.put("other", domain("other", DISK.format(link)), running=True)
    with pytest.raises(Refused, match=r"domain other: runs from .*disk.raw, which is the disk of guest db"):
        host.look()


@pytest.mark.parametrize("chain", [["db/disk.raw"], ["middle.qcow2", "db/disk.raw"]])
def test_an_overlay_on_the_disk_keeps_it(host, chain):
    """Lost: all that is below the overlay, by its header, however many lie over one another."""
    top = overlay(host.folder / "top.qcow2", *chain)
    host.put("other", domain("other", QCOW2.format(top)))
    with pytest.raises(Refused, match=r"domain other: has .*top.qcow2, an overlay on .*disk.raw"):
        host.carries()


def test_a_file_that_only_begins_like_an_overlay_is_none(host):
    """Lost: each rebuild, to a guest that wrote such bytes into its own disk."""
    host.put("other", domain("other", DISK.format(overlay(host.folder / "a.raw", "db/disk.raw"))))
    host.carries()
    (host.folder / "b.qcow2").write_bytes(b"QFI\xfb")
    host.put("other", domain("other", QCOW2.format(host.folder / "b.qcow2")))
    host.carries()


def test_a_volume_is_found_by_its_pool_or_not_told_apart(host):
    """Lost: an overlay that lies in a pool whose description is gone."""
    volume = "<disk type='volume' device='disk'><driver type='qcow2'/><source pool='p' volume='top.qcow2'/></disk>"
    overlay(host.folder / "top.qcow2", "db/disk.raw")
    host.put("other", domain("other", volume))
    with pytest.raises(Refused, match=r"has volume top\.qcow2 of pool p, of which libvirt has no description"):
        host.carries()
    pool = host.folder / "etc/libvirt/storage/p.xml"
    pool.write_text(f"<pool><target><path>{host.folder}</path></target></pool>")
    with pytest.raises(Refused, match="an overlay on"):
        host.carries()


def test_a_file_that_is_not_mounted_cannot_be_told_apart(host):
    """Lost: an overlay on a file system that is not mounted now."""
    host.put("other", domain("other", QCOW2.format("/mnt/top.qcow2")))
    host.carries()
    with pytest.raises(
        Refused, match=r"a file system is to be at /mnt, which is not mounted: .*nothing is touched: mount it"
    ):
        host.carries(lambda path: "/mnt" if path.startswith("/mnt/") else None)


def test_disks_are_named_by_path_or_in_words():
    """Lost: which disk an error means; and CDs, which are none."""
    text = domain(
        "a",
        DISK.format("/a.raw"),
        "<disk type='block' device='lun'><source dev='/dev/sdb'/></disk>",
        "<disk type='network' device='disk'><source protocol='rbd' name='pool/a'/></disk>",
        "<disk type='file' device='cdrom'><source file='/cd.iso'/></disk>",
        "<disk type='file' device='disk'/>",
    )
    assert domain_disks.disks_of(ElementTree.fromstring(text)) == ["/a.raw", "/dev/sdb", "rbd/pool/a (network)"]


def test_a_guest_that_runs_from_a_disk_that_it_would_not_start_from(host):
    """Lost: what it writes, which is in that disk alone."""
    folder, other = str(host.folder / "db"), str(host.folder / "bigger.raw")
    (host.folder / "bigger.raw").touch()
    assert domain_disks.leaves(folder, [host.own], [host.own], "virsh edit db") is None
    assert domain_disks.leaves(folder, [other], [other], "virsh edit db") is None
    said = domain_disks.leaves(folder, [other], [], "virsh edit db")
    assert said.startswith(f"it runs from {other}, and would start again from {host.own}: ")
    assert "(virsh edit db)" in said
    assert domain_disks.leaves(folder, [f"{folder}/gone.raw"], [], "virsh edit db") is None
