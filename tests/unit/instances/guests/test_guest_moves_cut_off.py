# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest's move, killed before each of its writes, as a whole or in one host's module; then what a person types next.
If these fail, its disk is lost or runs twice, others read it, or a card is nobody's.

Tests compute_host/departures.py, compute_host/arrivals.py, site/moves.py, plugin_utils/move_steps.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.turns import DAY
from ansible_collections.hetero.compute.tests.unit.instances.guests.played_guest import Guests
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests_that_move import two

__all__ = ["two"]

PARTS = 8


def swept(two, step, first, capsys):
    count, tried = Guests(two).sweep(step, first)
    with capsys.disabled():
        print(f"\na guest's move has {count} points, {tried} tried")
    return count, tried


def test_killed_at_a_sample_of_its_writes(two, capsys):
    """Lost: an instance whose controller, or one of whose hosts, dies in the middle of its move."""
    _count, tried = swept(two, 130, DAY % 130, capsys)
    assert tried


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_each_of_its_writes(two, part, capsys):
    """Lost: the same, at a point that the sample did not try."""
    count, tried = swept(two, PARTS, part, capsys)
    assert tried >= 0.9 * (count // PARTS)
