# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reservations by date leave to a request: one rule for boards, containers and guests.

A reservation has so many places on a node. A claim is allowed where, as long as it lasts, no fewer of all reserved
places can be served with it than without it. What an owner has serves its own reservations. So what is reserved is
given to nobody else; what nobody can have any more, for others have it longer, keeps nothing from anybody; and where
reservations contradict each other, the first of their owners to ask is served. This works on values only; the nodes
decide by it when they claim.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Callable, Dict, FrozenSet, Iterable, Iterator, Mapping, NamedTuple, Sequence, Tuple

from ..site.owners import same
from .reserved import Amounts, Blocked, Holding, Lack, Reserved, Taker
from .served import Serves, served

#: What a device would do for: (number of a reservation, number of what each of its instances takes).
Wants = FrozenSet[Tuple[int, int]]


class Reserves:
    """The reservations of one node."""

    def __init__(self, reserved: Iterable[Reserved] = ()) -> None:
        self.all = tuple(reserved)
        self._wants: Dict[str, Wants] = {}
        self._owners: Dict[str, bool] = {}
        self._by_start = sorted(enumerate(self.all), key=lambda one: one[1].start)
        self._amounts = {key for one in self.all for key in one.amounts}

    def __bool__(self) -> bool:
        return bool(self.all)

    def ends(self, now: float) -> list[float]:
        """Return when reservations end that are not over."""
        return sorted({one.end for one in self.all if one.end > now})

    def blocked(
        self, now: float, holdings: Sequence[Holding], taker: Taker, offered: Iterable[str]
    ) -> dict[str, Blocked]:
        """Return {device: why} of the devices that a request does not get. All others it may have together.

        :param offered: the devices that are free and would do, the most wanted first.
        """
        wanted = [name for name in dict.fromkeys(offered) if self._wanted(name)]  # others are reserved for nobody
        moments = list(self._moments(now, _with(holdings, wanted), taker)) if wanted else []
        kinds: Dict[Wants, list[str]] = {}
        for name in wanted if moments else ():
            kinds.setdefault(self._wanted(name), []).append(name)
        taken: list[Counter[tuple[Serves, Serves]]] = [Counter() for _moment in moments]
        found: dict[str, Blocked] = {}
        for wants, names in kinds.items():
            kind = [(one.serves(wants, None), one.serves(wants, taker.owner)) for one in moments]
            refuses = partial(_refusing, moments, taken, kind)
            many = _most(len(names), partial(_allowed, moments, taken, kind))
            refusing = refuses(many + 1) if many < len(names) else None
            for those, one in zip(taken, kind):
                those[one] += many
            if refusing is not None:
                found.update(dict.fromkeys(names[many:], refusing.why(taker.owner, wants)))
        return found

    def room(
        self, now: float, holdings: Sequence[Holding], taker: Taker, most: int
    ) -> tuple[int, dict[str, tuple[int, Blocked]]]:
        """Return how many instances of a request there is room for by what can be divided, of `most`, and of what is
        reserved so that there are no more: {key: (how much of it, for what)}.
        """
        moments = list(self._moments(now, holdings, taker)) if self._amounts & taker.amounts.keys() else []
        many = _most(most, lambda more: all(not one.short_of(taker, more) for one in moments))
        short: dict[str, tuple[int, Blocked]] = {}
        for one in moments if many < most else ():
            for key, size in one.short_of(taker, many + 1).items():
                short.setdefault(key, (size, one.why(taker.owner, key)))
        return many, short

    def headroom(self, now: float, holdings: Sequence[Holding], taker: Taker, key: str) -> tuple[int, Blocked] | None:
        """Return how much of what can be divided a request may have, and what keeps it from more; None for all.

        What is reserved for itself keeps nothing from it.
        """
        found: tuple[int, Blocked] | None = None
        for one in self._moments(now, holdings, taker) if key in self._amounts else ():
            most = one.beside_others(taker.owner, key)
            if most is not None and (found is None or most < found[0]):
                found = most, one.why(taker.owner, key)
        return found

    def reaches(
        self, now: float, holdings: Sequence[Holding], name: str, taker: Taker, old: float | None
    ) -> Blocked | None:
        """Return what a longer lease would reach into, or None.

        :param name: what has the lease (Holding.name).
        :param taker: with the new end of the lease.
        :param old: its present end.
        """
        own = next((one for one in holdings if one.name == name), None)
        if own is None or old is None:
            return None
        rest = [one for one in holdings if one is not own]
        ended = own._replace(when=0.0, name="", who="")
        blocked = self.blocked(max(now, old), [*rest, ended], taker, own.devices)
        if blocked:
            return min(blocked.values(), key=lambda one: one.when)
        _many, short = self.room(max(now, old), [*rest, ended], replace(taker, amounts=own.amounts), 1)
        return min((one for _size, one in short.values()), key=lambda one: one.when, default=None)

    def lacks(self, now: float, holdings: Sequence[Holding]) -> list[Lack]:
        """Return the reservations that cannot be served by present leases, each once, the earliest first."""
        found: dict[int, Lack] = {}
        for moment in self._moments(now, holdings, Taker("", None)):
            missing, short = moment.missing()
            for number, many in missing.items():
                if number not in found:
                    one, keys = self.all[number], tuple(short.get(number, ()))
                    lack = Lack(one, many, _others(one, moment.when, holdings, keys), keys)
                    found[number] = lack if lack.others or keys else _beside(lack, moment, holdings)
        return list(found.values())

    def _moments(self, now: float, holdings: Iterable[Holding], taker: Taker) -> Iterator[_Moment]:
        """Yield the times at which a claim could begin to take what is reserved, the earliest first.

        Between them reservations of others only end, and more becomes free.
        """
        starts = {one.start for one in self.all} | {one.end for one in self.all if same(one.owner, taker.owner)}
        later = {when for when in starts if now < when and (taker.until is None or when < taker.until)}
        summed = self._summed(now, holdings)
        active: Dict[int, Reserved] = {}
        begun = 0
        for when in sorted({now, *later}):
            while begun < len(self._by_start) and self._by_start[begun][1].start <= when:
                active.update([self._by_start[begun]])
                begun += 1
            active = {n: one for n, one in active.items() if when < one.end}
            if active:
                yield _Moment(when, dict(sorted(active.items())), summed)

    def _summed(self, now: float, holdings: Iterable[Holding]) -> list[_Summed]:
        """Return the holdings that make a difference: what is free by now together, and what others have only where it
        becomes free, or is of an owner for whom something is reserved.
        """
        kinds: Counter[Wants] = Counter()
        amounts: Counter[str] = Counter()
        found = []
        for one in holdings:
            if one.when is not None and one.when <= now:
                kinds.update(map(self._wanted, one.devices))
                amounts.update(one.amounts)
            elif one.when is not None or self.is_owner(one.who):
                found.append(_Summed(one, Counter(map(self._wanted, one.devices))))
        return [_Summed(Holding(now, amounts, ()), kinds), *found]

    def is_owner(self, name: str) -> bool:
        """Return whether something is reserved for somebody of that name."""
        if name not in self._owners:
            self._owners[name] = any(same(one.owner, name) for one in self.all)
        return self._owners[name]

    def _wanted(self, device: str) -> Wants:
        """Return what a device would do for."""
        if device not in self._wants:
            every = ((n, part, names) for n, one in enumerate(self.all) for part, (names, _c) in enumerate(one.devices))
            wants = frozenset((n, part) for n, part, names in every if device in names)
            # devices that would do for the same share one set, which is then told from others without looking into it
            self._wants[device] = next((one for one in self._wants.values() if one == wants), wants)
        return self._wants[device]


