# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What claims have drawn: counters that are added up, and those that are another's or began anew."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import energy as energies
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.energy import NOT_MEASURED, Energy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.tables import ENERGY, LAYOUT
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims import tickets
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.drawn import Drawn
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFirst alice@laptop"
OUTLET = "pdu-a outlet 1"


def claimed(store, instance="jackie", boards=(0, 1, 2)):
    return store.claim(instance, [instance], ClaimTerms("alice", {"name": "tp64.8x8"}, "debian", KEY), boards)[0]


def events(store):
    return [event.text for event in store.events() if event.phase == energies.ENERGY_PHASE]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "state.db")


@pytest.fixture
def store(path):
    with Store(path, "test") as opened:
        yield opened


#: (what is known, the next reading after an hour, kWh then).
READINGS = [
    (NOT_MEASURED, Drawn(41.0, 310.0), 0.0),
    (Energy(OUTLET, 1.0, 310.0), Drawn(41.0, 310.5), 1.5),
    (Energy(OUTLET, 1.0, 310.0), Drawn(41.0, 310.0), 1.0),
    (Energy(OUTLET, 1.0, 310.0), Drawn(0.0, 0.25), 1.25),  # reset meanwhile
    (Energy(OUTLET, 1.0, 310.0), Drawn(41.0, None), 1.0),  # not told this once
    (Energy(OUTLET, 1.0, 0.0), Drawn(41.0, 310.0), 1.0),  # it told 0 where it knew nothing
    (Energy("pdu-b outlet 7", 1.0, 300.0), Drawn(41.0, 310.0), 1.0),  # of another outlet
    (Energy(OUTLET, None, None, 5.0), Drawn(41.0, None), None),  # no counter at all
    (Energy(OUTLET, 1.0, None), Drawn(41.0, 310.0), 1.0),
]


@pytest.mark.parametrize(("known", "drawn", "kwh"), READINGS)
def test_readings_are_added_up(known, drawn, kwh):
    """Lost: energy that was drawn before a counter was reset; or energy of others, which a claim is charged with."""
    now = 1_800_000_000.0
    told = replace(known, seen=now - 3600).after(OUTLET, drawn, now)
    assert told.kwh == (None if kwh is None else pytest.approx(kwh))
    assert (told.watts, told.seen, told.outlet) == (drawn.watts, now, OUTLET)
    if drawn.kwh is not None:
        assert told.after(OUTLET, drawn._replace(kwh=drawn.kwh + 0.1), now + 60).kwh == pytest.approx(kwh + 0.1)


def test_a_clock_that_was_set_back_takes_nothing_away():
    """Lost: what was drawn, to a proxy node whose clock jumps."""
    known = Energy(OUTLET, 1.0, 310.0, 41.0, 2_000_000_000.0)
    assert known.after(OUTLET, Drawn(41.0, 310.2), 1_800_000_000.0).kwh == pytest.approx(1.2)


def test_a_claim_has_its_own_energy(store):
    """Lost: a claim's energy to the next one of its name, or of its board."""
    first = claimed(store)
    assert store.energy_of(first) == store.energy_of(None) == NOT_MEASURED
    assert first.instance not in store.energies()
    store.drew(first, OUTLET, Drawn(41.0, 310.0))
    store.drew(first, OUTLET, Drawn(39.5, 310.25))
    assert store.energy_of(first).told == dict(watts=39.5, energy_kwh=0.25)
    assert store.energies() == {"jackie": store.energy_of(first)}
    store.release(first.board, first)
    assert events(store) == ["jackie drew 0.250 kWh"]
    assert store.energies() == {}
    store.drew(first, OUTLET, Drawn(41.0, 311.0))
    second = claimed(store)
    assert store.energy_of(second) == NOT_MEASURED
    store.drew(first, OUTLET, Drawn(41.0, 312.0))
    assert store.energies() == {}, "a reading for a claim that is over is nobody's"
    store.release(second.board, second)
    assert events(store) == ["jackie drew 0.250 kWh"], "nothing is said of what nobody measured"


def test_a_device_that_tells_watts_alone(store):
    """Lost: what a board on a PoE port draws; or 0 kWh, of a device that has no counter."""
    claim = claimed(store)
    store.drew(claim, OUTLET, Drawn(6.4))
    assert store.energy_of(claim).told == dict(watts=6.4)
    assert store.energy_of(claim).fields == dict(watts=6.4, energy_kwh=None)
    store.forget(claim, "gone for good")
    assert (events(store), store.energies()) == ([], {})


def test_an_instance_that_gets_another_board_keeps_what_it_drew(store):
    """Lost: the energy of a first board that failed; or the counter of the second, as if it had been drawn."""
    claim = claimed(store)
    store.drew(claim, OUTLET, Drawn(41.0, 310.0))
    store.drew(claim, OUTLET, Drawn(41.0, 310.1))
    for state in (board_states.BOOTING, board_states.ERROR):
        store.move(claim.board, state)
    moved = store.move_claim("jackie", [1, 2])
    store.drew(moved, "pdu-a outlet 2", Drawn(41.0, 99.0))
    store.drew(moved, "pdu-a outlet 2", Drawn(41.0, 99.2))
    assert store.energy_of(moved).kwh == pytest.approx(0.3)
    store.forget(moved, "gone for good")
    assert events(store) == ["jackie drew 0.300 kWh"]


def test_a_database_of_the_release_before_is_taken_over(path, monkeypatch):
    """Lost: every claim of a site, to its first verb after an upgrade."""
    tables = tuple(one for one in LAYOUT.tables if one not in (ENERGY, *tickets.TABLES))
    before = replace(LAYOUT, schema=2, tables=tables, upgrades={1: LAYOUT.upgrades[1]})
    with monkeypatch.context() as patch:
        patch.setattr(Store, "layout", before)
        with Store(path, "test") as older:
            claim = claimed(older)
    with Store(path, "looks", create=False) as looks:
        assert (looks.energies(), looks.claims()) == ({}, [claim])
    assert backups.copies(path) == []
    with Store(path, "test") as upgraded:
        upgraded.drew(claim, OUTLET, Drawn(41.0, 310.0))
        assert upgraded.energy_of(claim).kwh == 0.0
    assert len(backups.copies(path)) == 1
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone()[0] == LAYOUT.schema
        assert database.execute("SELECT seen FROM energy").fetchone()[0] <= time.time()


@pytest.mark.parametrize("column", ["kwh", "counter", "watts", "seen"])
@pytest.mark.parametrize("value", ["'a few'", "x'00'", "9e999", "-5"])
def test_a_damaged_row_ends_no_verb(store, path, column, value):
    """Lost: the end of an instance, or the boots of all boards of a call, to a number that is none."""
    claim = claimed(store)
    store.drew(claim, OUTLET, Drawn(41.0, 310.0))
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"UPDATE energy SET {column} = {value}")
        database.commit()
    json.dumps([store.energies()["jackie"].told, store.energy_of(claim).fields], allow_nan=False)
    store.drew(claim, OUTLET, Drawn(41.0, 310.2))
    assert store.energy_of(claim).kwh in (0.0, pytest.approx(0.2))
    store.release(claim.board, claim)
    assert store.record(claim.board).claim is None


def test_watts_that_no_outlet_gives_are_not_told(store):
    """Lost: the columns of status, to a meter that tells a number of 309 digits."""
    claim = claimed(store)
    store.drew(claim, OUTLET, Drawn(1e308, 1e308))
    assert store.energy_of(claim).told == dict(energy_kwh=0.0)
