# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two plays at once, the second one in the middle of the first. If these fail, a tenant is told that an instance stays
which is gone, or what is left is what neither of the two asked for.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.tests.turns import DAY
from ansible_collections.hetero.compute.tests.unit.sweep.pausing import interleaved

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="overlay mounts need root: run as root")


#: Points that `make test` tries of each pair; `make test-all` tries all, in so many parts at a time.
SAMPLE, PARTS = 2, 4


def extend(site):
    return [site._module("board_lease", instance="jackie", hours=3)]


PLAYS = {
    "reap": lambda site: site.reap(),
    "extend": extend,
    "provision": lambda site: site.provision(),
    "bob's": lambda site: site.provision("bob"),
    "terminate": lambda site: site.terminate(),
}
#: Play → what a round that it begins starts with: whether jackie runs, and whether the lease is over.
BEGINS = {
    "reap": (True, True),
    "extend": (True, True),
    "provision": (False, False),
    "bob's": (False, False),
    "terminate": (True, False),
}


def both(site, first, second, number):
    """({play: its results}, what the first was about to write when the second began)."""
    one, other, what = interleaved(site, lambda: PLAYS[first](site), lambda: PLAYS[second](site), number)
    return {first: one, second: other}, what


def fine(results):
    assert results != "died"
    assert not any(result is None or result.get("broken") for result in results), results
    return not any(result.get("failed") for result in results)


def succeed(results):
    assert fine(results), results


def is_whole(site):
    return site.what_is_there() == site.running("jackie") and site.root_is_whole()


def is_clean(site):
    return site.what_is_there() == site.clean()


class Cleared:
    """A proxy of one board, put back to what a round begins with."""

    def __init__(self, site):
        self.site = site

    def begin(self, runs, over=False):
        """With jackie running there, whose lease is over, or with nobody."""
        site = self.site
        site.points.reset(0)
        if not (runs and is_whole(site)):
            for name in ("jackie", "bob"):
                succeed(site.terminate(name))
            assert is_clean(site)
            if runs:
                succeed(site.provision())
        if over:
            site.expire()

    def rounds(self, first, part):
        """Numbers of the writes of a play before which it stands still: all, or a sample, another one each day."""
        self.begin(*BEGINS[first])
        self.site.points.reset(0)
        succeed(PLAYS[first](self.site))
        count = self.site.points.count
        if part is None:
            step = max(1, count // SAMPLE)
            return range(1 + DAY % step, count + 1, step)
        return range(1 + part, count + 1, PARTS)


@pytest.fixture
def one(tmp_path, quick):
    place = quick(1)
    yield Cleared(place)
    place.tear_down()


def parts(first, second, sample=True):
    """The pair's parameters: the sample, and all of its points in parts."""
    samples = [pytest.param(first, second, None, id=f"{first}, {second}")] if sample else []
    return samples + [
        pytest.param(first, second, part, id=f"{first}, {second}, part {part}", marks=pytest.mark.long)
        for part in range(PARTS)
    ]


@pytest.mark.parametrize(("first", "second", "part"), [*parts("reap", "extend"), *parts("extend", "reap")])
def test_who_is_told_that_a_lease_is_longer_has_the_instance(one, first, second, part):
    """Lost: the work of a tenant who was told that there are three hours left."""
    for number in one.rounds(first, part):
        one.begin(*BEGINS[first])
        ends, what = both(one.site, first, second, number)
        why = f"{first} stood still at point {number}, before {what!r}: {ends}"
        assert fine(ends["reap"]), why
        assert is_whole(one.site) if fine(ends["extend"]) else is_clean(one.site), why


@pytest.mark.parametrize("part", [None, *[pytest.param(part, marks=pytest.mark.long) for part in range(PARTS)]])
def test_what_a_killed_reaper_has_begun_to_remove_is_extended_for_nobody(one, part):
    """Lost: the same, by a reaper that lost its power, or its memory, in between."""
    refused = 0
    for number in one.rounds("reap", part):
        one.begin(True, True)
        data = one.site.state / "board-roots" / "fs_0" / "root" / "root" / "data"
        data.write_text("the tenant's own")
        one.site.points.reset(number)
        one.site.reap()
        one.site.points.reset(0)
        why = f"killed at point {number}, before {one.site.points.killed!r}"
        (extended,) = extend(one.site)
        if extended.get("failed"):
            refused += 1
            succeed(one.site.reap())
            assert is_clean(one.site), why
        else:
            assert one.site.reap() == [dict(said=[], failed=False)], why
            succeed(one.site.provision())
            assert is_whole(one.site), why
            assert data.read_text() == "the tenant's own", why
    assert refused or part is None  # the sample may be too early for that


@pytest.mark.parametrize(
    ("first", "second", "part"),
    [
        *parts("terminate", "provision"),
        *parts("provision", "terminate"),
        *parts("terminate", "bob's", DAY % 2),
        *parts("bob's", "provision", not DAY % 2),
    ],
)
def test_two_plays_leave_what_one_after_the_other_leaves(one, first, second, part):
    """Lost: a board that runs without its root, is claimed by nobody, or has two tenants' files."""
    for number in one.rounds(first, part):
        one.begin(*BEGINS[first])
        ends, what = both(one.site, first, second, number)
        why = f"{first} stood still at point {number}, before {what!r}: {ends}"
        assert any(map(fine, ends.values())), why
        there = one.site.what_is_there()
        whole = [name for name in ("jackie", "bob") if there == one.site.running(name)]
        if whole:
            assert one.site.root_is_whole(), why
            assert fine(ends["provision" if whole == ["jackie"] else "bob's"]), why
            continue
        # who was refused halfway says so; the same again, or its end, goes on from there
        assert there == one.site.clean() or not all(map(fine, ends.values())), why
        assert there["states"][0] not in ("running", "error"), why
