# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is served first. If these fail, who waits longest gets nothing: a request for eight boards starves beside
requests for one, two requests for all nodes hold each other up for ever, or a time is told that is not kept.

Tests scheduling/queue.py, scheduling/turns.py.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.queue import (
    Lot,
    Wish,
    left,
    starts,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.turns import expected, ordinal

NOW = 1000.0
#: Of the 1,000 histories: boards of the node, and requests of each history.
BOARDS, REQUESTS, TICKS = 6, 12, 160


def names(count):
    return tuple(f"board{number}" for number in range(count))


def wish(request, asked, need=1, boards=10, partial=False, **more):
    wanted = boards if isinstance(boards, (set, frozenset)) else frozenset(names(boards))
    return Wish(request, "ann", asked, need, 1 if partial else need, devices=((wanted, 1),), **more)


def lots(free, **lent):
    """Free boards, and those that end when; each is another's."""
    found = [Lot(0.0, {}, tuple(f"board{number}" for number in free))]
    return found + [Lot(when, {}, (name,), name, "bob") for name, when in lent.items()]


def may(there, wishes, asker):
    return left(NOW, there, wishes, asker).may


def test_the_order_is_priority_then_time_then_name():
    """Lost: one order on all nodes, without which two nodes hold what they have for different requests."""
    asked = [wish("b", 5.0), wish("a", 5.0), wish("c", 4.0), wish("z", 9.0, priority=1), wish("y", 1.0, priority=-1)]
    found = starts(NOW, lots([]), asked)
    assert [one.wish.request for one in found] == ["z", "c", "a", "b", "y"]
    assert [one.position for one in found] == [1, 2, 3, 4, 5]


def test_what_the_oldest_needs_is_held_for_it():
    """Lost: eight boards at once, to whoever asks for one again and again."""
    there = lots([0, 1, 2], **{f"board{number}": NOW + 100 for number in range(3, 10)})
    eight, one = wish("eight", 1.0, 8), wish("one", 2.0)
    found = left(NOW, there, [eight, one], one)
    assert (found.may, set(found.devices)) == (0, {"board0", "board1", "board2"})
    assert all(held is eight for held in found.devices.values())
    assert may(there, [eight, one], eight) == 3
    (first, second) = starts(NOW, there, [one, eight])
    assert (first.wish, first.held(NOW), first.when) == (eight, 3, NOW + 100)
    assert (second.held(NOW), second.when) == (0, NOW + 100), "of ten boards two are left by then"
    assert [lot.name for lot in first.ends][:2] == ["board3", "board4"]


@pytest.mark.parametrize(
    ("seconds", "when", "got"),
    [
        (100.0, NOW + 100, 1),
        (101.0, NOW + 100, 0),
        (None, NOW + 100, 0),
        (1.0, None, 0),
    ],
)
def test_a_younger_one_goes_first_where_it_is_over_in_time(seconds, when, got):
    """Lost: an hour of three boards that stand idle; or the start of the oldest, for one that ends after it."""
    there = lots([0, 1, 2], **{f"board{number}": when for number in range(3, 10)})
    assert may(there, [wish("eight", 1.0, 8)], wish("one", 2.0, seconds=seconds)) == got


def test_who_comes_without_a_place_goes_behind_all_that_wait():
    """Lost: the place of everybody who waits, to a play that happens to look at the right moment."""
    there = lots([0, 1, 2])
    waits = [wish("one", 1.0), wish("two", 2.0)]
    assert may(there, waits, wish("new", NOW)) == 1
    assert may(lots([0, 1]), waits, wish("new", NOW)) == 0
    assert may(lots([0, 1]), waits, wish("new", NOW, priority=1)) == 1
    own = replace(waits[1], asked=NOW)
    assert may(lots([0, 1]), waits, own) == 1, "its own place keeps nobody from what it asks for"


def test_others_boards_are_held_first():
    """Lost: a board that only the younger one can use, held for one that could have another."""
    there = lots([0, 1])
    old, young = wish("old", 1.0, 1, frozenset({"board0", "board1"})), wish("young", 2.0, 1, frozenset({"board0"}))
    found = left(NOW, there, [old], young)
    assert (found.may, list(found.devices)) == (1, ["board1"])
    assert may(lots([0]), [old], young) == 0
    other = wish("other", 1.0, 4, frozenset({"board7"}))
    assert not other.competes(young)
    assert [one.position for one in starts(NOW, there, [other, young])] == [1, 1]


def test_one_that_never_fits_holds_nothing():
    """Lost: boards of a node, for a request that this node can never serve."""
    there = lots([0, 1])
    assert may(there, [wish("no", 1.0, 3, frozenset())], wish("one", 2.0, 2)) == 2


def test_one_that_nobody_can_serve_before_an_operator_comes_holds_nothing():
    """Lost: two sound boards for hours, beside one in error, for a request for three; or the turn of that request, once
    the board is repaired; or what it may yet have where one of the boards is only in use, or another node has one.
    """
    young = wish("young", 2.0, 2)
    for others, got in ((0, 2), (1, 0), (None, 0)):
        three = wish("three", 1.0, 3, others=others)
        assert may(lots([0, 1]), [three, young], young) == got, others
        start = starts(NOW, lots([0, 1]), [three, young])[0]
        held = (start.wish, start.position, start.possible, start.enough, start.held(NOW))
        assert held == (three, 1, 2, got == 0, 2 - got)
    three = wish("three", 1.0, 3, others=0)
    assert may([*lots([0, 1]), Lot(None, {}, ("board2",), "board2")], [three], young) == 0
    assert may(lots([0, 1], board2=NOW + 9), [three], young) == 0
    assert may(lots([0, 1, 2]), [three], young) == 0, "repaired"
    assert may(lots([0, 1]), [replace(three, least=1)], young) == 0, "a part is enough for it"
    limited = replace(three, most=2)
    assert may(lots([0, 1, 2]), [limited], young) == 1, "what its owner has may end"
    behind = starts(NOW, lots([0, 1]), [three, young])[1]
    assert (behind.when, behind.position, behind.held(NOW)) == (NOW, 2, 2)


def test_amounts_and_devices_of_a_host():
    """Lost: four GPUs at once, beside requests for one; or memory, to an instance that wants no GPU."""
    gpus = frozenset({"g0", "g1", "g2", "g3"})
    big = Wish("big", "ann", 1.0, 2, 2, amounts={"memory_mb": 16}, devices=((gpus, 2),), seconds=50.0)
    one = Wish("one", "bob", 2.0, 1, 1, amounts={"memory_mb": 8}, devices=((gpus, 1),))
    plain = Wish("plain", "bob", 3.0, 3, 1, amounts={"memory_mb": 8})
    there = [Lot(0.0, {"memory_mb": 40}, ("g0",)), Lot(NOW + 10, {"memory_mb": 8}, ("g1", "g2", "g3"), "ml-7", "cy")]
    assert may(there, [big], one) == 0
    found = left(NOW, there, [big], plain)
    assert (found.may, found.amounts["memory_mb"]) == (1, (32, big))
    first, second = starts(NOW, there, [big, one])
    assert (first.when, first.steps, first.held(NOW)) == (NOW + 10, ((NOW + 10, 2),), 0)
    assert second.when == NOW + 60, "when the first one's lease is over"
    assert [big.competes(one), big.competes(plain), wish("lab", 1.0).competes(plain)] == [True, True, False]


def test_a_part_is_enough_for_who_says_so():
    there = lots([0], board1=NOW + 5)
    assert starts(NOW, there, [wish("lab", 1.0, 2, partial=True)])[0].when == NOW
    assert starts(NOW, there, [wish("lab", 1.0, 2)])[0].when == NOW + 5


def test_what_ends_at_one_time_is_told_once():
    """Lost: a line of `status` that a person can read: one time with two numbers, one instance named twice."""
    there = [*lots([0], board1=NOW + 5, board2=NOW + 5), Lot(NOW + 9, {}, ("board3", "board4"), "vm", "bob")]
    (start,) = starts(NOW, there, [wish("lab", 1.0, 5)])
    assert start.steps == ((NOW, 1), (NOW + 5, 3), (NOW + 9, 5))
    assert [lot.name for lot in start.ends] == ["board1", "board2", "vm"]


def test_several_nodes_give_the_time_together():
    """Lost: when a request starts that no node can serve alone."""
    mine, theirs = ((NOW, 1), (NOW + 60, 2)), ((NOW + 30, 2),)
    assert expected(NOW, [mine, theirs], 3) == NOW + 30
    assert expected(NOW, [mine, theirs], 4) == NOW + 60
    assert expected(NOW, [mine, theirs], 5) is None
    here = starts(NOW, lots([0]), [wish("lab", 1.0, 3, elsewhere=theirs)])[0]
    assert (here.when, here.steps) == (NOW + 30, ((NOW, 1),))


def test_ordinals():
    assert [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 112)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th",
    ]  # fmt: skip


