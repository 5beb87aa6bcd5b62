# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A disk of data in a guest's folder that its domain names no more: it was attached to the running guest alone (virsh
attach-disk --live), and the guest was stopped since; or its operator had typed the first half of the printed way (virsh
detach-disk), and types the verb again; or libvirt has its domain no more. Lost: all on it: an end or a rebuild removes
it without a word.
"""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.domain import Libvirt
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_more_disks import DATA, attach
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import BARE

VERBS = pytest.mark.parametrize(("verb", "options"), [("absent", {}), ("rebuilt", {"fresh": True})])


@pytest.fixture
def data(site):
    """A file with data in the folder of guest a, which runs."""
    site.provision("a", flavor=BARE)
    data = site.folder / "guests-files/a/data.raw"
    data.write_bytes(b"data" * 1000)
    return data


def detach(data):
    libvirt = Libvirt(Deadline(60))
    domain = libvirt.domain("a").xml(live=False)
    (disk,) = [one for one in domain.findall("devices/disk") if one.find("source").get("file") == str(data)]
    domain.find("devices").remove(disk)
    libvirt.define(ElementTree.tostring(domain, encoding="unicode"))


def is_kept(site, data, verb, options):
    """Whether a verb is refused until a person has moved the file out of there, as is printed."""
    said = site.do(verb, "a", **options)["msg"]
    assert f"{data.parent}: holds {data.name}, which was not made for the guest and would go with it" in said
    assert "move it out of there" in said
    data.rename(site.folder / data.name)
    assert not site.do(verb, "a", **options).get("failed")
    return True


@VERBS
def test_after_the_first_half_of_the_printed_way(site, data, verb, options):
    site.do("stopped", "a")
    attach(data)
    assert f"virsh detach-disk a {data} --config" in site.do(verb, "a", **options)["msg"]
    detach(data)
    assert is_kept(site, data, verb, options)


@VERBS
def test_one_that_only_the_running_guest_had(site, data, verb, options):
    live = site.folder / "run/libvirt/qemu/a.xml"
    text = live.read_text()
    assert "</devices>" in text
    live.write_text(text.replace("</devices>", DATA.format(path=data, target="sda") + "</devices>"))
    assert "the same with --live where it runs with it" in site.do(verb, "a", **options)["msg"]
    site.do("stopped", "a", how="hard")
    assert is_kept(site, data, verb, options)


@VERBS
def test_one_whose_domain_was_undefined(site, data, verb, options):
    """By hand, or as /etc/libvirt was put back from the same day: domain.xml is as the guest was made, without it."""
    site.do("stopped", "a")
    attach(data)
    assert f"{data} beside its root" in site.do(verb, "a", **options)["msg"]
    site.virt.domain("a").undefine()
    assert is_kept(site, data, verb, options)


@VERBS
def test_one_in_a_folder_of_its_own(site, data, verb, options):
    site.do("stopped", "a")
    own = data.parent / "volumes"
    own.mkdir()
    data.rename(own / data.name)
    assert is_kept(site, own, verb, options)


@VERBS
def test_what_its_making_and_libvirt_leave_there_goes_with_it(site, data, verb, options):
    """Lost: each end of a guest whose console was set aside, or one of whose writers was killed."""
    site.do("stopped", "a")
    for name in ("data.raw", "console.log.0", ".domain.xml.1234~", ".disk.uuid.77~", "disk.raw.~1~"):
        (data.parent / name).touch()
    data.unlink()
    (data.parent / "lost+found").mkdir()
    done = site.do(verb, "a", **options)
    assert not done.get("failed"), done["msg"]
    anew = ["console.log", "disk.raw", "disk.uuid", "domain.xml", "initrd", "kernel"]
    assert site.files("a") == ([] if verb == "absent" else anew)


def test_what_was_put_there_before_a_making_that_was_cut_off_is_ended(site, data):
    """Nor when it is made anew, as its rebuild was cut off: its description is gone by then."""
    site.do("stopped", "a")
    (data.parent / "domain.xml").unlink()
    with site.host() as host:
        host.store.put("a", state="rebuilding")
    said = site.do("running", "a")["msg"]
    assert f"holds {data.name}, which was not made for the guest" in said
    assert data.exists()
