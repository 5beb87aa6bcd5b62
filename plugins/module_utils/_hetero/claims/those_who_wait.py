# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who waits on a node, and what of it is held for them: places are kept here, and a claim is told what it may have.

What a request takes of a node, and what the node has, each kind of node knows: boards/work/board_queue.py and
compute_host/host_queue.py. The rules are scheduling/queue.py's.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Collection, Generic, Iterable, Mapping, Protocol, Sequence, TypeVar

from ..core.errors import Refused
from ..scheduling.flavor_check import validate
from ..scheduling.places import offer, place, shown
from ..scheduling.queue import Wish, left, starts
from ..scheduling.reserved import STEP
from ..site.leases import at
from ..site.node_clock import believed
from ..site.owners import OTHER_NAME, WAITED_FOR, in_form, is_name_of, refuse_taken, same
from ..site.reservations import MOST, Reservation
from .reservations import NOTHING, Reserving

if TYPE_CHECKING:
    from ..scheduling.queue import Left, Lot
    from ..site.owners import MadeClaim
    from .reservations import Needs
    from .store import ClaimsStore
    from .tickets import Ticket


class Request(Protocol):
    """A request for instances, of whatever kind."""

    @property
    def request(self) -> str: ...

    @property
    def owner(self) -> str: ...

    @property
    def flavor(self) -> dict[str, Any]: ...

    @property
    def count(self) -> int: ...

    @property
    def partial(self) -> bool: ...

    @property
    def lease_hours(self) -> float | None: ...

    @property
    def asked(self) -> float | None: ...

    @property
    def priority(self) -> int: ...

    @property
    def instances(self) -> list[str]: ...


AnyRequest = TypeVar("AnyRequest", bound=Request)


