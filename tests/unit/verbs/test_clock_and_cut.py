# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stop was killed before it saw whom it cut, and the clock was set right before it is run again (a machine whose
clock is wrong until it reaches its time server). If these fail, carol stays dark and the next run says that all is
well.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_killed_before_undone import STOP, killed, told
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty, lives, swapped

__all__ = ["hasty", "swapped"]


@pytest.mark.parametrize("again", ["stop", "reconcile"])
@pytest.mark.parametrize("step", [3600, -3600], ids=["was ahead", "was behind"])
def test_who_was_cut_has_her_power_back_whatever_the_clock_does(swapped, monkeypatch, again, step):
    """Lost: carol's power."""
    hangs(swapped, 0)
    killed(swapped, monkeypatch, "instance", **STOP)
    with swapped.proxy() as proxy:  # the clock was an hour off, and is right now
        proxy.store._db.write("UPDATE events SET time = time + ?", (step,))
        proxy.store._db.write("UPDATE boards SET since = since + ?", (step,))
    result = reconcile(swapped) if again == "reconcile" else swapped.module("instance", timeout=10, **STOP)
    assert lives(swapped, 1), told(result)
