# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reservations leave to requests, against a model that tries all. If these fail, who reserved boards for a course
finds others on them, or boards stay idle that nobody needs.

Tests scheduling/reserved.py, scheduling/served.py.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace
from itertools import chain, combinations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.reservations import Reserves
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.reserved import (
    Holding,
    Reserved,
    Taker,
    hours_until,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.served import served

OWNERS = ("ann", "bob", "carol")
LAST = 30


class Model:
    """Boards, reservations and claims (board → owner, end), with everything tried at each time."""

    def __init__(self, boards, reserved):
        self.boards, self.reserved, self.claims = boards, reserved, {}

    def holdings(self, now):
        free = [board for board in self.boards if board not in self.claims]
        lent = [Holding(end, {}, (board,), board, who) for board, (who, end) in self.claims.items()]
        return [Holding(0.0, {}, tuple(free)), *lent]

    def many(self, when, claims):
        """How many reserved places can be served at a time, by Hall's theorem over all sets of reservations."""
        active = [one for one in self.reserved if one.start <= when < one.end]
        could = []
        for one in active:
            names, _count = one.devices[0]
            mine = {board for board, (who, end) in claims.items() if who == one.owner and (end is None or end > when)}
            free = {board for board in self.boards if board not in claims}
            free |= {board for board, (_who, end) in claims.items() if end is not None and end <= when}
            could.append(names & (mine | free))
        needs = [one.count * one.devices[0][1] for one in active]
        those = chain.from_iterable(combinations(range(len(active)), size) for size in range(len(active) + 1))
        lacks = [sum(needs[n] for n in some) - len(frozenset().union(*(could[n] for n in some))) for some in those]
        return sum(needs) - max(lacks)

    def allows(self, now, owner, end, taken):
        after = {**self.claims, **dict.fromkeys(taken, (owner, end))}
        times = [now, *(when for when in range(now + 1, LAST + 1) if end is None or when < end)]
        return all(self.many(when, after) >= self.many(when, self.claims) for when in times)


def reserved_at_random(chance, boards, alike):
    names = frozenset(boards if alike else chance.sample(boards, chance.randint(1, len(boards))))
    start = chance.randint(0, 20)
    if not alike and chance.random() < 0.3:  # certain boards
        devices, count = ((names, len(names)),), 1
    else:
        devices, count = ((names, 1),), chance.randint(1, len(names))
    return Reserved(chance.choice(OWNERS), start, start + chance.randint(1, 8), count=count, devices=devices)


@pytest.mark.parametrize("hundred", range(10))
def test_claims_are_decided_as_the_model_decides_them(hundred):
    """Lost: what is reserved, to who asks at the right time; or a board to nobody, as the rule thinks it is needed."""
    for seed in range(100 * hundred, 100 * hundred + 100):
        chance = random.Random(seed)
        boards = [f"board{number}" for number in range(chance.randint(1, 5))]
        reserved = [reserved_at_random(chance, boards, False) for _one in range(chance.randint(1, 4))]
        model, rule = Model(boards, reserved), Reserves(reserved)
        for now in range(0, 22, chance.randint(1, 4)):
            model.claims = {board: one for board, one in model.claims.items() if one[1] is None or one[1] > now}
            owner, end = chance.choice(OWNERS), chance.choice([None, now + chance.randint(1, 8)])
            fit = [board for board in boards if board not in model.claims and chance.random() < 0.8]
            holdings, taker = model.holdings(now), Taker(owner, end)
            for one in ([board] for board in fit):
                assert (not rule.blocked(now, holdings, taker, one)) is model.allows(now, owner, end, one)
            blocked = rule.blocked(now, holdings, taker, fit)
            gets = [board for board in fit if board not in blocked]
            assert model.allows(now, owner, end, gets), (seed, now)
            assert not any(model.allows(now, owner, end, [*gets, board]) for board in blocked), (seed, now)
            model.claims.update(dict.fromkeys(gets[: chance.randint(0, 3)], (owner, end)))
            for board, (who, old) in list(model.claims.items()):
                until = chance.choice([None, now + 10])
                if old is not None and (until is None or until > old):
                    reaches = rule.reaches(now, holdings, board, Taker(who, until), old)
                    there = Model(boards, reserved)
                    there.claims = {name: one for name, one in model.claims.items() if name != board}
                    if model.holdings(now) == holdings:
                        assert (reaches is None) is there.allows(max(now, old), who, until, [board])


@pytest.mark.parametrize("hundred", range(10))
def test_what_was_free_when_it_was_reserved_is_there_at_its_time(hundred):
    """Lost: the boards of a course, at its begin."""
    for seed in range(100 * hundred, 100 * hundred + 100):
        chance = random.Random(seed)
        boards = [f"board{number}" for number in range(chance.randint(2, 6))]
        reserved = [reserved_at_random(chance, boards, True) for _one in range(chance.randint(1, 3))]
        model, rule = Model(boards, reserved), Reserves(reserved)
        if rule.lacks(0, model.holdings(0)):
            continue  # the table asks for more than there is
        for now in range(25):
            model.claims = {board: one for board, one in model.claims.items() if one[1] is None or one[1] > now}
            for one in reserved:
                has = sum(who == one.owner for who, _end in model.claims.values())
                due = sum(two.count for two in reserved if two.owner == one.owner and two.start <= now < two.end)
                ends = [two.end for two in reserved if two.owner == one.owner and two.start <= now < two.end]
                free = [board for board in boards if board not in model.claims]
                if has < due:
                    blocked = rule.blocked(now, model.holdings(now), Taker(one.owner, min(ends)), free)
                    assert len(free) - len(blocked) >= due - has, (seed, now)
                    if chance.random() < 0.5:
                        gets = [board for board in free if board not in blocked][: due - has]
                        model.claims.update(dict.fromkeys(gets, (one.owner, min(ends))))
            owner, end = chance.choice([*OWNERS, "eve"]), chance.choice([None, now + chance.randint(1, 8)])
            free = [board for board in boards if board not in model.claims]
            blocked = rule.blocked(now, model.holdings(now), Taker(owner, end), free)
            gets = [board for board in free if board not in blocked][: chance.randint(0, 4)]
            model.claims.update(dict.fromkeys(gets, (owner, end)))
            assert not rule.lacks(now, model.holdings(now)), (seed, now)


def test_the_most_are_served():
    """Lost: a place, where what serves it was given to one that could have had another."""
    assert served([2, 1], {frozenset([0]): 1, frozenset([0, 1]): 2}) == [2, 1]
    assert served([1, 1, 1], {frozenset([0, 1]): 1, frozenset([1, 2]): 1, frozenset([2]): 1}) == [1, 1, 1]
    assert served([5], {frozenset([0]): 3}) == [3]
    assert served([], {}) == []


def test_memory_is_reserved_too():
    """Lost: the memory of who reserved instances of a host, or memory that nobody reserved."""
    one = Reserved("ann", 10, 20, count=2, amounts={"memory_mb": 100})
    rule, free = Reserves([one]), [Holding(0.0, {"memory_mb": 500}, ())]
    assert rule.room(0, free, Taker("bob", 10, {"memory_mb": 100}), 9) == (9, {}), "it is over in time"
    assert rule.room(0, free, Taker("bob", 11, {"memory_mb": 100}), 3)[0] == 3
    many, short = rule.room(0, free, Taker("bob", None, {"memory_mb": 100}), 9)
    assert (many, short["memory_mb"][0], short["memory_mb"][1].reserved) == (3, 200, one)
    assert rule.room(12, free, Taker("ann", 15, {"memory_mb": 100}), 5)[0] == 5, "it is all hers, and nobody else's"
    had = [Holding(0.0, {"memory_mb": 300}, ()), Holding(None, {"memory_mb": 100}, (), "lab", "ann")]
    assert rule.room(12, had, Taker("bob", 15, {"memory_mb": 100}), 5)[0] == 2, "what she has is of it"
    assert rule.room(0, free, Taker("bob", None, {"vcpus": 1}), 5)[0] == 5


def test_what_is_reserved_for_an_owner_keeps_nothing_from_it():
    """Lost: an owner's own memory, to its own reservation; but what is reserved for another stays."""
    mine = Reserved("ann", 0, 20, count=2, amounts={"memory_mb": 100})
    free = [Holding(0.0, {"memory_mb": 350}, ())]
    large = Taker("ann", 15, {"memory_mb": 150})
    assert Reserves([mine]).room(5, free, large, 9) == (9, {})
    theirs = Reserved("bob", 10, 20, count=1, amounts={"memory_mb": 100})
    both = Reserves([mine, theirs])
    assert both.room(5, free, large, 9)[0] == 1
    assert both.room(5, free, replace(large, until=10), 9) == (9, {}), "it is over by then"
    assert both.headroom(5, free, large, "memory_mb")[0] == 250
    assert both.headroom(5, free, Taker("eve", 15), "memory_mb")[0] == 50
    assert both.headroom(5, free, Taker("eve", 15), "vcpus") is None


@pytest.mark.parametrize("hundred", range(3))
def test_an_amount_is_left_for_others_whoever_takes_it(hundred):
    """Lost: the room of a course, to one of many claims before it; or room that nobody reserved."""
    for seed in range(100 * hundred, 100 * hundred + 100):
        chance, boards = random.Random(seed), [f"board{number}" for number in range(6)]
        parts, total = ((frozenset(boards), 1),), chance.randint(20, 60)
        reserved = [
            Reserved(f"o{number}", start, start + chance.randint(1, 9), count=chance.randint(1, 2),
                     amounts={"roots": chance.randint(1, 9)}, devices=parts, by_devices=True)
            for number, start in enumerate(chance.sample(range(20), 3))
        ]  # fmt: skip
        rule, claims = Reserves(reserved), {}
        for now in range(25):
            claims = {board: one for board, one in claims.items() if one[1] > now}
            left = total - sum(size for _who, _end, size in claims.values())
            lent = [Holding(end, {"roots": size}, (board,), board, who) for board, (who, end, size) in claims.items()]
            free = [board for board in boards if board not in claims]
            holdings = [Holding(0.0, {"roots": left}, tuple(free)), *lent]
            owner, end = f"o{chance.randint(0, 4)}", now + chance.randint(1, 9)
            found = rule.headroom(now, holdings, Taker(owner, end), "roots")
            most = min(left, found[0]) if found else left
            others = Reserves([one for one in reserved if one.owner != owner])
            before = {(one.reserved.owner, one.missing) for one in others.lacks(now, holdings) if one.short}
            if free and most:
                size = chance.randint(1, most)
                claims[free[0]] = (owner, end, size)
                rest = Holding(0.0, {"roots": left - size}, tuple(free[1:]))
                after = [rest, *lent, Holding(end, {"roots": size}, (free[0],), free[0], owner)]
                short = {(one.reserved.owner, one.missing) for one in others.lacks(now, after) if one.short}
                assert short <= before, (seed, now)


def test_a_reservation_that_cannot_be_served_says_why():
    """Lost: the warning, to who reserved what others have longer."""
    devices = ((frozenset(["board0", "board1"]), 1),)
    lab = Reserved("ann", 100.0, 200.0, "2 tp64", count=2, devices=devices)
    rule = Reserves([lab, Reserved("ann", 0.0, 50.0, count=1, devices=devices)])
    holdings = [Holding(0.0, {}, ("board1",)), Holding(None, {}, ("board0",), "board0", "bob")]
    (lack,) = rule.lacks(60.0, holdings)
    assert (lack.reserved, lack.missing) == (lab, 1)
    assert lack.text() == "1 of it cannot be had then by present leases: board0 is bob's without end"
    assert rule.lacks(60.0, [Holding(0.0, {}, ("board1",)), Holding(90.0, {}, ("board0",), "board0", "bob")]) == []
    (lack,) = Reserves([lab]).lacks(60.0, [Holding(0.0, {}, ("board1",))])
    assert "no more are here and in order" in lack.text()
    memory = Reserved("ann", 100.0, 200.0, count=3, amounts={"memory_mb": 100})
    (lack,) = Reserves([memory]).lacks(60.0, [Holding(0.0, {"memory_mb": 150}, ())])
    assert lack.missing == 2


def test_a_reservation_whose_boards_another_one_wants_says_so():
    """Lost: whom to ask, to who reads that boards are not in order while all are: others have or reserved them."""
    boards = [f"board{number}" for number in range(4)]
    course = Reserved("ann", 100.0, 200.0, count=3, devices=((frozenset(boards), 1),))
    two = Reserved("bob", 100.0, 200.0, count=2, devices=((frozenset(boards[2:]), 1),))
    rule = Reserves([course, two])
    lent = [Holding(0.0, {}, tuple(boards[1:])), Holding(None, {}, ("board0",), "board0", "jo")]
    told = {one.reserved.owner: one.text() for one in rule.lacks(60.0, lent)}
    assert told["bob"].endswith(": board0 is jo's without end; some of the same is reserved for ann")
    told = {one.reserved.owner: one.text() for one in rule.lacks(60.0, [Holding(0.0, {}, tuple(boards))])}
    assert [*told] == ["bob"]
    assert told["bob"].endswith(": no more are here and in order; some of the same is reserved for ann")
    apart = Reserved("eve", 300.0, 400.0, count=9, devices=two.devices)
    (lack,) = Reserves([two, apart]).lacks(60.0, [Holding(0.0, {}, tuple(boards[2:]))])
    assert (lack.reserved, lack.rivals) == (apart, ()), "ann's and bob's are over by then"


def test_an_accent_is_typed_in_two_ways():
    """Lost: what is reserved, to its own owner."""
    devices = ((frozenset(["board0"]), 1),)
    rule = Reserves([Reserved("jos\u00e9", 0.0, 50.0, devices=devices)])
    free = [Holding(0.0, {}, ("board0",))]
    assert rule.blocked(1.0, free, Taker("jose\u0301", 40.0), ["board0"]) == {}
    assert list(rule.blocked(1.0, free, Taker("jose", 40.0), ["board0"])) == ["board0"]


def test_the_hours_that_are_told_can_be_asked_for():
    """Lost: the way out, as the lease that is told is too long by the time that somebody has typed it."""
    assert hours_until(7200 + 300, 0) == 2.0
    assert hours_until(7200, 0) == 1.9
    assert hours_until(500, 0) == 0.0
    one = Reserved("ann", 36000.0, 72000.0, "1 tp64", "course", devices=((frozenset(["board0"]), 1),))
    blocked = Reserves([one]).blocked(0.0, [Holding(0.0, {}, ("board0",))], Taker("bob", None), ["board0"])
    assert blocked["board0"].text(0.0).endswith(" (course): until then with -e hours=9.9")
    assert "reserved for ann until " in blocked["board0"]._replace(when=0.0).text(0.0)


def test_ten_thousand_boards_are_soon_decided():
    """Lost: the node, for as long as a claim of a large site takes."""
    boards = [f"board{number}" for number in range(10000)]
    devices = ((frozenset(boards[:9000]), 1),)
    rule = Reserves([Reserved("ann", 10.0 * n, 10.0 * n + 15, count=4000, devices=devices) for n in range(1, 11)])
    begin = time.process_time()
    blocked = rule.blocked(0.0, [Holding(0.0, {}, tuple(boards))], Taker("bob", None), boards)
    assert len(blocked) == 8000, "two at a time"
    assert time.process_time() - begin < 3.0