def _others(one: Reserved, when: float, holdings: Iterable[Holding], short: Iterable[str]) -> list[Holding]:
    """Return the claims of others that have what would do for a reservation longer than until a time.

    :param short: of what can be divided, what there is too little of.
    """
    longer = [other for other in holdings if other.who and (other.when is None or other.when > when)]
    theirs = [other for other in longer if not same(other.who, one.owner)]
    wanted = one.every_device
    return [
        other
        for other in theirs
        if not one.devices or wanted & set(other.devices) or any(other.amounts.get(key) for key in short)
    ]


def _beside(lack: Lack, moment: _Moment, holdings: Iterable[Holding]) -> Lack:
    """Return what a reservation lacks although nobody has what it wants: it goes to those that want some of the same,
    with the claims of others that have what would do for one of these.
    """
    rivals = moment.rivals(lack.reserved)
    every = replace(lack.reserved, devices=tuple(part for one in (lack.reserved, *rivals) for part in one.devices))
    owners = tuple(dict.fromkeys(one.owner for one in rivals))
    return lack._replace(others=_others(every, moment.when, holdings, ()), rivals=owners)


def _with(holdings: Sequence[Holding], offered: Sequence[str]) -> list[Holding]:
    """Return holdings in which all devices are free that are offered."""
    free = {name for one in holdings if one.when == 0 for name in one.devices}
    more = {name for name in offered if name not in free}
    if not more:
        return list(holdings)
    rest = [one._replace(devices=[name for name in one.devices if name not in more]) for one in holdings]
    return [*rest, Holding(0.0, {}, sorted(more))]


