# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who was cut is looked for also where the clock was set back since she came up."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_killed_before_undone import STOP, killed, told
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty, lives, swapped

__all__ = ["hasty", "swapped"]


@pytest.mark.parametrize("again", ["stop", "reconcile"])
def test_who_came_up_by_a_clock_that_was_ahead_is_given_her_power_back(swapped, monkeypatch, again):
    """Lost: carol's power, and the word of it: the next run says that nobody lost any."""
    hangs(swapped, 0)
    with swapped.proxy() as proxy:  # both came up while the clock was an hour ahead
        proxy.store._db.write("UPDATE boards SET since = since + 3600")
    killed(swapped, monkeypatch, "instance", **STOP)
    result = reconcile(swapped) if again == "reconcile" else swapped.module("instance", timeout=10, **STOP)
    assert lives(swapped, 1), told(result)
