# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest's move that an earlier release of the collection began, which knew of no departures, and that was cut off
before one of its steps; then both hosts are upgraded. If these fail, its only root goes, or the move comes to no end.

Tests compute_host/departures.py, compute_host/arrivals.py, plugin_utils/move_steps.py.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests_that_move import two
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moves_of_restored_hosts import CutOff, guests
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_roots_of_lost_hosts import (
    since,
    works_on,
)
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_put_back_amid_a_move import STEPS

__all__ = ["guests", "two"]


def forget_departures(guests):
    """Have the databases and records as an earlier release wrote them."""
    for name, site in guests.sites.items():
        with closing(sqlite3.connect(guests.path(name))) as db:
            db.execute("UPDATE instances SET departure = NULL")
            db.commit()
        with guests.at(site) as host:
            kept = host.store.kept("win")
            if kept is not None:
                host.store.records.write(replace(kept, departure=None))


@pytest.mark.parametrize("way", ["again", "back"])
@pytest.mark.parametrize("cut", [step for step in STEPS if step])
def test_a_move_that_an_earlier_release_began(guests, cut, way):
    def comes(step):
        if step == cut:
            raise CutOff

    works_on(guests, "kvm1")
    guests.comes = comes
    with pytest.raises(CutOff):
        guests.migrate()
    del guests.comes
    forget_departures(guests)
    said = []
    for back in (way == "back", way == "back", False, False):
        try:
            guests.migrate(back=back)
            break
        except (HeteroError, Stop) as error:
            said.append(str(error))
        guests.must_hold(said)
        assert any(since(guests, name) for name in guests.sites if os.path.exists(guests.disk(name))), said
    if len(said) == 4:  # nobody can tell whether it is a copy: a person says which
        assert "no copy of it: which of the two is newer only people can say" in said[-1], said
        assert set(guests.states()) == {"kvm1", "kvm2"}
        guests.terminate(without=["kvm2" if guests.running() == ["kvm2"] else "kvm1"])
        guests.migrate()
    guests.must_run(said)
    assert since(guests, *guests.running())
