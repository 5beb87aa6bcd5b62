# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What those who wait for boards of a proxy node would take, which boards are free, and which become free when.

claims/those_who_wait.py keeps the places, and tells a claim what it may have.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ...claims.reservations import NOTHING, Needs
from ...claims.those_who_wait import Waiting
from ...claims.tickets import Ticket
from ...core.plays import play
from ...drivers.boot.driver import DISK_ROOT
from ...images.capacity import Promises, without_room
from ...images.room import room_of, size_of
from ...scheduling.fit import rejections
from ...scheduling.places import held_for
from ...scheduling.queue import Lot
from ...scheduling.reserved import ROOTS
from ...site import board_states
from ...site.instance import size_text
from ...site.leases import not_before
from ..evidence.free_boards import somebodys
from . import checked_boards
from .board_fit import ClaimRequest, root_sizes, unfit_boards
from .owner_limits import limits_of

if TYPE_CHECKING:
    from ...site.reservations import Reservation
    from ..records.board_records import Record
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy

#: State in which the end of a claim makes no board free → why, and what an operator does.
OUT = {
    board_states.ERROR: f"is in error: {{note}}: {play('repair', node='{board}')} makes it free again",
    board_states.MAINTENANCE: (
        f"is in maintenance: {{note}}: {play('maintenance', node='{board}', state='off')} makes it free again"
    ),
}
#: Fields of a request that a ticket keeps.
KEPT = ("flavor", "image", "board", "count", "partial", "lease_hours", "boot_source", "numbers")


