# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Places in the queue as modules return them and as people read them. queue.py knows who is served first."""

from __future__ import annotations

from typing import Any, Collection, Iterable, Mapping, Sequence

from .queue import Left, Lot, Start, Wish, left, starts
from .reservations import NONE, Reserves

#: Why a node that is free is not given.
HELD = "held for {request} of {owner}, which waits and goes first"
#: How many ends of others' leases a play is told of, and how many nodes that only an operator can make free.
TOLD = 4
#: What such an end is called where it is that of a reservation.
RESERVED = "reserved"


def held_for(wish: Wish) -> str:
    """Return in words for whom a free node is held."""
    return HELD.format(request=wish.request, owner=wish.owner)


def place(
    now: float,
    lots: Sequence[Lot],
    wishes: Collection[Wish],
    own: Wish,
    there: int,
    stuck: Mapping[str, str],
    reserves: Reserves = NONE,
) -> dict[str, Any]:
    """Return the place of a request that waits, as module ticket returns it.

    :param wishes: of all who wait, with `own`.
    :param there: how many of its instances this node has already.
    :param stuck: {device: why only an operator can make it free}.
    """
    everybodys = starts(now, lots, wishes, reserves)
    start = next(one for one in everybodys if one.wish is own)
    before = [one.wish for one in everybodys[: everybodys.index(start)] if own.competes(one.wish)]
    return dict(
        asked=own.asked,
        ahead=[dict(request=one.request, owner=one.owner) for one in before],
        may=left(now, lots, wishes, own, reserves).may,
        held=start.held(now),
        there=there,
        steps=[list(step) for step in start.steps],
        ends=[dict(name=lot.name, owner=lot.who, when=lot.when) for lot in _awaited(start, now)[:TOLD]],
        possible=start.possible,
        stuck=_stuck(own, stuck),
    )


def offer(wish: Wish, found: Left) -> dict[str, Any]:
    """Return how many instances a request could have now, and in words what keeps it from more.

    :param wish: for as many as there are.
    :param found: what others leave to it.
    """
    held = {one.rank: one for name, one in found.devices.items() if name in wish.every_device}
    held.update({one.rank: one for key, (_size, one) in found.amounts.items() if key in wish.amounts})
    why = [f"reserved: {one.text}" for one in found.reserved] + [held_for(one) for _rank, one in sorted(held.items())]
    if wish.most is not None and found.may == wish.most:
        why.append(f"{wish.owner} may have {wish.most or 'no'} more of it")
    return dict(may=found.may, why=why[:TOLD])


def _stuck(wish: Wish, stuck: Mapping[str, str]) -> list[dict[str, str]]:
    """Return what a wish could have if an operator made it free, and why that does not become free by itself."""
    return [dict(name=name, why=why) for name, why in sorted(stuck.items()) if name in wish.every_device][:TOLD]


def _awaited(start: Start, now: float) -> list[Lot]:
    reserved = [Lot(one.end, name=RESERVED, who=one.owner) for one in start.reserved]
    return [lot for lot in [*start.ends, *reserved] if lot.when is not None and lot.when > now]


def shown(
    now: float,
    lots: Sequence[Lot],
    wishes: Iterable[Wish],
    flavors: Mapping[tuple[str, str], str],
    stuck: Mapping[str, str],
    reserves: Reserves = NONE,
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return what `status` shows of those who wait, and {device: the request that gets it next}.

    :param flavors: {(request, owner): name of its flavor}.
    :param stuck: {device: why only an operator can make it free}.
    """
    found, following = [], {}
    for start in starts(now, lots, wishes, reserves):
        wish = start.wish
        found.append(
            dict(
                request=wish.request,
                owner=wish.owner,
                flavor=flavors[wish.request, wish.owner],
                need=wish.need,
                position=start.position,
                priority=wish.priority,
                asked=wish.asked,
                held=start.held(now),
                expected=start.when,
                enough=start.enough,
                stuck=[] if start.enough else _stuck(wish, stuck),
            )
        )
        for name in start.devices:
            following.setdefault(name, f"{wish.request} (queue {start.position})")
    return found, following
