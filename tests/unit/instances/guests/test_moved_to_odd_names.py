# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of all guests, moved to one whose name sed or a shell does not take as it is, or that has the former one's
in it. If these fail, what is printed leads nowhere, or to paths that nobody has.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.domain import Libvirt
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import (
    BARE,
    found,
    is_whole,
)

ELEMENT = {"kernel": "<kernel>{}</kernel>", "initrd": "<initrd>{}</initrd>", "root": '<source file="{}" />'}


@pytest.fixture
def one(site):
    site.provision("a", flavor=BARE)
    site.do("stopped", "a")
    return site


def move(site, to):
    to.parent.mkdir(parents=True, exist_ok=True)
    (site.folder / "guests-files").rename(to)
    site.configure(guests_folder=str(to))


def edited(said):
    """Do by hand what is said of `virsh edit`."""
    assert not re.search(r"dumpxml|\bsed\b", said)
    path, word = re.search(r"by virsh edit a, which is to name (.*) as its (\w+);", said).groups()
    libvirt = Libvirt(Deadline(60))
    text = ElementTree.tostring(libvirt.domain("a").xml(live=False), encoding="unicode")
    before, after = ELEMENT[word].split("{}")
    text, times = re.subn(f"{before}[^<>]*?{after}", lambda _match: ELEMENT[word].format(path), text)
    assert times == 1
    libvirt.define(text)


def by_hand(site):
    for _part in ELEMENT:
        said = site.do("running", "a").get("msg")
        if said:
            edited(said)
    is_whole(site)


@pytest.mark.parametrize("name", ["r&d", "my guests", "a#b", "it's", "${HOME}", "back\\1", "ä"])
def test_it_starts_there_by_hand_as_said(one, name):
    move(one, one.folder / name)
    by_hand(one)


@pytest.mark.parametrize("is_set", [True, False])
def test_what_is_set_already_is_not_set_again(one, is_set):
    """Somebody has set the disk's path by virsh edit, as another error says, and not the kernel's."""
    new = one.folder / "x" / str(one.folder)[1:] / "guests-files"
    move(one, new)
    if is_set:
        libvirt = Libvirt(Deadline(60))
        domain = libvirt.domain("a").xml(live=False)
        domain.find("devices/disk/source").set("file", str(new / "a/disk.raw"))
        libvirt.define(ElementTree.tostring(domain, encoding="unicode"))
    by_hand(one)
    assert found(one) == []
