# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that has gone on to one host, while a run that was killed has claimed on another one what it needs. If these
fail, it runs twice.

Tests plugin_utils/move_steps.py, compute_host/info.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests_that_move import another, two
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moves_of_restored_hosts import guests

__all__ = ["guests", "two"]


@pytest.fixture
def beside(guests, tmp_path, image):
    """A run to a third host was killed as it had claimed there what it needs; nothing has left yet."""
    guests.sites["kvm3"] = another(tmp_path / "third", image, "kvm3", 40)
    claim = guests.claim()
    came = guests.step("kvm1", "described", claim)["came"]
    guests.step("kvm3", "arriving", claim, came=came, other="kvm1", run="r3")
    return guests


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("older", [False, True])
def test_it_goes_nowhere_while_the_host_that_may_run_it_is_left_out(beside, older, back):
    """Lost: one life: its former root started beside the new one, here or on the third host; also where the former
    host's database does not know any more that it has left.
    """
    before = beside.copy_of("kvm1")
    beside.started()
    if older:
        beside.put_back("kvm1", before)
    with pytest.raises(Stop, match="win leaves kvm1 for kvm2, which was not asked, and may have started it"):
        beside.migrate(back, without=["kvm2"])
    assert (beside.states()["kvm3"], beside.running()) == ("arriving", ["kvm2"])


@pytest.mark.parametrize("back", [False, True])
def test_it_goes_nowhere_while_the_host_that_runs_it_has_forgotten_it(beside, back):
    """Lost: the same, where the new host's database is older than its claim there."""
    before = beside.copy_of("kvm2")
    beside.started()
    beside.put_back("kvm2", before)
    with pytest.raises(Stop, match="win leaves kvm1 for kvm2, which has something of it without a claim, and may"):
        beside.migrate(back)
    assert beside.running() == ["kvm2"]


@pytest.mark.parametrize("back", [False, True])
def test_where_the_host_that_it_left_for_has_nothing_of_it_the_move_goes_on_or_back(beside, back):
    """Lost: every verb for good, to a host that is gone, and was set up anew under its name."""
    claim = beside.copied()
    beside.step("kvm2", "given_up", claim)
    assert beside.states() == {"kvm1": "leaving", "kvm3": "arriving"}
    beside.migrate(back)
    assert (beside.running(), list(beside.states())) == ([["kvm3"], ["kvm1"]][back], [["kvm3"], ["kvm1"]][back])
