# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance that moves to another board, killed before each of its writes; then it is asked for again. If these fail,
its root is lost between two boards, or is exported to both, or a board is nobody's and nobody gets it.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.tests.turns import DAY
from ansible_collections.hetero.compute.tests.unit.sweep.test_kill_sweep import PARTS, SAMPLE, say, succeed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="overlay mounts need root: run as root")


def data(site, board):
    return site.state / "board-roots" / f"fs_{board}" / "root" / "root" / "data"


def sweep(site, step, first):
    """(how many write points the move has, how many were tried): from board to board and back, killed at each turn."""
    succeed(site, "provision", "preparing")
    data(site, 0).write_text("the tenant's own")
    for _turn in range(2):  # the first one makes what the later ones find
        succeed(site, "migrate", "counting")
    count, tried = site.points.count, 0
    for number in range(1 + first, count + 1, step):
        old = site.board_of("jackie")
        site.points.reset(number)
        site.migrate()
        tried += bool(site.points.killed)
        why = f"killed at point {number} of {count}, before {site.points.killed!r}"
        # one that was whole when it was killed would move once more
        if site.points.killed and site.what_is_there() != site.running(*[None] * (1 - old), "jackie"):
            succeed(site, "migrate", why)
        assert site.what_is_there() == site.running(*[None] * (1 - old), "jackie"), why
        assert data(site, 1 - old).read_text() == "the tenant's own", why
        assert site.root_is_whole(1 - old), why
    return count, tried


def test_killed_at_a_sample_of_its_writes_and_run_again_it_has_moved(site, capsys):
    """Lost: what is in the root of an instance whose move was killed, or the instance itself."""
    count, tried = sweep(site, 40, DAY % 40)
    say(capsys, "migrate, and again", count, tried)
    assert tried >= SAMPLE - 1


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_each_of_its_writes_and_run_again_it_has_moved(site, part, capsys):
    """Lost: the same, at a point that the sample did not try."""
    count, tried = sweep(site, PARTS, part)
    say(capsys, f"migrate, and again, part {part + 1} of {PARTS}", count, tried)
    assert tried >= 0.9 * (count // PARTS)  # threads make the number of writes vary
