# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes are asked for a flavor and in which order, how many instances each owner is to take, and what people read
about the others. Only the rules below, the boards' scores and the inventory's order decide.

nodes.py knows what one node can serve, and owners.py which claims exist already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Collection, Container, Iterable, Mapping, Sequence

from ..core.errors import BadInput
from ..site.kinds import INSTANCES
from ..site.owners import holders, names_of, number_of
from .fit import describe, grouped, nodes_found
from .nodes import BOARDS, IN_USE, SEVERAL

if TYPE_CHECKING:
    from .nodes import Verdict

#: SPREAD: owners with the most room first, as Nova does. PACK: first those that the request fills best, so that others
#: stay whole.
SPREAD, PACK = "spread", "pack"
STRATEGIES = (SPREAD, PACK)
#: Nodes of a kind whose reasons are listed. Of more nodes only the number in use is said.
TOLD = 4


def ranked(rooms: Mapping[str, int], count: int, strategy: str, last: Container[str] = ()) -> list[str]:
    """Return the owners that have room, in the order of asking; equal ones keep their order.

    With either strategy, owners that can take the whole request come first: boots on several owners follow one another.

    :param rooms: {owner: instances that it takes}.
    :param strategy: SPREAD or PACK.
    :param last: owners that come after all others: they have refused what looks free, as it is held for somebody.
    """
    if strategy not in STRATEGIES:
        raise BadInput(f"is {strategy!r}", "strategy", f"give {' or '.join(STRATEGIES)}")

    def rank(owner: str) -> tuple[bool, bool, int]:
        enough = rooms[owner] >= count
        # of owners with too little room the largest comes first, so that fewer are needed
        return (owner in last, not enough, rooms[owner] if enough and strategy == PACK else -rooms[owner])

    return sorted((owner for owner in rooms if rooms[owner] > 0), key=rank)