class _Summed(NamedTuple):
    """A holding, and how many of its devices would do for the same."""

    holding: Holding
    kinds: Counter[Wants]


class _Moment:
    """One time: what is reserved then, and what of a node serves it by present leases."""

    def __init__(self, when: float, active: Mapping[int, Reserved], holdings: Iterable[_Summed]) -> None:
        self.when, self._active = when, active
        self._parts = [(number, part) for number, one in active.items() for part in range(len(one.devices))]
        self._needs = [active[number].count * active[number].devices[part][1] for number, part in self._parts]
        self._there: Counter[Serves] = Counter()
        self._free: Dict[str, int] = {}
        self._own: list[tuple[str, Amounts, FrozenSet[str]]] = []
        self._known: Dict[tuple[Wants, str | None], Serves] = {}
        for one, kinds in holdings:
            is_free = one.when is not None and one.when <= when
            for wants, many in kinds.items():
                self._there[self.serves(wants, None if is_free else one.who)] += many
            if is_free:
                for key, size in one.amounts.items():
                    self._free[key] = self._free.get(key, 0) + size
            elif one.who:
                self._own.append((one.who, one.amounts, frozenset(one.devices)))
        self._there.pop(frozenset(), None)
        self._most: int | None = None

    def serves(self, wants: Wants, owner: str | None) -> Serves:
        """Return the demands that a device serves as long as it is free, or of those of an owner who has it."""
        if (wants, owner) not in self._known:
            self._known[wants, owner] = frozenset(
                number
                for number, one in enumerate(self._parts)
                if one in wants and (owner is None or same(owner, self._active[one[0]].owner))
            )
        return self._known[wants, owner]

    def takes(self, taken: Mapping[tuple[Serves, Serves], int]) -> bool:
        """Return whether fewer places can be served once somebody has taken so many devices of each kind."""
        change: Counter[Serves] = Counter()
        for (free, own), many in taken.items():
            if free != own:
                change[free] -= many
                change[own] += many
        return any(change.values()) and sum(self._flow(change)) < self._served

    @property
    def _served(self) -> int:
        """Return how many devices of all that are reserved there are, looked up once."""
        if self._most is None:
            self._most = sum(self._flow(Counter()))
        return self._most

    def short_of(self, taker: Taker, many: int) -> dict[str, int]:
        """Return {key: how much is reserved} of what would be short for reservations with so many instances more.

        What is reserved for the taker itself keeps nothing from it.
        """
        if not many:
            return {}
        before, names = self._by_owners(self._own), frozenset().union(*(names for names, _count in taker.devices))
        after = self._by_owners([*self._own, *[(taker.owner, taker.amounts, names)] * many])
        short = {}
        for key, size in taker.amounts.items():
            free, wanted = self._free.get(key, 0), self._reserved(key)
            could = before.get(key, 0) + min(free, wanted - before.get(key, 0))
            rest = max(0, free - many * size)
            if size and after.get(key, 0) + min(rest, wanted - after.get(key, 0)) < could:
                others = self.beside_others(taker.owner, key)
                if others is not None and many * size > others:
                    short[key] = min(free, wanted - after.get(key, 0))
        return short

    def beside_others(self, owner: str, key: str) -> int | None:
        """Return how much of what can be divided is not needed for what is reserved for others; None where they need
        nothing of it.
        """
        theirs = [one for one in self._active.values() if not same(one.owner, owner)]
        has = self._by_owners(one for one in self._own if not same(one[0], owner))
        need = sum(one.count * one.amounts.get(key, 0) for one in theirs) - has.get(key, 0)
        return max(0, self._free.get(key, 0) - need) if need > 0 else None

    def missing(self) -> tuple[dict[int, int], dict[int, list[str]]]:
        """Return {number of a reservation: how many of its instances cannot be served}, and {number: the keys of what
        can be divided of which there is too little}.
        """
        found: dict[int, int] = {}
        little: dict[int, list[str]] = {}
        for (number, part), need, there in zip(self._parts, self._needs, self._flow(Counter())):
            lacks = math.ceil((need - there) / self._active[number].devices[part][1])
            if lacks:
                found[number] = max(found.get(number, 0), lacks)
        has = self._by_owners(self._own)
        for key in sorted({key for one in self._active.values() for key in one.amounts}):
            short = self._reserved(key) - has.get(key, 0) - self._free.get(key, 0)
            for number, one in reversed(list(self._active.items())):
                size, part = one.amounts.get(key, 0), min(short, one.count * one.amounts.get(key, 0))
                if part > 0:
                    found[number] = max(found.get(number, 0), math.ceil(part / size))
                    little.setdefault(number, []).append(key)
                    short -= part
        return found, little

    def rivals(self, reserved: Reserved) -> list[Reserved]:
        """Return the other reservations of this time that want some of the same devices."""
        wanted = reserved.every_device
        return [one for one in self._active.values() if one is not reserved and wanted & one.every_device]

    def why(self, owner: str, what: Wants | str) -> Blocked:
        """Return what devices of a kind, or a key's amount, would be needed for: of another owner, if there is one."""
        numbers = {number for number, _part in what} if isinstance(what, frozenset) else ()
        fits = [one for number, one in self._active.items() if number in numbers or what in one.amounts]
        others = [one for one in fits if not same(one.owner, owner)]
        first = max(others or fits or self._active.values(), key=lambda one: (one.start, -one.end))
        return Blocked(first, self.when)

    def _reserved(self, key: str) -> int:
        return sum(one.count * one.amounts.get(key, 0) for one in self._active.values())

    def _by_owners(self, own: Iterable[tuple[str, Amounts, FrozenSet[str]]]) -> dict[str, int]:
        """Return {key: how much of what is reserved the instances of its owners have}."""
        left = {number: one.count for number, one in self._active.items() if one.amounts}
        has: dict[str, int] = {}
        for owner, amounts, devices in own if left else ():
            for number in [number for number in left if same(owner, self._active[number].owner)]:
                one = self._active[number]
                enough = one.by_devices or all(amounts.get(key, 0) >= size for key, size in one.amounts.items())
                if enough and all(len(names & devices) >= count for names, count in one.devices):
                    has.update((key, has.get(key, 0) + size) for key, size in one.amounts.items())
                    left[number] -= 1
                    if not left[number]:
                        del left[number]
                    break
        return has

    def _flow(self, change: Mapping[Serves, int]) -> list[int]:
        there = dict(self._there)
        for serves, many in change.items():
            if serves:
                there[serves] = there.get(serves, 0) + many
        return served(self._needs, there)


def _refusing(
    moments: Sequence[_Moment],
    taken: Sequence[Counter[tuple[Serves, Serves]]],
    kind: Sequence[tuple[Serves, Serves]],
    more: int,
) -> _Moment | None:
    """Return the first moment that refuses so many devices of a kind beside what is taken, or None."""
    for moment, those, one in zip(moments, taken, kind):
        if moment.takes({**those, one: those[one] + more}):
            return moment
    return None


def _allowed(
    moments: Sequence[_Moment],
    taken: Sequence[Counter[tuple[Serves, Serves]]],
    kind: Sequence[tuple[Serves, Serves]],
    more: int,
) -> bool:
    return _refusing(moments, taken, kind, more) is None


def _most(limit: int, allowed: Callable[[int], bool]) -> int:
    """Return the largest number up to a limit that is allowed; all smaller ones are."""
    if allowed(limit):
        return limit
    low, high = 0, limit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


#: No reservations.
NONE = Reserves()
