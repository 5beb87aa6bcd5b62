# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reservations of a year, and many who wait beside them. If these fail, each claim and each question of who waits keeps
the node's database for seconds, and all others who ask it wait for that.

Tests scheduling/reservations.py, scheduling/queue.py.
"""

from __future__ import annotations

import time

from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling import reservations
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.places import place
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.queue import Lot, Wish
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.reserved import Holding, Reserved, Taker

BOARDS = tuple(f"board{number}" for number in range(10))
HOUR = 3600.0
NOW = 1.8e9


def reserves(many):
    """A reservation of two boards in each hour, of five owners."""
    parts = ((frozenset(BOARDS), 1),)
    starts = [NOW + HOUR * number for number in range(many)]
    return reservations.Reserves(
        Reserved(f"o{number % 5}", start, start + HOUR / 2, count=2, devices=parts)
        for number, start in enumerate(starts)
    )


def test_a_place_beside_reservations_looks_at_each_time_seldom(monkeypatch):
    """Lost: the queue of a class of forty, whose course has fifty hours."""
    made = []

    class Counted(reservations._Moment):
        def __init__(self, when, *words):
            made.append(when)
            super().__init__(when, *words)

    monkeypatch.setattr(reservations, "_Moment", Counted)
    lots = [Lot(0.0, {"roots": 10**12}, BOARDS[:2])]
    lots += [Lot(NOW + 600 * number, {"roots": 1}, (name,), name, "x") for number, name in enumerate(BOARDS[2:], 1)]
    words = dict(amounts={"roots": 10**9}, devices=((frozenset(BOARDS), 1),))
    wishes = [
        Wish(f"r{n}", f"w{n}", NOW + n, 1 + n % 3, 1 + n % 3, seconds=HOUR if n % 2 else None, **words)
        for n in range(40)
    ]
    found = place(NOW, lots, wishes, wishes[-1], 0, {}, reserves(50))
    assert (len(found["ahead"]), found["may"]) == (39, 0)
    assert len(made) < 10000, "a moment for each wish before each wish, and each reservation"


def test_a_claim_takes_eight_times_as_long_beside_eight_times_as_many():
    """Lost: ten seconds of each claim, beside the ten thousand hours of a table that a program wrote."""

    def seconds(many):
        kept = reserves(many)
        holdings = [Holding(0.0, {}, BOARDS)]
        best = []
        for _turn in range(3):
            began = time.process_time()
            assert len(kept.blocked(NOW, holdings, Taker("eve", None), BOARDS)) == 2
            best.append(time.process_time() - began)
        return min(best)

    assert seconds(4000) < 24 * seconds(500)