class BoardQueue(Waiting[ClaimRequest]):
    """Those who wait for boards of one proxy node.

    :ivar busy: {board name: why it is not free, None for a free one} of boards that the caller has looked at.
    :ivar holds: {board name: for whom it is held}, as `held` returned it.
    """

    def __init__(self, proxy: Proxy) -> None:
        super().__init__(proxy.store)
        self.proxy = proxy
        self.busy: Mapping[str, str | None] = {}
        self.holds: dict[str, str] = {}
        self._checked: set[str] = set()
        self._stuck: dict[str, str] = {}
        self._needs: dict[str, Needs | None] = {}
        self._wanted: set[str] = set()
        self._promises: Promises | None = None

    @property
    def promises(self) -> Promises:
        """The bytes that may yet be promised to roots, looked up once: it takes a look at each root."""
        if self._promises is None:
            self._promises = room_of(self.proxy).promises
        return self._promises

    def look(self) -> None:
        super().look()
        if self.reserves:
            _looked_up = self.promises

    def request_of(self, ticket: Ticket) -> ClaimRequest:
        wish = dict(ticket.wish, numbers=tuple(ticket.wish["numbers"]))
        return ClaimRequest(ticket.request, ticket.owner, ssh_public_key="", **wish)

    def needs(self, request: ClaimRequest) -> Needs | None:
        asked = (request.flavor, request.image, request.board, request.tolerance, request.boot_source)
        key = json.dumps(asked, sort_keys=True)
        if key not in self._needs:
            proxy, boards = self.proxy, self.proxy.boards
            pool = [boards[id] for id in sorted(boards) if request.board in (None, id)]
            sizes = root_sizes(proxy, request, pool)
            unfit = unfit_boards(proxy, request, pool, self.promises, sizes)
            fits = frozenset(name for name, why in unfit.items() if not why)
            size = max((sizes[name] for name in fits), default=0)
            self._needs[key] = Needs({ROOTS: size} if size else {}, ((fits, 1),)) if fits else None
            self._wanted |= fits
        return self._needs[key]

    def may_have(self, owner: str, flavor: str | None = None) -> int | None:
        return limits_of(self.proxy).may_have(owner, flavor)

    @property
    def reservations(self) -> Sequence[Reservation]:
        return self.proxy.config.reservations

    def fits(self, reservation: Reservation) -> Needs:
        """Return the boards that would do, whatever image is asked for then, and the bytes of their roots."""
        every, flavor = self.proxy.boards.values(), dict(reservation.flavor)
        names = frozenset(f"board{one}" if one.isdigit() else one for one in reservation.which)
        fits = [board for board in every if (board.name in names if names else not rejections(flavor, board))]
        names = names or frozenset(board.name for board in fits)
        self._wanted |= names
        # they may be the largest ones
        sizes = sorted((size_of(self.proxy, board, flavor) for board in fits), reverse=True)
        sizes = sizes[: reservation.count or len(names)]
        amounts = {ROOTS: -(-sum(sizes) // len(sizes))} if sizes else {}
        return Needs(amounts, ((names, 1),), by_devices=True)

    def without_room(self, request: ClaimRequest, sizes: dict[str, int]) -> dict[str, str]:
        """Return {board name: why} of the free boards for whose roots there is no room beside what is reserved.

        It is called in the transaction of the claim.

        :param sizes: {board name: bytes of its root} of the boards that nothing else keeps from a request.
        """
        until = time.time() + 3600 * request.lease_hours if request.lease_hours else None
        needs = Needs({ROOTS: max(sizes.values(), default=0)}, ((frozenset(sizes), 1),))
        found = self.may_take(request.owner, until, ROOTS, needs, len(request.instances))
        if found is None:
            return {}
        most, why = found
        kept = without_room(Promises(0, most, 1), sizes)
        return {name: f"the room for a root of {size_text(sizes[name])} is {why}" for name in kept}

    def lots(self, now: float) -> list[Lot]:
        """Return them as Waiting.lots does. Of free boards those that failed least come first, as a claim takes them;
        last those that are being checked, as their checks end where a request finds no other. A board that is being
        cleaned, or whose check was killed, becomes free by itself.
        """
        records = sorted(self.proxy.store.records(self.proxy.boards).items())
        wanted = self._wanted.union(*(one.every_device for one in self.reserves.all))
        unclaimed = [record for id, record in records if record.claim is None and f"board{id}" in wanted]
        whys = {f"board{id}": self._why_stuck(one) for id, one in records if f"board{id}" in wanted}
        self._stuck = {name: why for name, why in whys.items() if why is not None}
        unclaimed = [one for one in unclaimed if f"board{one.board}" not in self._stuck]
        free = sorted((one for one in unclaimed if one.state == board_states.POWER_OFF), key=lambda one: -one.score)
        checked = [f"board{one.board}" for one in unclaimed if checked_boards.gives_way(self.proxy, one)]
        self._checked = set(checked)
        there = (*(f"board{one.board}" for one in free), *checked)
        soon = [name for name in (f"board{one.board}" for one in unclaimed) if name not in there]
        lent = [one.claim for _id, one in records if one.claim is not None and one.state not in OUT]
        # the root of a claim that is just being made is not there yet, and is not free any more
        coming = sum(self._size(claim) for claim in lent if not claim.image_hash)
        now_free = Lot(0.0, {ROOTS: max(0, int(self.promises.left) - coming)}, there)
        return [now_free, *(self._lent(claim, now) for claim in lent), *(Lot(None, {}, (name,), name) for name in soon)]

    def stuck(self) -> dict[str, str]:
        return self._stuck

    def _why_stuck(self, record: Record) -> str | None:
        """Return why only an operator can make a board free; None for one that is free, or will be by itself."""
        name = f"board{record.board}"
        if record.state in OUT:
            return OUT[record.state].format(note=record.note or "no reason is known", board=name)
        if record.claim is not None or record.state != board_states.POWER_OFF:
            return None
        return self.busy[name] if name in self.busy else somebodys(self.proxy, self.proxy.boards[record.board], record)

    def _lent(self, claim: Claim, now: float) -> Lot:
        name = f"board{claim.board}"
        return Lot(not_before(claim.expires, now), {ROOTS: self._size(claim)}, (name,), name, claim.owner)

    def _size(self, claim: Claim) -> int:
        """Return the bytes of a claim's root on the proxy."""
        board = self.proxy.boards[claim.board]
        return 0 if claim.boot_source == DISK_ROOT else size_of(self.proxy, board, claim.flavor)

    def held(self, request: ClaimRequest, busy: Mapping[str, str | None]) -> tuple[dict[str, str], int]:
        """Return {board name: for whom it is held} of the free boards that a request does not get, also of those that
        are being checked, and the bytes of roots that are held.

        An instance that moves from a board that failed goes before all who wait.

        :param busy: as the attribute, of the boards that fit.
        """
        self.busy = dict(busy)
        moves = request.move and any(map(self.store.claim_of, request.instances))
        found = NOTHING if moves else self.left_to(request)
        held = [name for name in found.devices if busy.get(name, "") is None or name in self._checked]
        self.holds = {name: held_for(found.devices[name]) for name in held}
        return self.holds, found.amounts[ROOTS][0] if ROOTS in found.amounts else 0


def kept(
    proxy: Proxy, request: ClaimRequest, ticket: Ticket, check: bool, takes_over: bool = True
) -> dict[str, Any] | None:
    """Keep a request's place, as Waiting.kept does; raise BadInput where no node could serve such a request."""
    request.check()
    return BoardQueue(proxy).kept(ticket, check, takes_over)
