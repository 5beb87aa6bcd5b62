# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reservations, requests and what a node has, as the rule of reservations.py reads them, and its answers in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import FrozenSet, List, Mapping, NamedTuple, Sequence, Tuple

from ..site.leases import at

#: {what can be divided, such as memory_mb: how much}.
Amounts = Mapping[str, int]
#: Devices that would do, and how many of them each instance takes.
Part = Tuple[FrozenSet[str], int]
#: Hours to which the lease that would be allowed is rounded down, and seconds that a person has to ask for it.
STEP, TIME_TO_ASK = 0.1, 300.0
#: How many of those who have longer what is reserved are named.
TOLD = 3
#: What boards have in common that can be divided: bytes that may yet be promised to roots.
ROOTS = "roots"
#: What can be divided, in words.
WORDS = {ROOTS: "room for roots", "memory_mb": "memory", "vcpus": "processors", "local_gb": "disk"}


class Holding(NamedTuple):
    """What becomes free together; queue.Lot says it of a node.

    :param when: the time (unix seconds), 0 for what is free; None where nobody knows it.
    :param name, who: which node or instance has it now, and whose it is.
    """

    when: float | None
    amounts: Amounts
    devices: Sequence[str]
    name: str = ""
    who: str = ""


@dataclass(frozen=True)
class Reserved:
    """A reservation as one node sees it.

    :param start, end: from when until when (unix seconds).
    :param what, why: for people.
    :param count: how many instances.
    :param amounts, devices: what each instance takes, as a queue.Wish has it.
    :param by_devices: an instance of the owner's that has the devices is one of them, however much else it takes.
    """

    owner: str
    start: float
    end: float
    what: str = ""
    why: str = ""
    count: int = 1
    amounts: Amounts = field(default_factory=dict)
    devices: Tuple[Part, ...] = ()
    by_devices: bool = False

    @property
    def for_what(self) -> str:
        """Return its reason in brackets with a blank before them; an empty text where nobody gave one."""
        return f" ({self.why})" if self.why else ""

    @property
    def text(self) -> str:
        """Return it in words."""
        return f"{self.what} for {self.owner} from {at(self.start)} to {at(self.end)}{self.for_what}"

    @property
    def every_device(self) -> FrozenSet[str]:
        """Return all devices that would do."""
        return frozenset().union(*(names for names, _count in self.devices))


@dataclass(frozen=True)
class Taker:
    """A request as it takes of a node.

    :param until: the end of its lease (unix seconds); None without an end.
    :param amounts, devices: what each instance takes.
    """

    owner: str
    until: float | None
    amounts: Amounts = field(default_factory=dict)
    devices: Tuple[Part, ...] = ()


class Blocked(NamedTuple):
    """Why something is not given: what it would be needed for, and from when on (unix seconds)."""

    reserved: Reserved
    when: float

    def text(self, now: float) -> str:
        """Return it in words, with the lease that would be allowed."""
        one = self.reserved
        if self.when <= now:
            return f"reserved for {one.owner} until {at(one.end)}{one.for_what}"
        hours = hours_until(self.when, now)
        return f"{self.words}: until then with -e hours={hours:g}" if hours else self.words

    @property
    def words(self) -> str:
        """Return what is reserved from when on."""
        one = self.reserved
        return f"reserved for {one.owner} from {at(self.when)} to {at(one.end)}{one.for_what}"


class Lack(NamedTuple):
    """A reservation that cannot be served.

    :param missing: how many instances, or devices of those that are named.
    :param others: the claims of others that last longer than its begin.
    :param short: of what can be divided, what there is too little of.
    :param rivals: the owners of other reservations that want some of the same then.
    """

    reserved: Reserved
    missing: int
    others: List[Holding]
    short: Tuple[str, ...] = ()
    rivals: Tuple[str, ...] = ()

    def text(self) -> str:
        """Return it in words."""
        ends = [f"until {at(one.when)}" if one.when is not None else "without end" for one in self.others[:TOLD]]
        named = [f"{one.name} is {one.who}'s {end}" for one, end in zip(self.others, ends)]
        more = ", …" if self.others[TOLD:] else ""
        little = f"there is too little {' and '.join(WORDS.get(key, key) for key in self.short)}" if self.short else ""
        why = ", ".join(named) + more or little or "no more are here and in order"
        same = f"; some of the same is reserved for {', '.join(self.rivals)}" if self.rivals else ""
        return f"{self.missing} of it cannot be had then by present leases: {why}{same}"


def hours_until(when: float, now: float) -> float:
    """Return the hours of a lease that is over by a time although it is asked for some minutes later; 0 for none."""
    return max(0.0, round(math.floor((when - now - TIME_TO_ASK) / 3600 / STEP) * STEP, 1))
