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

import pytest

from ansible_collections.hetero.compute.tests.turns import DAY
from ansible_collections.hetero.compute.tests.unit.images.packing import OTHER_KEY

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="overlay mounts need root: run as root")

#: play that is killed → play that follows → what it must come to.
SWEEPS = {
    "provision, and again": ("provision", "provision"),
    "provision, given up": ("provision", "terminate"),
    "reboot, and again": ("reboot", "reboot"),
    "terminate, and again": ("terminate", "terminate"),
    "terminate, asked for again": ("terminate", "provision"),
    "rebuild, and again": ("rebuild", "rebuild"),
    "rebuild, given up": ("rebuild", "terminate"),
    "reap, and the next turn": ("reap", "reap"),
}
#: Points that `make test` tries of each sweep, spread evenly, others each day; `make test-all` tries all, in parts.
SAMPLE, PARTS = 4, 4


def succeed(site, play, why):
    """Run a play to its end."""
    site.points.reset(0)
    results = getattr(site, play)()
    assert not any(result is None or result.get("failed") for result in results), f"{why}: {play}: {results[-1]}"
    return results


def prepare(site, play):
    """What the play needs before it is killed: nothing, or an instance that runs and has written something."""
    if play == "provision":
        return
    succeed(site, "provision", "preparing")
    (site.state / "board-roots" / "fs_0" / "root" / "root" / "data").write_text("the tenant's own")
    if play == "reap":
        site.expire()


def sweep(site, killed, follows, part=None):
    """(how many write points the play has, how many of them are this part's or the sample's, how many were tried)."""
    for play in ("provision", "terminate"):  # a node's first play makes what the later ones find
        succeed(site, play, "the first")
    prepare(site, killed)
    succeed(site, killed, "counting")
    count, tried = site.points.count, 0
    step = max(1, count // SAMPLE) if part is None else PARTS
    numbers = range(1 + (DAY % step if part is None else part), count + 1, step)
    for number in numbers:
        succeed(site, "terminate", "cleaning")
        assert site.what_is_there() == site.clean(), f"before point {number}"
        prepare(site, killed)
        site.points.reset(number)
        getattr(site, killed)()
        tried += bool(site.points.killed)
        check(site, killed, follows, f"{killed} killed at point {number} of {count}, before {site.points.killed!r}")
    return count, len(numbers), tried


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
    count, _wanted, tried = sweep(site, *SWEEPS[name])
    say(capsys, name, count, tried)
    assert tried >= SAMPLE - 1  # threads make the number of writes vary, so the last point may not come


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", SWEEPS)
def test_killed_at_each_of_its_writes_and_run_again_it_converges(site, name, part, capsys):
    count, wanted, tried = sweep(site, *SWEEPS[name], part)
    say(capsys, f"{name}, part {part + 1} of {PARTS}", count, tried)
    assert tried >= 0.9 * wanted  # threads make the number vary