# ---- two nodes


@pytest.mark.parametrize("seed", range(50))
def test_two_requests_for_all_of_two_nodes_are_both_served(seed):
    """Lost: both, for ever: each node holds its boards for another one. Each asks at one node before the other, finds
    half, and gives it back; the tickets come to the nodes in any order.
    """
    order = random.Random(seed)
    nodes = {name: dict(free=set(names(3)), tickets={}) for name in ("p1", "p2")}
    plays = {name: wish(name, 1.0, 6, 3) for name in ("a", "b")}
    served = []
    for _round in range(20):
        asking = [(play, node) for play in plays if play not in served for node in nodes]
        order.shuffle(asking)
        got = {play: {} for play in plays}
        for play, name in asking:
            node, asker = nodes[name], plays[play]
            there = [Lot(0.0, {}, tuple(sorted(node["free"]))), *(Lot(None, {}, (one,), one) for one in names(3))]
            known = [one for one in node["tickets"].values() if one.request not in served]
            got[play][name] = sorted(node["free"])[: left(NOW, there, known, asker).may]
            node["free"] -= set(got[play][name])
            node["tickets"][play] = asker
        for play, parts in got.items():
            if play not in served and sum(map(len, parts.values())) == 6:
                served.append(play)
                for node in nodes.values():
                    node["tickets"].pop(play)
            for name, boards in parts.items():  # what it got it gives back, at once or when it is done
                nodes[name]["free"] |= set(boards)
        if len(served) == 2:
            break
    assert served == ["a", "b"] or (seed and sorted(served) == ["a", "b"])


