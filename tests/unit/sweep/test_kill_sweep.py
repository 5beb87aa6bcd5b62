# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a play that was killed leaves something that the next one does not make good: a board that runs for
nobody, a root of two tenants, an export that anybody may mount, a lock that nobody can open.

Each play is killed before each of its writes; then it is run again.
"""

from __future__ import annotations

import json
import os
from itertools import zip_longest

import pytest

from ansible_collections.hetero.compute.tests.turns import DAY
from ansible_collections.hetero.compute.tests.unit.images.packing import OTHER_KEY

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="overlay mounts need root: run as root")

#: play that is killed → play that follows → what it must come to. In this order most begin with what the one before
#: has left.
SWEEPS = {
    "provision, and again": ("provision", "provision"),
    "reboot, and again": ("reboot", "reboot"),
    "terminate, asked for again": ("terminate", "provision"),
    "rebuild, given up": ("rebuild", "terminate"),
    "rebuild, and again": ("rebuild", "rebuild"),
    "terminate, and again": ("terminate", "terminate"),
    "provision, given up": ("provision", "terminate"),
    "reap, and the next turn": ("reap", "reap"),
}
#: Points that `make test` tries of each sweep, spread evenly, others each day; `make test-all` tries all, in parts.
SAMPLE, PARTS = 4, 8


def succeed(site, play, why):
    """Run a play to its end."""
    site.points.reset(0)
    results = getattr(site, play)()
    assert not any(result is None or result.get("failed") for result in results), f"{why}: {play}: {results[-1]}"
    return results


#: What is there after a play: nothing, jackie, or jackie whose root was made anew.
LEAVES = dict(provision="jackie", reboot="jackie", rebuild="rebuilt", terminate="nothing", reap="nothing")


class Sweep:
    """A play that is killed before its writes, each time with the one that follows.

    What a sweep was seen to leave (`check`) is what the next one begins with, where it can: a proxy is not cleared, and
    an instance not made, for each point.

    :param part: the part of all points that is tried, of PARTS; None: a sample.
    """

    def __init__(self, name, part):
        self.name, self.part, self.tried = name, part, 0
        self.killed, self.follows = SWEEPS[name]
        self.count, self.numbers = 0, ()

    def counted(self, site, there):
        """Find out how many write points the play has; what is there then."""
        self._begin(site, there)
        succeed(site, self.killed, "counting")
        self.count = site.points.count
        step = max(1, self.count // SAMPLE) if self.part is None else PARTS
        self.numbers = range(1 + (DAY % step if self.part is None else self.part), self.count + 1, step)
        return LEAVES[self.killed]

    def turn(self, site, number, there):
        """Have it killed before a write, and then what follows; what is there then."""
        self._begin(site, there)
        site.points.reset(number)
        getattr(site, self.killed)()
        self.tried += bool(site.points.killed)
        why = f"{self.killed} killed at point {number} of {self.count}, before {site.points.killed!r}"
        check(site, self.killed, self.follows, why)
        return LEAVES[self.follows]

    def _begin(self, site, there):
        """Have there what the play needs: nothing, or an instance that runs and has written something."""
        if there not in ("nothing", *self._fits()):
            succeed(site, "terminate", "cleaning")
            assert site.what_is_there() == site.clean(), f"before {self.name}"
            there = "nothing"
        if self.killed == "provision":
            return
        if there == "nothing":
            succeed(site, "provision", "preparing")
        (site.state / "board-roots" / "fs_0" / "root" / "root" / "data").write_text("the tenant's own")
        if self.killed == "reap":
            site.expire()

    def _fits(self):
        """What may be there beside nothing; who asks for a rebuilt instance as it was before is refused."""
        if self.killed == "provision":
            return []
        return ["jackie", "rebuilt"] if self.killed == self.follows == "terminate" else ["jackie"]

    def say(self, capsys):
        of = "" if self.part is None else f", part {self.part + 1} of {PARTS}"
        say(capsys, f"{self.name}{of}", self.count, self.tried)


def sweep(site, sweeps):
    """Try each point of some sweeps, one of each in turn."""
    for play in ("provision", "terminate"):  # a node's first play makes what the later ones find
        succeed(site, play, "the first")
    assert site.what_is_there() == site.clean(), "before the first point"
    there = "nothing"
    for one in sweeps:
        there = one.counted(site, there)
    for numbers in zip_longest(*(one.numbers for one in sweeps)):
        for one, number in zip(sweeps, numbers):
            if number is not None:
                there = one.turn(site, number, there)


def check(site, killed, follows, why):
    """The play that follows comes to its end, and nothing is left but what it is to leave."""
    succeed(site, follows, why)
    if follows in ("terminate", "reap"):
        assert site.what_is_there() == site.clean(), why
        return
    assert site.what_is_there() == site.running("jackie"), why
    assert site.root_is_whole(), why
    if killed == "rebuild":
        root = site.state / "board-roots" / "fs_0" / "root"
        assert not (root / "root" / "data").exists(), why
        keys = (root / "root" / ".ssh" / "authorized_keys").read_text().splitlines()
        assert [line.partition("restrict,")[0] for line in keys] == [OTHER_KEY, ""], why
        assert json.loads((root.parent / "made.json").read_text())["image"] == site.newer.hash, why
        assert (site.tftp / "10.0.2.1" / "vmlinux_0").read_text().startswith("NEWER"), why
        again = succeed(site, "rebuild", why)
        assert [result["changed"] for result in again] == [False, False, False], why
    elif killed == "reboot":
        data = site.state / "board-roots" / "fs_0" / "root" / "root" / "data"
        assert data.read_text() == "the tenant's own", why
    else:
        again = succeed(site, "provision", why)
        assert [result["changed"] for result in again] == [False, False, False], why


def say(capsys, name, count, tried):
    with capsys.disabled():
        print(f"\n{name}: {count} write points, killed at {tried}")


@pytest.mark.parametrize("name", SWEEPS)
def test_killed_at_a_sample_of_its_writes_and_run_again_it_converges(site, name, capsys):
    one = Sweep(name, None)
    sweep(site, [one])
    one.say(capsys)
    assert one.tried >= SAMPLE - 1  # threads make the number of writes vary, so the last point may not come


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_each_of_its_writes_and_run_again_it_converges(site, part, capsys):
    sweeps = [Sweep(name, part) for name in SWEEPS]
    sweep(site, sweeps)
    for one in sweeps:
        one.say(capsys)
        assert one.tried >= 0.9 * len(one.numbers)  # threads make the number vary
