# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reservations by date as one node keeps them: what of it a claim may not have, how far a lease may go, and what
`status` says of them. scheduling/reservations.py has the rule, and each kind of node says what fits a reservation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple, Sequence

from ..core.errors import Refused
from ..core.plays import play
from ..scheduling.queue import Left
from ..scheduling.reservations import Reserves
from ..scheduling.reserved import Holding, Reserved, Taker, hours_until
from ..site.leases import SAME

if TYPE_CHECKING:
    from ..scheduling.queue import Lot
    from ..scheduling.reserved import Blocked
    from ..site.owners import MadeClaim
    from ..site.reservations import Reservation

NOTHING = Left(0, {}, {})
#: Most reservations that a node shows.
SHOWN = 100


class Needs(NamedTuple):
    """What each instance of a request takes, as scheduling/queue.py has it.

    :param by_devices: as Reserved.by_devices.
    """

    amounts: Mapping[str, int]
    devices: tuple[tuple[frozenset[str], int], ...]
    by_devices: bool = False


class Reserving(ABC):
    """The reservations of one node."""

    _reserves: Reserves | None = None
    #: What of it is held for others who wait beside the request that claims.
    held_for: Left = NOTHING

    @abstractmethod
    def lots(self, now: float) -> Sequence[Lot]:
        """Return what is free, and what becomes free when, as far as it would do for those who want it."""

    @property
    @abstractmethod
    def now(self) -> float:
        """Return the time by which something is reserved or over."""

    @property
    @abstractmethod
    def reservations(self) -> Sequence[Reservation]:
        """The table of the node's configuration."""

    @abstractmethod
    def fits(self, reservation: Reservation) -> Needs:
        """Return what each instance of a reservation takes here; of certain devices, each is an instance."""

    @property
    def reserves(self) -> Reserves:
        """What is reserved and not over, looked up once."""
        if self._reserves is None:
            now = self.now
            self._reserves = Reserves(self._seen(one) for one in self.reservations if one.end > now)
        return self._reserves

    def _seen(self, one: Reservation) -> Reserved:
        needs = self.fits(one)
        count = one.count or len(one.which)
        what = one.what, one.why, count, needs.amounts, needs.devices, needs.by_devices
        return Reserved(one.owner, one.start, one.end, *what)

    def kept_from(self, owner: str, until: float | None, offered: Iterable[str]) -> dict[str, str]:
        """Return {device: why} of free devices that a claim does not get, as they are reserved.

        It is called in the transaction of the claim.

        :param until: the end of its lease (unix seconds); None without an end.
        """
        if not self.reserves:
            return {}
        now = self.now
        blocked = self.reserves.blocked(now, self.holdings(now), Taker(owner, until), offered)
        return {name: why.text(now) for name, why in blocked.items()}

    def amounts_kept(self, owner: str, until: float | None, needs: Needs) -> dict[str, tuple[int, str]]:
        """Return {key: (how much of it is reserved, why)} of what one instance more does not get; as `kept_from`."""
        if not self.reserves:
            return {}
        now = self.now
        taker = Taker(owner, until, needs.amounts, needs.devices)
        _many, short = self.reserves.room(now, self.holdings(now), taker, 1)
        return {key: (size, why.text(now)) for key, (size, why) in short.items()}

    def may_take(self, owner: str, until: float | None, key: str, needs: Needs, many: int) -> tuple[int, str] | None:
        """Return (how much a request may have of what can be divided, why no more); None for all. As `kept_from`.

        :param needs: the most that each of its instances takes.
        :param many: how many instances it wants.
        """
        if not self.reserves:
            return None
        now = self.now
        holdings = self.holdings(now)
        found = self.reserves.headroom(now, holdings, Taker(owner, until), key)
        if found is None:
            return None
        most, why = found
        if self.reserves.is_owner(owner):  # where reservations contradict each other, who asks first is served
            taker = Taker(owner, until, needs.amounts, needs.devices)
            most = max(most, needs.amounts.get(key, 0) * self.reserves.room(now, holdings, taker, many)[0])
        return most, why.text(now)

    def must_not_reach(self, claim: MadeClaim, lot: str, old: float | None, expires: float | None) -> None:
        """Raise Refused where a longer lease would reach into what is reserved for another.

        :param lot: what is called so that becomes free with the claim (Lot.name).
        :param old, expires: the present and the new end of its lease (unix seconds); None for no end.
        """
        if not self.reserves:
            return
        now = self.now
        blocked = self.reserves.reaches(now, self.holdings(now), lot, Taker(claim.owner, expires), old)
        if blocked is not None:
            what = f"would keep what is {blocked.words}"
            raise Refused(what, claim.instance, _shorter(claim.instance, blocked, old, now))

    def reserved(self) -> list[dict[str, Any]]:
        """Return what is reserved, as `status` shows it: the next first."""
        if not self.reserves:
            return []
        now = self.now
        lacks = {id(one.reserved): one.text() for one in self.reserves.lacks(now, self.holdings(now))}
        every = sorted(self.reserves.all, key=lambda one: (one.start, one.end, one.owner))
        return [
            dict(owner=one.owner, start=one.start, end=one.end, text=one.text, lacks=lacks.get(id(one)))
            for one in every[:SHOWN]
        ]

    def holdings(self, now: float) -> list[Holding]:
        """Return lots as the rule reads them. What is held for those who wait is theirs already: it serves nothing that
        is reserved for others.
        """
        found, held = [], self.held_for
        less = {key: size for key, (size, _wish) in held.amounts.items()}
        for lot in self.lots(now):
            amounts, devices = dict(lot.amounts), lot.devices
            if lot.when == 0.0 and (less or held.devices):
                amounts = {key: max(0, size - less.get(key, 0)) for key, size in amounts.items()}
                devices = tuple(name for name in devices if name not in held.devices)
            found.append(Holding(lot.when, amounts, devices, lot.name, lot.who))
        theirs = [Holding(None, {}, (name,), name, wish.owner) for name, wish in held.devices.items()]
        return [*found, *theirs]


def _shorter(instance: str, blocked: Blocked, old: float | None, now: float) -> str:
    hours = hours_until(blocked.when, now)
    longer = hours and (old is None or now + 3600 * hours >= old + SAME)
    shorter = play("extend_instance", instance=instance, hours=f"{hours:g}")
    return f"{shorter} is possible" if longer else "leave its lease as it is"
