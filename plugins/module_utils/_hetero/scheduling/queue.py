# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order in which requests that wait are served: what of a node's resources is held for whom, and when each request
can start.

The order is the same on all nodes: priority, then the time at which the controller asked, then the name. What the first
request needs and is free is held for it until it has all. A younger request may have it meanwhile if its lease is over
by the time at which the first one can start. A request that nobody can serve before an operator does something keeps
its place and holds nothing. This works on values only; the nodes decide by it when they claim.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Collection, Dict, FrozenSet, Iterable, List, Mapping, Sequence

from .reservations import NONE, Reserves
from .reserved import Blocked, Holding, Reserved, Taker
from .turns import Steps, expected, many_by

#: {what can be divided, such as memory_mb: how much}.
Amounts = Mapping[str, int]


@dataclass(frozen=True)
class Wish:
    """What a request still wants, as one node sees it.

    :param asked: when it was asked for, by the controller's clock (unix seconds).
    :param need: how many instances it lacks, on all nodes together.
    :param least: with how many of them it would start.
    :param amounts: what each instance takes of what can be divided.
    :param devices: for each instance, (the devices that would do, how many of them it takes).
    :param seconds: how long it keeps them; None without an end.
    :param elsewhere: what other nodes can give it by when.
    :param others: how many of them other nodes can give it at all, as long as no operator does anything; None where
        nobody knows it.
    :param most: how many of them its owner may have here; None for no limit.
    """

    request: str
    owner: str
    asked: float
    need: int
    least: int
    priority: int = 0
    amounts: Amounts = field(default_factory=dict)
    devices: tuple[tuple[FrozenSet[str], int], ...] = ()
    seconds: float | None = None
    elsewhere: Steps = ()
    most: int | None = None
    others: int | None = None

    @property
    def rank(self) -> tuple[int, float, str, str]:
        """Return its place in the order, which is the same on all nodes."""
        return (-self.priority, self.asked, self.request, self.owner)

    @property
    def every_device(self) -> FrozenSet[str]:
        """Return all devices that would do."""
        return frozenset().union(*(those for those, _count in self.devices))

    def competes(self, other: Wish) -> bool:
        """Return whether both want some of the same: devices, or where one wants none of these, amounts."""
        if self.devices and other.devices:
            return bool(self.every_device & other.every_device)
        return bool(set(self.amounts) & set(other.amounts))


@dataclass(frozen=True)
class Lot:
    """What becomes free together. What only an operator can make free is in none.

    :param when: the time (unix seconds); None where nobody knows it.
    :param name, who: for people, which node or instance has it now, and whose it is.
    """

    when: float | None
    amounts: Amounts = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    name: str = ""
    who: str = ""


@dataclass(frozen=True)
class Start:
    """When a request can start.

    :param position: 1 for the first of those that want some of the same.
    :param when: unix seconds, by the ends of leases; None where they do not tell.
    :param steps: how many instances it can have here by when.
    :param devices: the devices that it is to get here, those that are free first.
    :param ends: the lots of others for whose end it waits here, the earliest first.
    :param possible: how many instances it can have here at all, as long as no operator does anything.
    :param reserved: what it would get here now, were it not reserved for others.
    :param enough: whether that is enough, with what other nodes can give it. Where it is not, nothing is held for it.
    """

    wish: Wish
    position: int
    when: float | None
    steps: Steps
    devices: tuple[str, ...]
    ends: tuple[Lot, ...]
    possible: int
    reserved: tuple[Reserved, ...] = ()
    enough: bool = True

    def held(self, now: float) -> int:
        """Return for how many instances enough is free and held for it here."""
        return many_by(self.steps, now) if self.enough else 0


@dataclass(frozen=True)
class Left:
    """What requests that wait leave to another one.

    :param may: how many instances it may have.
    :param devices: {device that is held: the wish for which it is}.
    :param amounts: {key: (how much is held in all, the first wish for which it is)}.
    :param goes_first: whether some of them leave it more, as its lease is over when they start.
    :param reserved: what keeps it from more, as it is reserved for others.
    """

    may: int
    devices: Mapping[str, Wish]
    amounts: Mapping[str, tuple[int, Wish]]
    goes_first: bool = False
    reserved: tuple[Reserved, ...] = ()


