# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest on one of two hosts of a test, with the playbooks that move and end it (played_moves.py)."""

from __future__ import annotations

import os

from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD
from ansible_collections.hetero.compute.tests.unit.instances.played_moves import Played

MARK = b"a week of work"


class Guests(Played):
    """win runs on one of the two hosts."""

    def __init__(self, two):
        old, new, self.here, opened = two
        super().__init__(opened, {"kvm1": old, "kvm2": new}, "win", "alice", lambda site: site.folder / "guests-files")

    def provide(self):
        """Have it there, with something of its own."""
        if self.states():
            return
        with self.here(self.sites["kvm1"]) as site:
            done = site.provision("win", lease_hours=5)
            assert not done.get("failed"), done
        with open(self.disk("kvm1"), "r+b") as file:
            file.seek(512)  # in front of the file system
            file.write(MARK)

    def disk(self, name):
        return os.path.join(self.folder_of(self.sites[name]), "win/disk.raw")

    def running(self):
        found = []
        for name, site in self.sites.items():
            with self.here(site):
                domain = site.virt.domain("win")
                found += [name] if domain.defined and domain.active else []
        return found

    def autostarts(self):
        found = []
        for name, site in self.sites.items():
            found += [name] if (site.folder / "etc/libvirt/qemu/autostart/win.xml").exists() else []
        return found

    def must_hold(self, why):
        """What holds at any time."""
        assert len(self.running()) < 2, f"it runs twice: {why}"
        assert len(self.autostarts()) < 2, f"both hosts start it at their boot: {why}"
        self.must_be_closed()

    def must_run(self, why):
        """It runs once, is whole, and nothing is left of it elsewhere."""
        states = self.states()
        assert list(states.values()) == ["running"], (states, why)
        at = next(iter(states))
        assert self.running() == [at], why
        with open(self.disk(at), "rb") as file:
            file.seek(512)
            assert file.read(len(MARK)) == MARK, f"it has lost its data: {why}"
        for name, site in self.sites.items():
            assert (site.table() == {CARD: "domain:win"}) == (name == at), why
            assert name == at or not os.path.lexists(os.path.dirname(self.disk(name))), why
        self.must_be_recorded()

    def must_be_gone(self, why):
        assert self.states() == {}, why
        for site in self.sites.values():
            assert (site.files("win"), site.table(), site.drivers()[CARD]) == ([], {}, "pci-stub"), why
        self.must_be_recorded()