class Schedule:
    """The order of asking and the shares, from one look at all nodes.

    :param flavor: a flavor that flavor_check.validate accepts, with its name.
    :param found: Verdicts in the inventory's order.
    :param count: how many instances still need a node.
    :param partial: whether fewer instances will do.
    :param refused: {(owner, node): Refusal} of owners that were asked and gave nothing.
    :param besides: further lines for people on why there is none.
    """

    def __init__(
        self,
        flavor: dict[str, Any],
        found: Sequence[Verdict],
        count: int = 1,
        strategy: str = SPREAD,
        partial: bool = False,
        refused: dict[tuple[str, str], Refusal] | None = None,
        besides: Sequence[str] = (),
    ) -> None:
        self.flavor, self.found, self.count, self.partial = flavor, found, count, partial
        self.refused, self.besides = refused or {}, besides
        rooms = {}
        for one in self.found:
            rooms[one.owner] = rooms.get(one.owner, 0) + (0 if self._never(one) else one.room)
        tried = {owner for (owner, _node), refusal in self.refused.items() if not refusal.never}
        self.rooms = {owner: rooms[owner] for owner in ranked(rooms, count, strategy, tried)}
        order = {owner: number for number, owner in enumerate(self.rooms)}
        self.several = len({one.owner for one in found if one.kind == BOARDS}) > 1
        free = [one.room > 0 and not self._never(one) for one in found]
        candidates = [one for one, is_free in zip(found, free) if is_free]
        # Of an owner's boards those that failed least; equal ones keep their order, as the owner's own claim has it.
        self.candidates = sorted(candidates, key=lambda one: (order[one.owner], -one.score))
        self.rejected = [one for one, is_free in zip(found, free) if not is_free]
        self.room = sum(self.rooms.values())

    @property
    def enough(self) -> bool:
        """Return whether the nodes have enough room for the request, so that they can be asked."""
        return self.room >= (1 if self.partial else self.count)

    @property
    def possible(self) -> bool:
        """Return whether these nodes could serve the request if nobody else had any of them."""
        return self.most >= (1 if self.partial else self.count)

    @property
    def most(self) -> int:
        """Return how many instances of the request these nodes could have if nobody else had any of them."""
        return sum(0 if self._never(one) else one.most for one in self.found)

    @property
    def could(self) -> dict[str, int]:
        """Return {owner: how many instances of the request it could have if nobody else had any of it, and no operator
        did anything}.
        """
        found: dict[str, int] = {}
        for one in self.found:
            found[one.owner] = found.get(one.owner, 0) + (0 if self._never(one) else one.possible)
        return found

    @property
    def some(self) -> bool:
        """Return whether `partial` would get a part of the request, all of which there is no room for."""
        return not self.partial and 0 < (self.room if self.free is None else self.free) < self.count

    @property
    def free(self) -> int | None:
        """Return how many further instances of the request could be had at present; None where that is not known, as
        an owner that was asked gave nothing, and did not say how many it could give.
        """
        told = {owner: refusal.room for (owner, _node), refusal in self.refused.items() if not refusal.never}
        rooms = [one for owner, one in self.rooms.items() if owner not in told]
        known = [room for room in told.values() if room is not None]
        return None if len(known) < len(told) else sum([*rooms, *known])

    def shares(self) -> list[tuple[str, int]]:
        """Return [(owner, how many instances to ask it for)]."""
        left, found = self.count, []
        for owner, room in self.rooms.items():
            if left > 0:
                found.append((owner, min(left, room)))
                left -= found[-1][1]
        return found

    # ---- for people

    def text(self, who: str, asked: int) -> str:
        """Return `bob wants tgx.8x8 (…): no node.` and the reasons, equal ones together.

        :param who: the instance that asks.
        :param asked: how many instances it wants, of which some may exist already.
        """
        lost = any(not refusal.never for refusal in self.refused.values())
        free = min(self.free or 0, self.count)
        # of a race that was lost no number is told that would have been enough
        free = 0 if lost and free == self.count else free
        could = {one.kind for one in self.found if not self._never(one)}
        nodes = SEVERAL.get(could.pop(), "nodes") if len(could) == 1 else "nodes"
        head = f"{self.wants(who, asked)}: {nodes_found(free, asked, asked - self.count, nodes)}."
        none = "there are no more nodes" if self.found else "there are no boards and no hosts"
        lines = [*grouped(self._told(), all_as_number=True), *self.besides] or [none]
        return "\n".join([head, *(f"  {line}" for line in lines)])

    def wants(self, who: str, asked: int) -> str:
        return f"{who} wants {'' if asked == 1 else f'{asked} '}{describe(self.flavor['name'], self.flavor)}"

    def waiting(self) -> str:
        """Return in one line what the nodes are doing that could serve it. The line changes only when that changes."""
        could = [one for one in self.found if not self._never(one)]
        groups = {}
        for one in could:
            brief = one.brief or ("refused" if self._refusal(one) else "free")
            groups.setdefault((one.kind, brief), []).append(self._label(one))
        told = [f"{_counted(kind, names)} {brief}" for (kind, brief), names in groups.items()]
        return ", ".join(told)

    def _told(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Return (kind, label, reasons) of each node that is not given, or has room for a part of the request only."""
        found = []
        for kind in dict.fromkeys(one.kind for one in self.found):
            own = [one for one in self.found if one.kind == kind]
            several = len({one.busy for one in own if one.brief == IN_USE}) > TOLD
            for one in own:
                reasons, _never = self.reasons(one)
                if several and one.brief == IN_USE and reasons is one.busy:
                    reasons = (IN_USE,)
                if not reasons and one.limits and self.room < self.count:
                    reasons = (f"room for {one.room}", *one.limits)
                found.append((kind, self._label(one), reasons))
        return found

    def reasons(self, one: Verdict) -> tuple[tuple[str, ...], bool]:
        """Return (why a node is not given, whether that holds for ever)."""
        return one.never or self._refusal(one) or one.busy, bool(self._never(one))

    def _label(self, one: Verdict) -> str:
        """Return the node's name, with its owner's if several owners have boards."""
        return f"{one.name} of {one.owner}" if one.kind == BOARDS and self.several else one.name

    def _never(self, one: Verdict) -> tuple[str, ...] | bool:
        return one.never or self.refused.get((one.owner, one.name), NOT_REFUSED).never

    def _refusal(self, one: Verdict) -> tuple[str, ...]:
        return self.refused.get((one.owner, one.name), NOT_REFUSED).reasons


class Refusal:
    """An owner's answer for one node: reasons, whether they hold for ever, and how many instances the owner could give
    on all of its nodes, None where it does not say.
    """

    def __init__(self, reasons: Iterable[str] = (), never: bool = False, room: int | None = None) -> None:
        self.reasons, self.never, self.room = tuple(reasons), never, room


NOT_REFUSED = Refusal()


def refusals(failed: Iterable[dict[str, Any]]) -> dict[tuple[str, str], Refusal]:
    """Return {(owner, node): Refusal} of claims that nobody could serve.

    :param failed: dicts with `item` (the owner) and `failure` of its module, in which `unfit` has what holds for ever.
    """
    found = {}
    for one in failed:
        failure = one["failure"]
        unfit, room = failure.get("unfit") or {}, failure.get("room")
        room = None if room is None else max(0, int(room))
        for node, reasons in failure["rejected"].items():
            found[one["item"], node] = Refusal(reasons, bool(unfit.get(node)), room)
    return found


def _counted(kind: str, names: list[str]) -> str:
    return f"{len(names)} {kind}" if len(names) > 3 else " and ".join(names)


def plan(
    schedule: Schedule,
    results: Iterable[dict[str, Any]],
    request: str,
    total: int,
    owner: str | None,
    wanted: Collection[int] = (),
) -> dict[str, list[dict[str, Any]]]:
    """Return what a play has to do: which claims exist, which are surplus, and whom to ask for which instances.

    :param results: of board_info and host_info, each with its owner as `item`, from which the schedule was made.
    :param total: how many instances the request has; `schedule` is for those without a node.
    :param wanted: only these of NAME-1 … NAME-N; none for all.
    :returns: dict of lists of dicts with item and kind. `visits` ask each owner for its instances (`numbers`).
    """
    parts, surplus = holders(results, request, total, owner, numbers=wanted)
    missing = missing_of(parts, request, total, wanted)
    kinds = {one.owner: INSTANCES.get(one.kind) for one in schedule.found}
    visits = {}
    for part in parts:
        numbers = part["numbers"] if total > 1 else []
        visits[part["item"]] = dict(item=part["item"], kind=part["kind"], numbers=numbers)
    if missing and schedule.enough:
        for item, many in schedule.shares():
            visit = visits.setdefault(item, dict(item=item, kind=kinds[item], numbers=[]))
            numbers = [number_of(name, request) for name in missing[:many]] if total > 1 else []
            visit["numbers"] += numbers
            missing = missing[many:]
    elif missing:
        visits = {}
    return dict(parts=parts, surplus=surplus, visits=list(visits.values()))


def missing_of(parts: Iterable[dict[str, Any]], request: str, total: int, wanted: Collection[int] = ()) -> list[str]:
    """Return the names of the instances that nobody has, of those numbers that are wanted; none for all."""
    held = {claim["instance"] for part in parts for claim in part["claims"]}
    return [name for name in names_of(request, total, wanted) if name not in held]
