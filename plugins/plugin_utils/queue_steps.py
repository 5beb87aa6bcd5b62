# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a play waits for its request, and what it does next by what the nodes say of its places in their queues.

The nodes decide who is served first (module_utils/_hetero/scheduling/queue.py). The play only asks and tells.
"""

from __future__ import annotations

import math
import time
from typing import Any, Dict, Iterable, Mapping, Sequence

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.tickets import LASTS, MOST, agreed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief, one_line
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.turns import expected, many_by, ordinal
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import owners
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.kinds import INSTANCES
from ansible_collections.hetero.compute.plugins.plugin_utils import endings
from ansible_collections.hetero.compute.plugins.plugin_utils.waiting_lines import clock

Plan = Dict[str, Any]
Request = Mapping[str, Any]
#: Seconds between two looks at all that nodes have, at most, while a request waits: it may be there in another way.
LOOK = 60.0
#: Rounds of asking that a place outlasts: one that is lost on the way costs it nothing.
ROUNDS = 3
#: Ends of leases that a line tells, and nodes that only an operator can make free; and most steps of others that a node
#: is told.
ENDS, STEPS = 2, 1000
#: The option that waits; and what is said in its place where all that could serve is out of use.
WAIT = "wait for it: -e wait=MINUTES"
ONLY_BY_HAND = "nothing of it gets free by itself: ask an operator, and wait for that: -e wait=MINUTES"
#: What a line says where nobody can serve a request before an operator does something.
HOPELESS = "nothing is held for it, for {possible} of {least} can become free by themselves"


class Wait:
    """How long a play waits for its request.

    :param minutes: in all; 0 for not at all.
    :param interval: seconds between two questions to the nodes.
    :param check: whether this is a dry run, which waits for nothing and gives nothing back.
    """

    def __init__(self, minutes: float = 0.0, interval: float = 10.0, check: bool = False) -> None:
        self.minutes, self.interval, self.check = minutes, interval, check

    def goes_on(self, request: Request, plan: Plan, found: Mapping[str, Any]) -> Plan:
        """Return whether a request waits, from what the last look found: waits, text, ending, and if it waits what is
        needed to keep a place: asked, queue (which nodes could serve it). The time begins with the first place.

        :param found: what `schedule` returned.
        """
        text, ending = found["text"], endings.NONE if found["possible"] else endings.REQUEST
        if not self.minutes or self.check or not found["possible"]:
            return dict(waits=False, text=with_ways(text, found, wait=not self.minutes), ending=ending)
        now = time.monotonic()
        left = plan["until"] - now if "until" in plan else 60 * self.minutes
        if left <= 0:
            return dict(waits=False, text=with_ways(f"{text}\n  waited {self.minutes:g} min", found), ending=ending)
        kept = dict(asked=plan.get("asked", time.time()), queue=_queue(request, plan, found), waiting=found["waiting"])
        kept.update(text=text, ways=with_ways("", found), looked_at=now, ending=ending)
        return dict(kept, **self._on(left), told=plan.get("told", found["waiting"]))

    def waited(self, request: Request, plan: Plan, said: Mapping[str, Mapping[str, Any]]) -> Plan:
        """Return whether to look and claim now (go), or to ask again after a pause, by what nodes say of the places.

        :param said: {node: result of module `ticket`}.
        :returns: the plan with waits, go, lines, pause (seconds), looks (how many questions the time that is left is
            for), told, and queue with what each node is told of the others.
        """
        now, wall = time.monotonic(), time.time()
        places = {node: result["place"] for node, result in said.items() if result.get("place")}
        silent = [node for node, result in said.items() if "place" not in result]
        asked, settled = plan["asked"], plan.get("settled", False)
        if places and not settled:  # from then on the play's own word counts, whatever a node says
            asked, settled = agreed(asked, [place["asked"] for place in places.values()]), True
        there = sum(place["there"] for place in places.values())
        missing = len(names_of(request)) - len(plan["before"]) - there
        least = min(1, missing) if request["partial"] else missing
        enough = sum(place["may"] for place in places.values()) >= least
        moved = there != plan.get("there", 0) or now - plan["looked_at"] >= LOOK
        several = [dict(place, node=node) for node, place in places.items() if len(said) > 1]
        known = several or list(places.values())
        lasts = max(LASTS, ROUNDS * (self.interval + now - plan.get("renewed", now)))
        until = plan.get("until", now + 60 * self.minutes)
        ends = plan.get("ends", wall + until - now)  # once: a line that only repeats it is not said again
        told = as_text(known, plan["waiting"], least, wall, bool(silent), ends) if places else plan["waiting"]
        plan = dict(plan, asked=asked, settled=settled, there=there, renewed=now, lasts=lasts, until=until, ends=ends)
        plan["queue"], left = _told(plan["queue"], places, silent), until - now
        if left <= 0:
            text = f"{plan['text']}\n  waited {self.minutes:g} min: {told}{plan['ways']}"
            return dict(plan, waits=False, go=False, lines=[], text=text, has_place=bool(places))
        lines = self._lines(request, plan, told, left)
        go = bool(enough or silent or moved)
        return dict(plan, **dict(self._on(left), told=told, lines=lines, go=go, has_place=bool(places)))

    def _lines(self, request: Request, plan: Plan, told: str, left: float) -> list[str]:
        name = request["instance"]
        number = len(names_of(request))
        many = "" if number == 1 else f"{number} "
        if "has_place" not in plan:
            return [f"{name} waits for {many}{request['flavor']['name']}, {self.minutes:g} min at most: {told}"]
        if told != plan["told"]:
            return [f"{name} waits, {max(0, math.ceil(left / 60))} min more at most: {told}"]
        return []

    def _on(self, left: float) -> Plan:
        """Return how long to pause (whole seconds, and not fewer than asked for: the play has questions for the whole
        time at this interval, tasks/again.yml), and for how many questions there is time.
        """
        pause = math.ceil(min(self.interval, left))
        return dict(waits=True, go=False, lines=[], pause=pause, looks=math.ceil(left / pause))


def numbers_of(request: Request) -> Sequence[int]:
    """Return which of NAME-1 … NAME-N are meant; none for all."""
    return request.get("numbers") or ()


def names_of(request: Request) -> list[str]:
    """Return the names of the instances that are asked for."""
    return owners.names_of(request["instance"], request["count"], numbers_of(request))


def with_ways(text: str, found: Mapping[str, Any], wait: bool = False) -> str:
    """Return why a request has no place, and a line with the options that would help.

    :param found: what `schedule` returned.
    :param wait: whether to name the option that waits.
    """
    ways = [WAIT if any(found["could"].values()) else ONLY_BY_HAND] if wait and found["possible"] else []
    ways += ["take what there is: -e partial=true"] if found["some"] else []
    if not found["possible"] and found["most"]:
        text += f"\n  no wait helps: of these there are {found['most']} in all, whoever has them"
    return "\n  ".join([text, *filter(None, ["; or ".join(ways)])])


def as_text(
    places: Iterable[Mapping[str, Any]],
    waiting: str,
    least: int,
    now: float,
    more: bool = False,
    ends: float | None = None,
) -> str:
    """Return in one line how a request stands: its place, what is held for it, until when others have the rest, or who
    gets that first, and when it is expected to start; or why nothing is held for it.

    :param places: of all nodes; where there are several, each with its `node`.
    :param waiting: what the nodes are doing that could serve it, if no leases tell when they end.
    :param more: whether there are nodes that have not said what they could give.
    :param ends: when its wait ends (unix seconds).
    """
    places = list(places)
    ahead = list(dict.fromkeys((one["request"], one["owner"]) for place in places for one in place["ahead"]))
    position = f"{ordinal(len(ahead) + 1)} in the queue"
    possible = sum(_possible(place) for place in places)
    if possible < least and not more:
        return f"{position}, {HOPELESS.format(possible=possible or 'none', least=least)}; {_stuck(places) or waiting}"
    held = sum(place["held"] for place in places)
    leases = sorted((end["when"], end["name"], end["owner"]) for place in places for end in place["ends"])
    named = [f"{name} until {clock(when, now)} ({one_line(brief(owner))})" for when, name, owner in leases[:ENDS]]
    rest = ", ".join([*named, *(["…"] if leases[ENDS:] else [])]) or f"{waiting}{_first(ahead)}"
    start = expected(now, [_steps(place) for place in places], least)
    free = f"{held} free and held for it" if held else "none free for it"
    when = f": expected {clock(start, now)}" if start is not None and start > now else ""
    late = f", after the end of your wait ({clock(ends, now)})" if when and ends and start and start > ends else ""
    return f"{position}, {free}; {rest}{when}{late}"


def _first(ahead: Sequence[tuple[str, str]]) -> str:
    """Return, to be added to what becomes free, for whom it does: those who go before a request, (request, owner)."""
    named = [f"{one_line(brief(name))} of {one_line(brief(owner))}" for name, owner in ahead[:ENDS]]
    names = ", ".join([*named, *(["…"] if ahead[ENDS:] else [])])
    return f", and {names} {'go' if ahead[1:] else 'goes'} first" if ahead else ""


def _stuck(places: Iterable[Mapping[str, Any]]) -> str:
    """Return which nodes only an operator can make free, and why."""
    found = []
    for place in places:
        where = f" of {place['node']}" if "node" in place else ""
        found += [f"{one['name']}{where} {one_line(brief(one['why']))}" for one in place["stuck"]]
    return ", ".join([*found[:ENDS], *(["…"] if found[ENDS:] else [])])


def _possible(place: Mapping[str, Any]) -> int:
    return min(MOST, max(0, int(place["possible"])))


def _steps(place: Mapping[str, Any]) -> tuple[tuple[float, int], ...]:
    return tuple((when, int(many)) for when, many in place["steps"])


def _queue(request: Request, plan: Plan, found: Mapping[str, Any]) -> list[Plan]:
    """Return the nodes that could ever serve a request, each with its kind and the numbers of what is missing, and with
    how many the others can give: as the last look says, until they say so themselves.
    """
    could = [*found["candidates"], *(one for one in found["rejected"] if not one["never"])]
    kinds = {one["owner"]: INSTANCES.get(one["kind"]) for one in could}
    missing = [name for name in names_of(request) if name not in plan["before"]] if request["count"] > 1 else []
    numbers = [owners.number_of(name, request["instance"]) for name in missing]
    before = {one["item"]: one for one in plan.get("queue", ())}
    own = [(node, kind) for node, kind in kinds.items() if kind]
    by_look = {node: found["could"].get(node, 0) for node, _kind in own}
    told = {}
    for node in by_look:
        others = min(MOST, sum(many for other, many in by_look.items() if other != node))
        known = before.get(node, dict(elsewhere=[], others=others))
        told[node] = {key: known[key] for key in ("elsewhere", "others")}
    return [dict(item=node, kind=kind, numbers=numbers, **told[node]) for node, kind in own]


def _told(queue: Sequence[Plan], places: Mapping[str, Mapping[str, Any]], silent: Sequence[str]) -> list[Plan]:
    """Return the queue with what each node is told that the others can give by when, and at all: unknown (None) as long
    as one of them is silent.
    """
    most = {node: _possible(place) + int(place["there"]) for node, place in places.items()}
    steps = {node: _steps(place) for node, place in places.items()}
    found = []
    for one in queue:
        others = [those for node, those in steps.items() if node != one["item"]]
        times = sorted({when for those in others for when, _many in those})[:STEPS]
        elsewhere = [[when, sum(many_by(those, when) for those in others)] for when in times]
        rest = [many for node, many in most.items() if node != one["item"]]
        known = not any(node != one["item"] for node in silent)
        found.append(dict(one, elsewhere=elsewhere, others=min(MOST, sum(rest)) if known else None))
    return found
