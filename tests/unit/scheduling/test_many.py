# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scheduling and status among many boards: no more work for a board when there are more boards.

bench/filters.py measures seconds; here calls are counted, and how often all nodes are gone through.

Tests plugin_utils/filters/schedule.py.
"""

from __future__ import annotations

import cProfile
import pstats

import pytest

from ansible_collections.hetero.compute.bench.big_site import Site
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.nodes import verdicts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.schedule import Schedule
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.schedule import schedule
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_page import status_page
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_table import status_table

FLAVOR = {"name": "tp64.8x8", "memory_mb": 16384, "cpu_arch": "tilepro64"}


@pytest.fixture(scope="module")
def sites():
    """Three sites, each with twice the proxy nodes of the one before; what is made up is the same on each."""
    return [Site(proxies, boards_each=40, hosts=1) for proxies in (2, 4, 8)]


def calls(work):
    """How many functions it calls, templates compiled and modules imported before."""
    work()
    profile = cProfile.Profile()
    profile.runcall(work)
    return pstats.Stats(profile).total_calls


@pytest.mark.parametrize(
    "work",
    [
        lambda site: schedule([*site.answers, *site.host_answers], FLAVOR, name="bob"),
        lambda site: schedule([*site.answers, *site.host_answers], FLAVOR, name="bob", count=90, strategy="pack"),
        lambda site: schedule(site.answers, dict(FLAVOR, memory_mb=2**30), name="bob"),
        lambda site: status_table(site.seen, {"tp64.8x8": FLAVOR}, site.seen_hosts),
        lambda site: status_page(site.seen, hosts=site.seen_hosts),
    ],
    ids=["schedule", "pack", "nobody", "table", "page"],
)
def test_a_board_costs_the_same_among_many(sites, work):
    """A request among ten thousand boards must not wait for its own controller."""
    few, more, many = (calls(lambda site=site: work(site)) for site in sites)
    assert many - more < 2.1 * (more - few), (few, more, many)


def test_nodes_are_gone_through_a_fixed_number_of_times(sites):
    """To look at all nodes for each of them takes seconds when there are thousands, and hours when there are more."""

    class Counted(list):
        times = 0

        def __iter__(self):
            self.times += 1
            return super().__iter__()

    times = []
    for site in sites:
        found = Counted(verdicts(FLAVOR, site.answers))
        one = Schedule(FLAVOR, found, count=3)
        assert all((one.text("bob", 1), one.waiting(), one.candidates, one.possible))
        times.append(found.times)
    assert times[0] == times[1] == times[2] > 0