class Waiting(Reserving, Generic[AnyRequest]):
    """Those who wait on one node, and what of it is reserved."""

    def __init__(self, store: ClaimsStore[Any]) -> None:
        self.store = store
        self._goes_first = False

    @abstractmethod
    def request_of(self, ticket: Ticket) -> AnyRequest:
        """Return the request that a ticket was made of."""

    @abstractmethod
    def needs(self, request: AnyRequest) -> Needs | None:
        """Return what each instance of a request takes; None where this node can never serve it."""

    @abstractmethod
    def lots(self, now: float) -> Sequence[Lot]:
        """Return what is free, and what becomes free when, as far as those want it whose `needs` were looked up, or for
        whom it `fits`.
        """

    @abstractmethod
    def stuck(self) -> Mapping[str, str]:
        """Return {device: why only an operator can make it free} of what is in no lot that `lots` returned last."""

    def may_have(self, owner: str, flavor: str | None = None) -> int | None:
        """Return how many instances more an owner may have on this node at present; None without a limit.

        :param flavor: the name of their flavor, whose own limit counts too.
        """
        return None

    @property
    def now(self) -> float:
        return believed(self.store)

    def look(self) -> None:
        """Find what would do for those who wait, and what is reserved, before a transaction keeps others waiting."""
        _looked_up = self.reserves
        for ticket in self.store.tickets.living():
            self.needs(self.request_of(ticket))

    def left_to(self, request: AnyRequest) -> Left:
        """Return what those who wait leave to a request.

        It is called in the transaction of its claim. Where nobody else waits, and for a request that lacks nothing, it
        holds nothing, and `may` says nothing.
        """
        others = self._others(request)
        missing = len(self._missing(request)) if others else 0
        needs = self.needs(request) if missing else None
        if others and Waiting._missing(self, request):  # not of an instance that moves, which has its name
            own = self.store.tickets.of(request.request, request.owner)
            self._refuse_waited_for(request, others, own.asked if own else request.asked)
        if needs is None:
            return NOTHING
        now, own = time.time(), self._own(request)
        # who does not wait comes after all who do, also where their controllers' clocks are ahead of this node's
        asked = own.asked if own else request.asked or max([now, *(one.asked + 1.0 for one in others)])
        asker = _wish(request, needs, missing, asked, own.priority if own else request.priority)
        asker = replace(asker, most=self.may_have(request.owner, request.flavor.get("name")))
        wishes = self._wishes(others)
        found = left(now, self.lots(now), wishes, asker, self.reserves)
        self._goes_first = found.goes_first
        self.held_for = found
        return found

    def served(self, request: AnyRequest, new: Iterable[MadeClaim]) -> None:
        """Give up the place of a request that has all of it, or, where that is enough, a part.

        :param new: the claims that it got, by what `left_to` returned.
        """
        for claim in new if self._goes_first else ():
            self.store.tickets.note_first(claim.instance, claim.created, {one.instance for one in self.store.claims()})
        ticket = self.store.tickets.of(request.request, request.owner)
        if ticket is not None:
            asked = self.request_of(ticket)
            lacks = len(self._missing(asked))
            if not lacks or (asked.partial and lacks < len(asked.instances)):
                self.store.tickets.end(request.request, request.owner)

    def must_end_in_time(self, claim: MadeClaim, lot: str, expires: float | None) -> None:
        """Raise Refused where a claim went before others by its lease, and a longer one would put their start off.

        :param lot: what is called so that becomes free with the claim (Lot.name).
        :param expires: the new end of its lease.
        """
        if not self.store.tickets.went_first(claim.instance, claim.created):
            return
        now = time.time()
        wishes = self._wishes(self.store.tickets.living())
        for start in starts(now, self.lots(now), wishes, self.reserves):
            wish, by = start.wish, start.when
            late = expires is None or by is None or expires > by
            if late and wish.asked < claim.created and any(one.name == lot for one in start.ends):
                when = f"at {at(by)}" if by is not None else "as soon as it can"
                what = f"went before {wish.request} of {wish.owner} by its lease, and that is to start {when}"
                raise Refused(what, claim.instance, "leave its lease as it is, or ask anew with -e wait=MINUTES")

    def kept(self, ticket: Ticket, check: bool, takes_over: bool = True) -> dict[str, Any] | None:
        """Keep a request's place, new or renewed, and return it as scheduling/places.py does.

        :param takes_over: as Tickets.keep has it.
        :returns: None where this node could never serve any of it; then no place is kept.
        :raises Refused: the name is another owner's.
        """
        request = self.request_of(ticket)
        self.look()
        needs = self.needs(request)
        with self.store.transaction(dry=check):
            refuse_taken(map(vars, self.store.claims()), request.request, request.instances, request.owner)
            self._refuse_waited_for(request, self._others(request), self._since(ticket))
            missing, now = self._missing(request), time.time()
            there = len(request.instances) - len(missing)
            if needs is None or not missing:
                self.store.tickets.end(ticket.request, ticket.owner)
                nothing = dict(asked=ticket.asked, ahead=[], may=0, held=0, there=there, steps=[], ends=[])
                nothing.update(possible=0, stuck=[])
                return nothing if there else None
            wishes = self._wishes([*self._others(request), self.store.tickets.keep(ticket, takes_over)])
            own = next(one for one in wishes if (one.request, one.owner) == (ticket.request, ticket.owner))
            lots = self.lots(now)
            return place(now, lots, wishes, own, there, self.stuck(), self.reserves)

    def _since(self, ticket: Ticket) -> float:
        """Return since when a request waits: a ticket takes an earlier one's place over (Tickets.keep)."""
        before = self.store.tickets.of(ticket.request, ticket.owner)
        return min(ticket.asked, before.asked) if before else ticket.asked

    def _refuse_waited_for(self, request: AnyRequest, others: Iterable[Ticket], asked: float | None) -> None:
        """Raise Refused where another owner waits for a name that is asked for, and asked before: who waits an hour
        for it would lose it to who takes it for anything else.

        :param asked: since when the request waits (unix seconds); None where it does not.
        """
        for one in others:
            if not same(one.owner, request.owner) and (asked is None or one.asked < asked):
                theirs, count = one.request, int(one.wish["count"])
                if is_name_of(request.request, theirs, count) or is_name_of(theirs, request.request, request.count):
                    raise Refused(WAITED_FOR.format(owner=one.owner), theirs, OTHER_NAME)

    def shown(self) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """Return those who wait, and {device: the request that gets it next}, as `status` shows them."""
        tickets = self.store.tickets.living()
        if not tickets:
            return [], {}
        now, flavors = time.time(), {(one.request, one.owner): str(one.wish["flavor"].get("name")) for one in tickets}
        wishes = self._wishes(tickets)
        lots = self.lots(now)
        return shown(now, lots, wishes, flavors, self.stuck(), self.reserves)

    def offers(self, owner: str, flavors: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return {flavor: how many instances of it an owner could have now, with a lease as short as one may be, and
        what keeps it from more}, as places.offer does.

        It is empty where nothing is reserved, nobody waits, and this owner has no limit: then all that is free is had.
        """
        limits = {name: self.may_have(owner, name) for name in flavors}
        tickets = self.store.tickets.living() if flavors else []
        if not flavors or not (tickets or self.reserves or any(most is not None for most in limits.values())):
            return {}
        now, askers = time.time(), {}
        for name, flavor in flavors.items():
            validate(flavor)
            needs = self.fits(Reservation(owner, now, now, count=MOST, flavor=flavor))
            one = Wish(name, owner, now, MOST, 1, amounts=needs.amounts, devices=needs.devices, seconds=3600 * STEP)
            askers[name] = replace(one, most=limits[name])
        wishes = self._wishes(tickets)
        lots = self.lots(now)
        return {name: offer(one, left(now, lots, wishes, one, self.reserves)) for name, one in askers.items()}

    def _own(self, request: AnyRequest) -> Ticket | None:
        """Return the ticket of a request, unless that is for less: a place for one is none for eight."""
        own = self.store.tickets.of(request.request, request.owner)
        same = own is not None and own.wish["flavor"] == request.flavor and len(request.instances) <= own.many
        return own if same else None

    def _others(self, request: AnyRequest) -> list[Ticket]:
        """Return the tickets of all other requests."""
        tickets, own = self.store.tickets.living(), (request.request, in_form(request.owner))
        return [one for one in tickets if (one.request, one.owner) != own]

    def _wishes(self, tickets: Iterable[Ticket]) -> list[Wish]:
        """Return what those who wait still lack, and this node could give.

        Requests of one owner share what that may yet have, the first of them first.
        """
        found: list[Wish] = []
        limited: list[tuple[str, str | None]] = []
        for ticket in tickets:
            request = self.request_of(ticket)
            missing, needs = self._missing(request), self.needs(request)
            if missing and needs is not None:
                wish = _wish(request, needs, len(missing), ticket.asked, ticket.priority)
                found.append(replace(wish, elsewhere=ticket.elsewhere, others=ticket.others))
                limited.append((request.owner, request.flavor.get("name")))
        left = {key: self.may_have(*key) for key in {*limited, *((owner, None) for owner, _flavor in limited)}}
        for number, wish in sorted(enumerate(found), key=lambda one: one[1].rank):
            own = {key: left[key] for key in ((wish.owner, None), limited[number])}
            limits = {key: most for key, most in own.items() if most is not None}
            if limits:
                found[number] = replace(wish, most=min(limits.values()))
                takes = min(wish.need, *limits.values())
                left.update((key, most - takes) for key, most in limits.items())
        return found

    def _missing(self, request: AnyRequest) -> Collection[str]:
        there = {claim.instance for claim in self.store.claims() if same(claim.owner, request.owner)}
        return [name for name in request.instances if name not in there]


def _wish(request: Request, needs: Needs, missing: int, asked: float, priority: int = 0) -> Wish:
    return Wish(
        request.request,
        request.owner,
        asked,
        missing,
        1 if request.partial else missing,
        priority,
        amounts=needs.amounts,
        devices=needs.devices,
        seconds=3600 * request.lease_hours if request.lease_hours else None,
    )
