# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a guest's claim takes beside memory, processors and disk. If these fail, a guest gets the card of another one of
which only its folder tells, the device that was reserved for somebody, or the name of a domain that is there.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import guest_claims
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.guest_claims import Guests
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.queue import Wish

CARD, SECOND, OTHER = "0000:01:00.0", "0000:02:00.0", "0000:03:00.0"
FLAVOR = {"name": "kg1", "extra_specs": {"pci_passthrough:alias": "a1:2, a2"}}


class Host:
    """kvm1: what libvirt, the folder of guests and the table of devices say, and what is written into the table."""

    def __init__(self, monkeypatch, domains=(), folders=(), rows=(), of_folders=None):
        self.name, self.pci, self.done, self.looks = "kvm1", "paths", [], 0
        self.config = SimpleNamespace(kvm=SimpleNamespace(libvirt_uri="qemu:///x", aliases="its aliases"))
        rows = [SimpleNamespace(holder=holder, address=address) for holder, address in rows]
        self.store = SimpleNamespace(allocations=lambda of=None: [row for row in rows if of in (None, row.holder)])
        parts = dict(
            Libvirt=lambda _deadline, _uri: SimpleNamespace(names=lambda: self._names(domains)),
            of_guest=lambda _host, name: f"{name} lies there" if name in folders else None,
            is_there=lambda name, _paths: name == "defined",
            free_again=lambda _host, row: self.done.append(("free", row.address)),
            of_no_claim=lambda _host: of_folders or {},
            allocation=SimpleNamespace(
                requested=lambda flavor, aliases, name: flavor.get("extra_specs") and [(aliases, name)],
                write_down=lambda _store, holder, address, _paths: self.done.append((holder, address)),
                allocate=lambda _store, *words: self.done.append(words),
            ),
        )
        for name, part in parts.items():
            monkeypatch.setattr(guest_claims, name, part)

    def _names(self, domains):
        self.looks += 1
        return domains


def guests(host, flavor=None, devices=()):
    return Guests(host, SimpleNamespace(flavor=FLAVOR if flavor is None else flavor, devices=devices))


def test_what_the_flavor_asks_for_is_said_in_its_words(monkeypatch):
    """Lost: what a request waits for, in the line that says so."""
    host = Host(monkeypatch)
    assert (guests(host).asked, guests(host).was_free) == ("2 × a1, 1 × a2", "2 × a1, 1 × a2, ")
    assert (guests(host, {}).asked, guests(host, {}).was_free) == ("", "")


def test_what_is_held_for_others_is_not_allocated(monkeypatch):
    """Lost: the device that a reservation, or the queue's first, is to get."""
    host = Host(monkeypatch)
    one = guests(host, devices=[OTHER])
    wish = Wish("lab", "ann", 0.0, 1, 1)
    one.reserved, one.left = {SECOND: "is reserved for bob"}, SimpleNamespace(devices={CARD: wish})
    held = {CARD: "held for lab of ann, which waits and goes first", SECOND: "is reserved for bob"}
    assert one.held == held
    one.allocate(SimpleNamespace(instance="db", holder="domain:db"))
    assert host.done == [("domain:db", [("its aliases", "kvm1")], "paths", [OTHER], held)]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("db", "db lies there"),
        ("web", "there is a domain web already that is no instance: rename it, or choose another name"),
        ("defined", "there is a domain defined already that is no instance: rename it, or choose another name"),
        ("new", None),
    ],
)
def test_a_name_that_is_there_is_refused(monkeypatch, name, why):
    """Lost: a guest that somebody made by hand, or of which no claim is known, to one of its name."""
    host = Host(monkeypatch, domains=["web"], folders=["db"])
    one = guests(host)
    assert one.taken(name) == why
    one.look()
    assert one.taken(name) == why
    assert host.looks == (1 if name == "db" else 2), "libvirt's first answer may take a minute: it is asked once"
    with pytest.raises(BadInput, match="virsh takes it for a domain's number or UUID: choose another name"):
        one.taken("7")


def test_what_only_a_folder_tells_of_is_written_down_before_a_device_is_chosen(monkeypatch):
    """Lost: the card of a guest whose row an older database lost, to the next claim; or its own rows of an earlier
    claim, for which it would have two.
    """
    rows = [("domain:db", CARD), ("domain:web", SECOND)]
    host = Host(monkeypatch, rows=rows, of_folders={OTHER: ["old", "copy"], SECOND: ["web"]})
    guests(host).allocate(SimpleNamespace(instance="db", holder="domain:db"))
    assert host.done[:2] == [("free", CARD), ("domain:old", OTHER)]
    assert [words[0] for words in host.done[2:]] == ["domain:db"]
    host.done.clear()
    guests(host, {}).allocate(SimpleNamespace(instance="new", holder="domain:new"))
    assert host.done == [], "no device is asked for, and no sysfs is read"
