# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container's move, killed before each of its writes, as a whole or in one host's module; then what a person types
next. If these fail, its root is lost or runs twice, others read it, or a GPU is nobody's.

Tests compute_host/departures.py, compute_host/arrivals.py, site/moves.py, plugin_utils/move_steps.py.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import folders
from ansible_collections.hetero.compute.tests.turns import DAY
from ansible_collections.hetero.compute.tests.unit.instances.conftest import CG1, Site
from ansible_collections.hetero.compute.tests.unit.instances.played_moves import Played

PARTS = 8
MARK = "a week of work"
SMALL = dict(CG1, local_gb=1)


class Containers(Played):
    """ml-8 runs on one of the two hosts."""

    flavor = SMALL

    def __init__(self, old, new):
        sites = {"gpu1": old, "gpu2": new}
        super().__init__(lambda site: site.host(), sites, "ml-8", "jo", lambda site: site.lxcpath)

    def provide(self):
        """Have it there, with something of its own."""
        if self.states():
            return
        site = self.sites["gpu1"]
        site.claim(flavor=self.flavor, lease_hours=5)
        done = site.up()
        assert not done.get("failed"), done
        self.work("gpu1").write_text(MARK)
        os.chown(self.work("gpu1"), 1000, 1000)

    def work(self, name):
        return Path(self.sites[name].container().folder) / "rootfs/root/work"

    def running(self):
        return [name for name, site in self.sites.items() if site.container().defined and site.container().running]

    def must_hold(self, why):
        """What holds at any time."""
        assert len(self.running()) < 2, f"it runs twice: {why}"
        starts = []
        for site in self.sites.values():
            file = Path(site.container().config_file)
            starts += [site.settings["name"]] if file.exists() and "lxc.start.auto = 1" in file.read_text() else []
        assert len(starts) < 2, f"both hosts start it at their boot: {why}"
        self.must_be_closed()

    def must_run(self, why):
        """It runs once, is whole, and nothing is left of it elsewhere."""
        states = self.states()
        assert list(states.values()) == ["running"], (states, why)
        at = next(iter(states))
        assert self.running() == [at], why
        assert (self.work(at).read_text(), self.work(at).stat().st_uid) == (MARK, 1000), why
        for name, site in self.sites.items():
            held = [gpu for gpu in site.info()["gpus"] if gpu["holder"]]
            assert len(held) == (2 if name == at else 0), why
            assert name == at or self.left(site) == set(), why
        self.must_be_recorded()

    @staticmethod
    def left(site):
        return set(os.listdir(site.lxcpath) if site.lxcpath.is_dir() else []) - {folders.MARK}

    def must_be_gone(self, why):
        assert self.states() == {}, why
        assert all(site.nothing_is_left() for site in self.sites.values()), why
        self.must_be_recorded()


@pytest.fixture
def ml(site, tmp_path, image):
    folder = tmp_path / "second"
    folder.mkdir()
    other = Site(folder, site.machine, image)
    other.settings.update(name="gpu2", addresses=["10.0.81.12", "10.0.81.13"])
    other.config.write_text(json.dumps(other.settings))
    site.settings.update(addresses=["10.0.81.10", "10.0.81.11"])
    site.config.write_text(json.dumps(site.settings))
    with other.host():  # before there are containers, which would be signs of a database that was lost
        pass
    yield Containers(site, other)
    other.end()


def swept(containers, step, first, capsys):
    count, tried = containers.sweep(step, first)
    with capsys.disabled():
        print(f"\na container's move has {count} points, {tried} tried")
    return count, tried


def test_killed_at_a_sample_of_its_writes_a_container_goes_on(ml, capsys):
    """Lost: an instance whose controller, or one of whose hosts, dies in the middle of its move."""
    _count, tried = swept(ml, 200, DAY % 200, capsys)
    assert tried


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_each_of_its_writes_a_container_goes_on(ml, part, capsys):
    """Lost: the same, at a point that the sample did not try."""
    count, tried = swept(ml, PARTS, part, capsys)
    assert tried >= 0.9 * (count // PARTS)
