# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a GPU of a verb that was killed is two containers', or nobody's for ever, or open to a container of
which the table does not know.

Each verb is killed before each of its writes; then the same verb is run again, or the other one, or a repair.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import persistence
from ansible_collections.hetero.compute.tests.turns import DAY
from ansible_collections.hetero.compute.tests.unit.gpu_races.gpu_points import GpuPoints, alone
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES

#: verb that is killed → what is run then.
SWEEPS = {
    "attach, and again": ("attach", "attach"),
    "attach, given up": ("attach", "detach"),
    "attach, repaired": ("attach", "repair"),
    "detach, and again": ("detach", "detach"),
    "detach, asked for again": ("detach", "attach"),
    "detach, repaired": ("detach", "repair"),
}
#: Points that `make test` tries of each sweep, spread evenly, others each day; `make test-all` tries all.
SAMPLE = 3
TWO = ADDRESSES[:2]


class Verbs:
    """What a user runs, on one container."""

    def __init__(self, host, box):
        self.host = host
        self.box = box

    def attach(self):
        return self.host.attach(self.box, gpus=TWO)

    def detach(self):
        return self.host.detach(self.box)

    def repair(self):
        return self.host.reconcile(repair=True)

    def killed(self, verb, number, points):
        """Run a verb that is killed at a point (0: that is not); how many points it came to."""
        points.reset(number)
        result = alone(points, getattr(self, verb))
        assert (result is None) == bool(points.killed), result
        assert number or not result.get("failed"), result
        return points.count

    def check(self, verb, why):
        """After a verb: what is open is what the table says, and lasts, and the verb has nothing more to do."""
        host, box = self.host, self.box
        getattr(self, verb)()
        has = sorted(address for address, names in host.table().items() if names == [box.name])
        assert has in ([], TWO), why
        assert verb == "repair" or has == (TWO if verb == "attach" else []), why
        assert host.can_open(box) == has, why
        assert bool(host.nodes(box)) == bool(has), why
        written = persistence.read(box)
        assert sorted(gpu["address"] for gpu in written.gpus if written) == has if written else not has, why
        again = getattr(self, verb)()
        assert again["changed"] is False, (why, again["diff"])
        assert host.found() == set(), why


def sweep(host, killed, follows, every):
    verbs, points = Verbs(host, host.boxes.make()), GpuPoints()
    verbs.attach()
    verbs.detach()
    if killed == "detach":
        verbs.attach()
    count = verbs.killed(killed, 0, points)
    step = 1 if every else max(1, count // SAMPLE)
    tried = 0
    for number in range(1 + (0 if every else DAY % step), count + 1, step):
        verbs.detach()
        if killed == "detach":
            verbs.attach()
        verbs.killed(killed, number, points)
        tried += bool(points.killed)
        why = f"{killed} killed at point {number} of {count}, before {points.killed!r}"
        known = [address for address, names in host.table().items() if names == [verbs.box.name]]
        assert set(host.can_open(verbs.box)) <= set(known), why
        verbs.check(follows, why)
    return count, tried


def say(capsys, name, count, tried):
    with capsys.disabled():
        print(f"\n{name}: {count} write points, killed at {tried}")


@pytest.mark.parametrize("name", SWEEPS)
def test_killed_at_a_sample_of_its_writes_it_converges(host, name, capsys):
    count, tried = sweep(host, *SWEEPS[name], every=False)
    say(capsys, name, count, tried)
    assert tried >= SAMPLE - 1  # the last point may not come


@pytest.mark.long
@pytest.mark.parametrize("name", SWEEPS)
def test_killed_at_each_of_its_writes_it_converges(host, pure_v2, name, capsys):
    count, tried = sweep(host, *SWEEPS[name], every=True)
    say(capsys, name, count, tried)
    assert tried >= 0.9 * count
