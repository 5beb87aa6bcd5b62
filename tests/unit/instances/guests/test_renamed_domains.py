# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest whose domain somebody renamed (virsh domrename a b), and which runs under that name. Lost: its disk, which
its end removed while the guest ran on it; and its address and its cards, which the next one got, for the end said that
guest and disk were removed.
"""

from __future__ import annotations

from contextlib import suppress
from xml.etree import ElementTree

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.domain import Libvirt
from ansible_collections.hetero.compute.tests.unit.instances.guests.conftest import KG1
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import (
    BARE,
    found,
    is_there,
    write,
)


@pytest.fixture(autouse=True)
def ended(site):
    yield
    for name in ("a", "b", "eve"):
        with suppress(HeteroError):
            Libvirt(Deadline(60)).domain(name).stop()
    for pid in site.virt.root.glob("guests/*/pid"):
        pid.unlink()


def rename(name, to):
    libvirt = Libvirt(Deadline(60))
    domain = libvirt.domain(name).xml(live=False)
    libvirt.domain(name).undefine()
    domain.find("name").text = to
    libvirt.define(ElementTree.tostring(domain, encoding="unicode"))


def renamed(site, flavor):
    site.provision("a", flavor=flavor)
    site.do("stopped", "a")
    rename("a", "b")
    Libvirt(Deadline(60)).domain("b").start()


@pytest.mark.parametrize("flavor", [BARE, KG1], ids=["bare", "card"])
@pytest.mark.parametrize(("verb", "options"), [("absent", {}), ("rebuilt", {"fresh": True})])
def test_its_disk_is_not_removed_while_it_runs(site, verb, options, flavor):
    renamed(site, flavor)
    write(site, "guests-files")
    done = site.do(verb, "a", **options)
    assert "domain b: by its UUID this is guest a under another name: nothing is touched" in done["msg"]
    assert Libvirt(Deadline(60)).domain("b").active
    assert is_there(site, "guests-files")


def test_it_is_ended_once_it_has_its_name_again(site):
    renamed(site, BARE)
    said = found(site)
    assert any("virsh domrename b a" in text for text in said), said
    Libvirt(Deadline(60)).domain("b").stop()
    assert "virsh domrename b a" in site.do("running", "a")["msg"]  # libvirt would refuse a second of its UUID
    rename("b", "a")
    assert found(site) == []
    assert not site.do("absent", "a").get("failed")


def test_its_address_is_given_to_nobody(site):
    renamed(site, BARE)
    site.do("absent", "a")
    assert site.provision("eve", owner="eve", flavor=BARE).get("msg") is None


@pytest.mark.parametrize("verb", ["absent", "running"])
def test_a_domain_that_runs_from_its_disk_is_told(site, verb):
    """Such as one that was made by hand of the guest's description, with a UUID of its own."""
    renamed(site, BARE)
    libvirt = Libvirt(Deadline(60))
    live = site.folder / "run/libvirt/qemu/b.xml"
    uuid = libvirt.domain("b").xml(live=False).findtext("uuid")
    for path in (live, site.folder / "etc/libvirt/qemu/b.xml"):
        path.write_text(path.read_text().replace(uuid, "11111111-1111-1111-1111-111111111111"))
    disk = site.folder / "guests-files/a/disk.raw"
    assert f"domain b: runs from {disk}, which is the disk of guest a: nothing" in site.do(verb, "a")["msg"]
    libvirt.domain("b").stop()
    assert not site.do(verb, "a").get("failed")