# ---- 1,000 histories


class History:
    """Requests that come, wait, run and end, on one node with boards that are all alike; time goes in ticks. Of each
    second one, free boards fail and are repaired.
    """

    def __init__(self, seed, leases_only):
        dice = random.Random(seed)
        self.faults, self.failed = not leases_only and seed % 2 == 1, {}
        self.dice, self.now, self.free, self.running, self.waits = dice, 0, set(names(BOARDS)), {}, {}
        self.coming = []
        for number in range(REQUESTS):
            lease = float(dice.randint(1, 9)) if leases_only or dice.random() < 0.6 else None
            # Of those without a lease somebody ends each at some time, which nobody knows before.
            ends = lease if lease is not None else dice.randint(1, 12)
            if not leases_only and lease is not None and dice.random() < 0.3:
                ends = dice.randint(1, int(lease))
            asked = wish(
                f"r{number}", float(dice.randint(0, 20)), dice.choice((1, 1, 1, 2, 3, BOARDS)), BOARDS, seconds=lease,
                priority=0 if leases_only else dice.choice((0, 0, 0, 1)), others=0,
            )  # fmt: skip
            self.coming.append((asked, ends, None if leases_only or dice.random() < 0.9 else dice.randint(0, 15)))

    def lots(self):
        lent = [
            Lot(None if one.seconds is None else began + one.seconds, {}, tuple(boards), one.request, "x")
            for one, began, _ends, boards in self.running.values()
        ]
        return [Lot(-1.0, {}, tuple(sorted(self.free))), *lent]

    def tick(self):
        """Have come who comes, end who ends, die who dies, and ask everybody who waits, in any order."""
        self.fail_and_repair()
        for name, (_one, began, ends, boards) in list(self.running.items()):
            if began + ends <= self.now:
                self.free |= set(boards)
                del self.running[name]
        for one, ends, dies in self.coming:
            if one.asked == self.now:
                self.waits[one.request] = (one, ends, None if dies is None else self.now + dies)
        for name, (_one, _ends, dies) in list(self.waits.items()):
            if dies is not None and dies <= self.now:
                del self.waits[name]
        asking = list(self.waits)
        self.dice.shuffle(asking)
        for name in asking:
            yield self.waits[name][0]

    def fail_and_repair(self):
        for board, repaired in list(self.failed.items()):
            if repaired <= self.now:
                self.free.add(board)
                del self.failed[board]
        if self.faults and self.free and self.now < TICKS // 2 and self.dice.random() < 0.2:
            board = self.dice.choice(sorted(self.free))
            self.free.remove(board)
            self.failed[board] = self.now + self.dice.randint(1, 15)

    def can_be_served(self, one):
        return one.need <= BOARDS - len(self.failed)

    def start(self, one):
        boards = sorted(self.free)[: one.need]
        self.free -= set(boards)
        self.running[one.request] = (one, self.now, self.waits.pop(one.request)[1], boards)

    def model(self, asker):
        """How many boards it may have, counted on a list of the times at which one board each becomes free."""
        ends = [began + one.seconds for one, began, _e, boards in self.running.values() for _b in boards if one.seconds]
        times, planned = sorted([self.now] * len(self.free) + [max(self.now, end) for end in ends]), []
        for one, _ends, _dies in sorted(self.waits.values(), key=lambda each: each[0].rank):
            if one.rank >= asker.rank:
                break
            if not self.can_be_served(one):
                continue
            at = times[one.need - 1] if len(times) >= one.need else None
            if self.spare(planned, one) >= one.need:
                at = self.now
            planned.append((one, at))
            taken = [when for when in times if at is None or when <= at][: one.need]
            times = times[len(taken) :]
            if at is not None and one.seconds is not None:
                times = sorted(times + [at + one.seconds] * len(taken))
        return min(asker.need, self.spare(planned, asker))

    def spare(self, planned, asker):
        """How many free boards those before it leave to it: all, if it is over when they start."""
        spare, over = len(self.free), None if asker.seconds is None else self.now + asker.seconds
        for one, at in planned:
            if at is None or over is None or over > at:
                spare -= min(spare, one.need)
        return spare