class _Room:
    """What was counted of lots for one wish."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._amounts = dict.fromkeys(wish.amounts, 0)
        self._devices = [0] * len(wish.devices)

    def add(self, amounts: Amounts, devices: Iterable[str]) -> None:
        for key in self._amounts:
            self._amounts[key] += amounts.get(key, 0)
        for number, (wanted, _count) in enumerate(self._wish.devices):
            self._devices[number] += sum(name in wanted for name in devices)

    @property
    def many(self) -> int:
        """Return for how many instances it is enough, at most as many as are wanted."""
        rooms = [self._amounts[key] // size for key, size in self._wish.amounts.items() if size]
        rooms += [there // count for there, (_wanted, count) in zip(self._devices, self._wish.devices) if count]
        rooms += [] if self._wish.most is None else [self._wish.most]
        return max(0, min([self._wish.need, *rooms]))


class _Pool:
    """Lots from which wishes take."""

    def __init__(self, lots: Iterable[Lot], reserves: Reserves = NONE) -> None:
        self._lots: list[tuple[Lot, Dict[str, int], List[str]]] = []
        self._reserves = reserves
        self._allowed: Dict[object, tuple[int, dict[str, Blocked], list[Blocked]]] = {}  # as long as nothing changes
        for lot in lots:
            self.add(lot)

    def add(self, lot: Lot) -> None:
        self._lots.append((lot, dict(lot.amounts), list(lot.devices)))
        self._lots.sort(key=lambda one: (one[0].when is None, one[0].when or 0.0))
        if lot.amounts or lot.devices:
            self._allowed.clear()

    def last(self, now: float) -> float:
        """Return the last time at which it is known that something becomes free."""
        return max([now, *(lot.when for lot, _amounts, _devices in self._lots if lot.when is not None)])

    def fitting(self, wish: Wish, until: float | None) -> int:
        """Return how many instances of a wish there is room for by a time; None for the time when all is free."""
        room = _Room(wish)
        for _lot, some, those in self._by(until):
            room.add(some, those)
        return room.many

    def has_some(self, wish: Wish, until: float) -> bool:
        """Return whether there is a device by a time for each part of a wish that takes devices."""
        there = {name for _lot, _some, those in self._by(until) for name in those}
        return all(not there.isdisjoint(names) for names, count in wish.devices if count)

    def steps(self, wish: Wish, now: float, may: int) -> Steps:
        """Return how many instances of a wish there is room for by when.

        :param may: how many there is room for now in any case.
        """
        room, found = _Room(wish), [(now, may)] if may else []
        ends = [(Lot(when), {}, []) for when in self._reserves.ends(now)]
        known = [one for one in [*self._lots, *ends] if one[0].when is not None]
        for lot, some, those in sorted(known, key=lambda one: one[0].when or 0.0):
            room.add(some, those)
            when, many = max(now, lot.when or 0.0), room.many
            if self._reserves and many > (found[-1][1] if found else 0):
                many = min(many, self.allowed(wish, when)[0])
            if many > (found[-1][1] if found else 0):
                if found and found[-1][0] == when:
                    found.pop()
                found.append((when, many))
        return tuple(found)

    def allowed(self, wish: Wish, when: float) -> tuple[int, dict[str, Blocked], list[Blocked]]:
        """Return how many instances of a wish reservations leave at a time, {device: why} of those that they do not
        leave, and all that keeps it from more.
        """
        if not self._reserves:
            return wish.need, {}, []
        until = None if wish.seconds is None else when + wish.seconds
        owner = wish.owner if self._reserves.is_owner(wish.owner) else ""  # all others are served alike
        key = (owner, when, until, wish.need, tuple(sorted(wish.amounts.items())), wish.devices)
        if key not in self._allowed:
            self._allowed[key] = self._allows(wish, when)
        return self._allowed[key]

    def _allows(self, wish: Wish, when: float) -> tuple[int, dict[str, Blocked], list[Blocked]]:
        there = [Holding(lot.when, some, those, lot.name, lot.who) for lot, some, those in self._lots]
        until = None if wish.seconds is None else when + wish.seconds
        taker, wanted = Taker(wish.owner, until, wish.amounts, wish.devices), wish.every_device
        offered = [name for _lot, _some, those in self._by(when) for name in those if name in wanted]
        blocked = self._reserves.blocked(when, there, taker, offered)
        many, short = self._reserves.room(when, there, taker, wish.need)
        for names, count in wish.devices:
            many = min(many, sum(name in names and name not in blocked for name in offered) // count)
        return many, blocked, [*blocked.values(), *(why for _size, why in short.values())]

    def take(
        self, wish: Wish, many: int, until: float | None, last: Collection[str] = (), never: Collection[str] = ()
    ) -> tuple[Dict[str, int], list[tuple[str, Lot]], list[Lot]]:
        """Take what is there of what so many instances of a wish need, the earliest first.

        :param last: devices that are taken only where others do not suffice.
        :param never: devices that are not taken.
        :returns: the amounts, the devices with their lots, and all lots of which something was taken.
        """
        taken: Dict[str, int] = {}
        found: list[tuple[str, Lot]] = []
        lots: list[Lot] = []
        for key, size in wish.amounts.items():
            rest = many * size
            for lot, some, _those in self._by(until):
                part = min(rest, some.get(key, 0))
                if part > 0:
                    some[key] -= part
                    taken[key] = taken.get(key, 0) + part
                    rest -= part
                    lots.append(lot)
        for wanted, count in wish.devices:
            could = wanted - set(never)
            there = [(name, lot, those) for lot, _some, those in self._by(until) for name in those if name in could]
            there.sort(key=lambda one: one[0] in last)  # stable: by time, then as listed
            for name, lot, those in there[: many * count]:
                those.remove(name)
                found.append((name, lot))
                lots.append(lot)
        if lots:
            self._allowed.clear()
        return taken, found, lots

    def _by(self, until: float | None) -> list[tuple[Lot, Dict[str, int], List[str]]]:
        return [one for one in self._lots if until is None or (one[0].when is not None and one[0].when <= until)]


def starts(now: float, lots: Sequence[Lot], wishes: Iterable[Wish], reserves: Reserves = NONE) -> list[Start]:
    """Return when each request can start, in their order, by the ends of leases and of reservations.

    Nobody is expected to end earlier, and of what has no end it is not known when it becomes free.
    """
    pool, every = _Pool(lots, reserves), _Pool(lots)
    found: list[Start] = []
    for wish in sorted(wishes, key=lambda one: one.rank):
        position = 1 + sum(wish.competes(one.wish) for one in found)
        # What its owner has may end, so a limit makes nothing impossible.
        possible = every.fitting(replace(wish, most=None), None)
        may = _left(now, lots, found, wish, (every, reserves)).may if found and wish.seconds is not None else 0
        steps = pool.steps(wish, now, may)
        if wish.others is not None and possible + wish.others < wish.least:
            found.append(Start(wish, position, None, steps, (), (), possible, enough=False))
            continue
        when = expected(now, [steps, wish.elsewhere], wish.least)
        # Of what ends at a time that is not known nothing is promised to anybody.
        until = when if when is not None else pool.last(now)
        keeps = pool.allowed(wish, now)[2]
        _many, never, _why = pool.allowed(wish, now if when is None else when)
        amounts, devices, used = pool.take(wish, every.fitting(wish, None), until, never=never)
        names = tuple(name for name, _lot in devices)
        if when is not None and wish.seconds is not None:
            pool.add(Lot(when + wish.seconds, amounts, names, who=wish.owner))
        elif reserves:
            pool.add(Lot(None, amounts, names, who=wish.owner))
        ends = tuple(one.lot for one in dict.fromkeys(map(_Same, used)) if one.lot.name)
        found.append(Start(wish, position, when, steps, names, ends, possible, _named(reserves, keeps)))
    return found


class _Same:
    """A lot as a key: lots are told apart by what they are, not by what they hold."""

    def __init__(self, lot: Lot) -> None:
        self.lot = lot

    def __hash__(self) -> int:
        return id(self.lot)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.lot is self.lot


def left(now: float, lots: Sequence[Lot], wishes: Iterable[Wish], asker: Wish, reserves: Reserves = NONE) -> Left:
    """Return what those who wait before a request leave to it of what is free.

    :param lots: all, those of others too: by their ends it is known whether a request is over in time.
    :param wishes: of all who wait; those behind the request, and its own, do not count.
    """
    own = (asker.request, asker.owner)
    ahead = [one for one in wishes if one.rank < asker.rank and (one.request, one.owner) != own]
    return _left(now, lots, starts(now, lots, ahead, reserves), asker, (_Pool(lots), reserves))


def _left(
    now: float, lots: Iterable[Lot], ahead: Iterable[Start], asker: Wish, those_there: tuple[_Pool, Reserves]
) -> Left:
    """Return what is left to a request.

    :param ahead: those who wait before it, in their order. Who starts when it is over by then leaves it all.
    :param those_there: all lots, of which nothing was taken, and what is reserved.
    """
    every, reserves = those_there
    pool = _Pool(lots, reserves)
    end = None if asker.seconds is None else now + asker.seconds
    devices: Dict[str, Wish] = {}
    amounts: Dict[str, tuple[int, Wish]] = {}
    goes_first = False
    for start in ahead:
        if not start.enough:
            continue
        if end is not None and start.when is not None and end <= start.when:
            goes_first = goes_first or start.wish.competes(asker)
            continue
        if reserves and not pool.has_some(start.wish, now):
            continue
        allowed, never, _why = pool.allowed(start.wish, now)
        many = every.fitting(start.wish, None)
        if reserves:  # of what only others may have nothing is held for it
            many = min(many, allowed)
        some, those, _lots = pool.take(start.wish, many, now, asker.every_device, never)
        if reserves:
            pool.add(Lot(None, some, tuple(name for name, _lot in those), who=start.wish.owner))
        devices.update((name, start.wish) for name, _lot in those)
        for key, size in some.items():
            before, first = amounts.get(key, (0, start.wish))
            amounts[key] = (before + size, first)
    there, (allowed, _never, keeps) = pool.fitting(asker, now), pool.allowed(asker, now)
    reserved = _named(reserves, keeps) if allowed < there else ()
    return Left(min(there, allowed), devices, amounts, goes_first, reserved)


def _named(reserves: Reserves, keeps: Collection[Blocked]) -> tuple[Reserved, ...]:
    """Return the reservations that keep something from a request, each once."""
    return tuple(one for one in reserves.all if any(why.reserved is one for why in keeps))
