# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest of which somebody made snapshots (virsh snapshot-create-as --disk-only, then blockcommit, as is printed of
overlays: libvirt keeps what it noted of them), or a clone that lies on its disk (qemu-img create -b). If these fail,
the clone loses the disk below its own; or the guest is ended by force for a rebuild that libvirt then refuses.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import BARE

#: As libvirt shows a domain that runs: with the chain of files below its disk.
CLONE = """<domstatus state='running'><domain type='qemu' id='7'><name>clone</name>
<uuid>11111111-1111-1111-1111-111111111111</uuid><devices><disk type='file' device='disk'>
<driver name='qemu' type='{kind}'/><source file='{over}'/>{chain}<target dev='vda'/></disk>
</devices></domain></domstatus>
"""
CHAIN = "<backingStore type='file'><format type='raw'/><source file='{own}'/><backingStore/></backingStore>"
VERBS = pytest.mark.parametrize(("verb", "options"), [("absent", {}), ("rebuilt", {"fresh": True})])


@pytest.fixture
def own(site):
    """The disk of guest a, which is stopped."""
    site.provision("a", flavor=BARE)
    site.do("stopped", "a")
    return site.folder / "guests-files/a/disk.raw"


def overlay(path, on, kind="raw"):
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", kind, "-b", on, path], check=True)
    return path


def clone(folder, over, kind="qcow2", chain=""):
    """libvirt's file of it, as it runs or is defined."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    text = CLONE.format(over=over, kind=kind, chain=chain)
    if not str(folder).endswith("/run/libvirt/qemu"):
        text = ElementTree.tostring(ElementTree.fromstring(text).find("domain"), encoding="unicode")
    path = Path(folder, "clone.xml")
    path.write_text(text)
    return path


@VERBS
def test_a_disk_on_which_a_running_clone_lies_stays(site, own, verb, options):
    """Where the other domain names the same file itself, it is said: end that domain first."""
    over, was = overlay(site.folder / "clone.qcow2", own), own.stat().st_ino
    runs = clone(site.virt.paths.running_domains, over, chain=CHAIN.format(own=own))
    said = site.do(verb, "a", **options)["msg"]
    assert own.exists(), "removed, and a domain runs from an overlay on it"
    assert own.stat().st_ino == was
    assert f"domain clone: has {over}, an overlay on {own}" in said
    assert f"virsh blockpull clone {over} --wait" in said
    assert f"domain clone: has {over}, an overlay on {own}" in site.do("running", "a")["msg"]
    runs.unlink()
    assert not site.do(verb, "a", **options).get("failed")


@pytest.mark.parametrize(("verb", "options", "depth"), [("absent", {}, 2), ("rebuilt", {"fresh": True}, 1)])
def test_so_does_that_of_a_clone_that_is_down(site, own, verb, options, depth):
    """It may itself have a snapshot; the guest may be started, and is ended once the clone has all of its own."""
    over = overlay(site.folder / "clone.qcow2", own)
    top = over if depth == 1 else overlay(site.folder / "clone.snap1", over.name, "qcow2")
    clone(site.virt.paths.domains, top)
    said = site.do(verb, "a", **options)["msg"]
    assert own.exists()
    assert f"domain clone: has {top}, an overlay on {own}" in said
    line = f"qemu-img rebase -b '' {top}"
    assert line in said
    assert not site.provision("a", flavor=BARE).get("failed")
    site.do("stopped", "a")
    subprocess.run(line, shell=True, check=True)
    assert not site.do(verb, "a", **options).get("failed")


def test_a_disk_of_another_guest_keeps_nobody_from_an_end_by_what_its_guest_writes(site, own):
    """Lost: each end of an instance whose name another tenant knows, and has written as an overlay's header."""
    raw = overlay(site.folder / "raw", own)
    clone(site.virt.paths.domains, overlay(site.folder / "clone.qcow2", raw))
    assert not site.do("absent", "a").get("failed")
    clone(site.virt.paths.domains, raw, kind="raw")
    site.provision("a", flavor=BARE)
    assert not site.do("absent", "a").get("failed")


@pytest.mark.parametrize(("verb", "options", "runs"), [("absent", {}, False), ("rebuilt", {"fresh": True}, True)])
@pytest.mark.parametrize("noted", ["snapshots", "checkpoints"])
def test_one_with_snapshots_or_checkpoints_is_ended(site, own, noted, verb, options, runs):
    """Lost: the guest, ended by force, for libvirt undefines no domain of which it has noted some."""
    if runs:
        site.provision("a", flavor=BARE)
    (site.virt.root / noted).touch()
    done = site.do(verb, "a", **options)
    assert not done.get("failed"), done["msg"]