@pytest.mark.dear
@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_a_thousand_histories_are_served_as_the_model_has_it(first):
    """Lost: the order of service. Each decision is compared with the model's, and what it costs those who wait longer
    is counted: nobody takes what an older one could hold, but whose lease is over before that one can start.
    """
    for seed in range(first, first + 100):
        history, order = History(seed, leases_only=False), []
        for history.now in range(TICKS):
            for asker in history.tick():
                waits = [one for one, _ends, _dies in history.waits.values()]
                got = left(float(history.now), history.lots(), waits, asker).may
                assert got == history.model(asker), (seed, history.now, asker)
                if got == asker.need:
                    _nobody_older_loses(history, asker)
                    history.start(asker)
                    order.append(asker.request)
            _the_first_one_has_no_room(history)
        left_over = [one.need for one, _ends, _dies in history.waits.values()]
        assert not left_over or any(one.seconds is None for one, *_rest in history.running.values()), seed
        assert len(set(order)) == len(order)


def _nobody_older_loses(history, asker):
    """Where it takes what the first one needs, its lease is over when that one's last board is free; and nobody older
    who could start at this moment loses what it needs for that.
    """
    free, after = len(history.free), len(history.free) - asker.need
    lent = [one.seconds + began for one, began, _e, boards in history.running.values() for _b in boards if one.seconds]
    ends = sorted(lent)
    older = sorted((one for one, _e, _d in history.waits.values() if one.rank < asker.rank), key=lambda one: one.rank)
    older = list(filter(history.can_be_served, older))
    if older and after < min(free, older[0].need):
        lacks = older[0].need - free
        assert asker.seconds is not None, (asker, older)
        assert 0 < lacks <= len(ends), (asker, older)
        assert history.now + asker.seconds <= ends[lacks - 1], (asker, older)
    for one in older:
        waits = [each for each, _ends, _dies in history.waits.values()]
        if left(float(history.now), history.lots(), waits, one).may == one.need:
            assert after >= one.need, (asker, one)


def _the_first_one_has_no_room(history):
    could = [one for one, _ends, _dies in history.waits.values() if history.can_be_served(one)]
    if could:
        first = min(could, key=lambda one: one.rank)
        assert first.need > len(history.free), "boards stand idle that the first one needs, and no others"
        assert first.need <= len(history.free) + len(history.running) * BOARDS


def test_nobody_starts_later_than_was_told():
    """Lost: that a request for all boards starts at all, and when: whatever comes after it, what it was told when it
    came holds where each lease is kept.
    """
    waited = []
    for seed in range(100):
        history, told = History(seed, leases_only=True), {}
        for history.now in range(200):
            for asker in history.tick():
                waits = [one for one, _ends, _dies in history.waits.values()]
                if left(float(history.now), history.lots(), waits, asker).may == asker.need:
                    history.start(asker)
                    assert history.now <= told.get(asker.request, history.now), (seed, asker)
            waits = [one for one, _ends, _dies in history.waits.values()]
            for start in starts(float(history.now), history.lots(), waits):
                assert start.when is not None
                told.setdefault(start.wish.request, start.when)
        assert (history.waits, history.running) == ({}, {}), seed
        waited += [one.need for one, *_rest in history.coming if one.request in told]
    assert waited.count(BOARDS) > 50
