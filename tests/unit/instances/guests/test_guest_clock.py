# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's clock that jumps while leases run. If these fail, tenants lose guests and data to a wrong clock."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from functools import partial

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host import Host, Places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host import reap
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import node_clock
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests import KG1

YEAR = 365 * 86400.0


def test_a_clock_that_jumped_ends_no_guest_and_an_operators_word_does(site, monkeypatch, capfd):
    """Lost: all guests and containers of a host whose clock was wrong for the minute between two turns."""
    monkeypatch.setattr(reap, "Host", partial(Host, places=Places(pci=site.virt.paths)))
    bare = dict(KG1, extra_specs={"hypervisor": "s== kvm"})
    site.provision("ml-9", flavor=bare, lease_hours=3)
    assert reap.main(["--config", str(site.config)]) == 0
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + YEAR)
    assert reap.main(["--config", str(site.config), "--kind", "kvm"]) == 1
    said = capfd.readouterr().out
    assert "ml-9 of alice: its lease is over, but the clock shows 20" in said
    assert "nothing ends by a jump: set the clock; where it is right: hetero host reap --clock-is-right" in said
    with site.host() as host:
        assert reap.reap(host, print)
    assert [one["state"] for one in site.info()["instances"]] == ["running"]
    monkeypatch.setattr(time, "time", lambda: real() - YEAR)
    assert reap.main(["--config", str(site.config)]) == 1
    assert "leases end late: set the clock; where it is right: hetero host reap" in capfd.readouterr().out
    for late in (
        lambda: site.do("extended", "ml-9", lease_hours=5),
        lambda: site.provision("ml-10", flavor=bare, lease_hours=5),
    ):
        with pytest.raises(Refused, match="a lease would end at once when it is set: set the clock"):
            late()
    monkeypatch.setattr(time, "time", lambda: real() + YEAR)
    assert reap.main(["--config", str(site.config), node_clock.BY_WORD]) == 0
    assert site.info()["instances"] == []


@pytest.mark.parametrize("booted", [False, True])
def test_a_guests_lease_has_its_clock_held_against_the_moment_it_began(site, monkeypatch, capfd, booted):
    """Lost: a guest, to a step of the clock before the reaper's first turn, or to a battery that shows tomorrow."""
    monkeypatch.setattr(reap, "Host", partial(Host, places=Places(pci=site.virt.paths)))
    site.provision("ml-9", flavor=dict(KG1, extra_specs={"hypervisor": "s== kvm"}), lease_hours=3)
    site.do("extended", "ml-9", lease_hours=4)
    if booted:
        (site.folder / "boot_id").write_text("another\n")
        monkeypatch.setattr(node_clock, "BOOT_ID", str(site.folder / "boot_id"))
        monkeypatch.setattr(node_clock, "began", lambda: time.clock_gettime(time.CLOCK_BOOTTIME))
        monkeypatch.setattr(node_clock, "synchronised", lambda: False)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + YEAR / 365)
    assert reap.main(["--config", str(site.config)]) == 1
    assert "more than was counted" in capfd.readouterr().out
    assert [one["state"] for one in site.info()["instances"]] == ["running"]


def test_a_host_whose_mark_is_lost_ends_nothing_by_a_clock_of_another_year(site, monkeypatch, capfd):
    """Lost: all guests and containers of a host that was set up anew from a backup, with a wrong clock."""
    monkeypatch.setattr(reap, "Host", partial(Host, places=Places(pci=site.virt.paths)))
    site.provision("ml-9", flavor=dict(KG1, extra_specs={"hypervisor": "s== kvm"}), lease_hours=3)
    with site.host(create=False) as host:
        os.unlink(node_clock.path_of(host.store.path))  # it was kept with the lease
    monkeypatch.setattr(node_clock, "synchronised", lambda: True)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + YEAR)
    for _turn in range(2):
        assert reap.main(["--config", str(site.config)]) == 1
        said = capfd.readouterr().out
        assert "ml-9 of alice: its lease is over, but the clock shows 20" in said
        assert "and when it was believed last is not known: nothing ends by a jump" in said
    assert [one["state"] for one in site.info()["instances"]] == ["running"]
    assert reap.main(["--config", str(site.config), node_clock.BY_WORD]) == 0
    assert site.info()["instances"] == []


def test_a_host_whose_clock_is_ahead_gives_no_lease_and_says_so_of_one_that_is_extended(site, monkeypatch):
    """Lost: a GPU, for a year once the clock is set; or the way to extend what is to stay, where it is right."""
    bare = dict(KG1, extra_specs={"hypervisor": "s== kvm"})
    site.provision("ml-9", flavor=bare, lease_hours=3)
    monkeypatch.setattr(node_clock, "synchronised", lambda: False)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + YEAR)
    late = "more than was counted: a lease would end too late once it is set: set the clock; .* right: hetero host reap"
    with pytest.raises(Refused, match=late):
        site.provision("ml-10", flavor=bare, lease_hours=5)
    assert "it ends too late once that is set" in str(site.do("extended", "ml-9", lease_hours=5))
    monkeypatch.setattr(node_clock, "synchronised", lambda: True)
    assert "too late" not in str(site.do("extended", "ml-9", lease_hours=6))


@pytest.mark.parametrize("known", ["event", "record"])
def test_what_a_host_writes_while_its_clock_is_behind_does_not_hide_that_it_is(site, monkeypatch, capfd, known):
    """Lost: a guest and its disk, by an extension whose end was over two days before it was given."""
    monkeypatch.setattr(reap, "Host", partial(Host, places=Places(pci=site.virt.paths)))
    bare = dict(KG1, extra_specs={"hypervisor": "s== kvm"})
    site.provision("ml-9", flavor=bare, lease_hours=10)
    with site.host(create=False) as host:
        os.unlink(node_clock.path_of(host.store.path))
    if known == "record":  # an older copy of the database was put back
        with closing(sqlite3.connect(host.store.path)) as db:
            db.execute("DELETE FROM events")
            db.execute("DELETE FROM instances")
            db.commit()
    monkeypatch.setattr(node_clock, "synchronised", lambda: False)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 2 * YEAR / 365)
    for _time in range(2):
        reap.main(["--config", str(site.config)])
        with site.host() as host:
            host.store.event("ml-10", "note", "at the wrong time")
        for late in (
            lambda: site.do("extended", "ml-9", lease_hours=5),
            lambda: site.provision("ml-10", flavor=bare, lease_hours=5),
        ):
            with pytest.raises(Refused, match=r"newest that is written .* a lease would end at once when it is set"):
                late()
    said = capfd.readouterr().out
    assert ("leases end late: set the clock" in said) is (known == "event"), "by the record alone it is nobody's"
    monkeypatch.setattr(time, "time", real)
    if known == "event":
        assert reap.main(["--config", str(site.config)]) == 0
        assert reap.main(["--config", str(site.config), node_clock.BY_WORD]) == 0
        assert [one["state"] for one in site.info()["instances"]] == ["running"]
