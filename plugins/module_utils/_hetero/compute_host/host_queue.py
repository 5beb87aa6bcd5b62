# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What those who wait for instances of a compute host would take of it, what is free, and what becomes free when.

claims/those_who_wait.py keeps the places, and tells a claim what it may have.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Sequence

from ..claims.reservations import Needs
from ..claims.those_who_wait import Waiting
from ..scheduling.compute_hosts import aliases_of, gpu_arch, gpu_count
from ..scheduling.extra_specs import satisfies
from ..scheduling.fit import AMOUNTS
from ..scheduling.queue import Lot
from ..site.kinds import CONTAINER
from ..site.leases import later, not_before
from .claim_request import ClaimRequest
from .host_fit import free_gpus, limits_of, unfit
from .info import device_fields

if TYPE_CHECKING:
    from ..claims.host.claim_records import Claim
    from ..claims.tickets import Ticket
    from ..site.reservations import Reservation
    from .host import Host

#: Fields of a request that a ticket keeps.
KEPT = ("flavor", "image", "kind", "count", "partial", "lease_hours", "devices", "numbers")


class HostQueue(Waiting[ClaimRequest]):
    """Those who wait for instances of one compute host."""

    def __init__(self, host: Host) -> None:
        super().__init__(host.store)
        self.host = host
        self._needs: dict[str, Needs | None] = {}
        self._cards: list[dict[str, Any]] | None = None

    def request_of(self, ticket: Ticket) -> ClaimRequest:
        wish = dict(ticket.wish, numbers=tuple(ticket.wish["numbers"]), devices=tuple(ticket.wish["devices"]))
        return ClaimRequest(ticket.request, ticket.owner, ssh_public_key="", **wish)

    def needs(self, request: ClaimRequest) -> Needs | None:
        key = json.dumps((request.flavor, request.image, request.kind, request.devices), sort_keys=True)
        if key not in self._needs:
            amounts = {name: int(request.flavor.get(name) or 0) for name in AMOUNTS}
            amounts = {name: size for name, size in amounts.items() if size}
            devices = self._gpus(request) if request.kind == CONTAINER.section else self._devices(request)
            self._needs[key] = None if unfit(self.host, request) else Needs(amounts, devices)
        return self._needs[key]

    def _gpus(self, request: ClaimRequest) -> tuple[tuple[frozenset[str], int], ...]:
        count, arch = gpu_count(request.flavor), gpu_arch(request.flavor)
        fitting = [gpu for gpu in self.host.gpus if not gpu.unsupported]
        fitting = [gpu for gpu in fitting if arch is None or (gpu.arch and satisfies(gpu.arch, arch))]
        return ((frozenset(gpu.address for gpu in fitting), count),) if count else ()

    def _devices(self, request: ClaimRequest) -> tuple[tuple[frozenset[str], int], ...]:
        found = []
        for alias, count in aliases_of(request.flavor):
            own = [card["address"] for card in self._all_cards() if alias in card["arch"].split(", ")]
            found.append((frozenset(one for one in own if not request.devices or one in request.devices), count))
        return tuple(found)

    def _all_cards(self) -> list[dict[str, Any]]:
        if self._cards is None:
            store = self.host.store
            self._cards = device_fields(self.host, store.allocations(), store.claims())
        return self._cards

    def may_have(self, owner: str, flavor: str | None = None) -> int | None:
        return limits_of(self.host).may_have(owner, flavor)

    @property
    def reservations(self) -> Sequence[Reservation]:
        return self.host.config.reservations

    def fits(self, reservation: Reservation) -> Needs:
        if reservation.which:
            names = frozenset(one.lower() for one in reservation.which)
            return Needs({}, ((names, 1),))
        flavor = dict(reservation.flavor)
        like = ClaimRequest("reserved", reservation.owner, flavor, "", "")
        amounts = {name: int(flavor.get(name) or 0) for name in AMOUNTS}
        return Needs({name: size for name, size in amounts.items() if size}, self._gpus(like) + self._devices(like))

    def lots(self, now: float) -> list[Lot]:
        store, self._cards = self.host.store, None
        claims, rows = store.in_use(), store.allocations()
        free = {key: total - sum(getattr(one, key) for one in claims) for key, total in self.host.capacity.items()}
        cards = [card["address"] for card in self._all_cards() if not (card["holder"] or card["unsupported"])]
        own = dict.fromkeys([*(gpu.address for gpu in free_gpus(self.host)), *cards])
        lots = [Lot(0.0, {key: max(0, size) for key, size in free.items()}, tuple(own))]
        taken = self._every_device() - own.keys() - self.stuck().keys()
        rest = set(taken)
        for claim in claims:
            has = tuple(row.address for row in rows if row.holder == claim.holder and row.address in taken)
            rest.difference_update(has)
            amounts = {key: int(getattr(claim, key)) for key in AMOUNTS}
            lots.append(Lot(not_before(claim.expires, now), amounts, has, claim.instance, claim.owner))
        # Whoever has the others is no instance, and may let go of them at any time.
        return [*lots, *(Lot(None, {}, (address,), address) for address in sorted(rest))]

    def stuck(self) -> dict[str, str]:
        return {gpu.address: f"is not healthy: {gpu.why_unhealthy}" for gpu in self.host.gpus if not gpu.healthy}

    def _every_device(self) -> set[str]:
        return {gpu.address for gpu in self.host.gpus} | {card["address"] for card in self._all_cards()}


def kept(
    host: Host, request: ClaimRequest, ticket: Ticket, check: bool, takes_over: bool = True
) -> dict[str, Any] | None:
    """Keep a request's place, as Waiting.kept does; raise BadInput where no host could serve such a request."""
    request.check()
    return HostQueue(host).kept(ticket, check, takes_over)


def must_be_allowed(host: Host, claim: Claim, expires: float | None) -> None:
    """Raise Refused where a longer lease would keep what is reserved, or put off others who wait."""
    if later(claim.expires, expires) != claim.expires:
        queue = HostQueue(host)
        queue.must_not_reach(claim, claim.instance, claim.expires, expires)
        queue.must_end_in_time(claim, claim.instance, expires)
