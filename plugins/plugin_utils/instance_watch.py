# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person who watches an instance is told, by what its node answers, and then says as it happens: each phase
once, how it stands meanwhile, and whether it is settled. action/node_info.py asks the node.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.job_watch import SHOWN, SHOWN_OF_INSTANCES
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states, instance_states
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import age
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.owners import is_of
from ansible_collections.hetero.compute.plugins.plugin_utils.answer_values import is_number

#: A line for people, as progress.as_text takes it.
Line = Dict[str, Any]
RUNS = (board_states.RUNNING, instance_states.RUNNING)
#: States that nothing leaves by itself, but between two steps of one verb: of a rebuild, or of one board and the next.
AT_REST = (
    *(board_states.POWER_OFF, board_states.ERROR, board_states.MAINTENANCE),
    *(instance_states.STOPPED, instance_states.ERROR),
)
#: Seconds that nothing happens in such a state before it is where a verb has left it.
CALM = 15.0
#: Seconds from one line that says nothing new to the next.
AGAIN = 10.0
#: State of what its node had, and has no more.
GONE, NO_MORE = "gone", "its node does not have it any more"


class Watched:
    """The instances of a request that one node has.

    :ivar parts: how each stands: instance, node (its board, or host), state and note.
    """

    def __init__(self, request: str, now: float) -> None:
        """:param request: the instance, or NAME of NAME-1 to NAME-N; what a node says of others is not heard."""
        self._request = request
        self.parts: List[Dict[str, Any]] = []
        self._calm: List[float] = []
        self._told = self._changed = now
        self._newest: Dict[str, float] = {}
        self._last: Dict[str, float] = {}
        self._unclaimed: Dict[str, str] = {}

    def look(self, answer: Mapping[str, Any], now: float) -> list[Line]:
        """Return the lines for an answer of the node, which answers.py has checked.

        :param now: seconds of a clock that only goes on.
        """
        unclaimed = answer.get("unclaimed") or ()
        self._unclaimed = {one["instance"]: one["text"] for one in unclaimed if not one.get("harmless")}
        return self._see(list(_parts(answer)), now)

    def hear(self, news: Mapping[str, Any], shown: Collection[str], now: float) -> list[Line]:
        """Return the lines for what the node tells (job_watch.watch): all of it happened since its answer.

        :param shown: the phases of events that are told.
        """
        found = {}
        for instance, node, state, note, since in news["stands"]:
            fields = dict(instance=instance, node=node, state=state, note=note, events=[], shown=shown)
            fields.update(since=None, since_seconds=None)
            if is_number(since):
                fields.update(since=since, since_seconds=max(0.0, news["time"] - since))
            found[_key(fields)] = fields
        for one in self._lost(found.values()):
            found[_key(one)] = dict(one, since=None, since_seconds=None, events=[], shown=shown)
        for number, time, node, instance, phase, text, seconds in news["events"]:
            event = dict(id=number, time=time, instance=instance, node=node, phase=phase, text=text, seconds=seconds)
            if _key(event) in found:
                found[_key(event)]["events"].append(event)
        return self._see(list(found.values()), now, news=True)

    def _see(self, found: List[Dict[str, Any]], now: float, news: bool = False) -> list[Line]:
        found = [part for part in found if self._is_asked_for(part["instance"])]
        lines = [line for part in found for line in self._news(part, news)]
        parts = [{key: part[key] for key in ("instance", "node", "state", "note")} for part in found]
        parts += self._lost(parts)
        if lines or _states(parts) != _states(self.parts):
            self._told = self._changed = now
        elif now - self._told >= AGAIN:
            self._told = now
            there = [part for part in found if part["state"] != GONE]
            lines = [_line(part, text=f"{part['state']} {_since(part)}".rstrip()) for part in there]
        self.parts, self._calm = parts, [self._quiet(part) for part in found if part["state"] != GONE]
        return lines

    def _lost(self, found: Iterable[Mapping[str, Any]]) -> List[Dict[str, Any]]:
        """Return those of its parts that are not among these, with what the node has of them without a claim."""
        there = {part["instance"] for part in found}
        lost = [one for one in self.parts if one["instance"] not in there]
        return [dict(one, state=GONE, note=self._unclaimed.get(one["instance"], NO_MORE)) for one in lost]

    def _is_asked_for(self, name: Any) -> bool:
        return isinstance(name, str) and is_of(dict(instance=name, request=self._request), self._request)

    def quiet(self, now: float) -> float:
        """Return for how many seconds nothing has happened."""
        return now - self._changed

    def settled(self, now: float) -> bool:
        """Return whether each of them runs, is gone, or is left in another state by the verb that brought it there."""
        calm = self._calm_in(now)
        return calm is not None and calm <= 0.0

    def rest(self, now: float) -> float:
        """Return in how many seconds there is something to be said or decided although nothing happens."""
        calm, again = self._calm_in(now), self._told + AGAIN - now
        return again if calm is None else min(again, calm)

    def _calm_in(self, now: float) -> float | None:
        """Return in how many seconds they are settled if nothing happens; None where that is not the end."""
        rest = [part["state"] in AT_REST for part in self.parts if part["state"] not in (*RUNS, GONE)]
        if not rest:
            return 0.0
        return CALM - max(self.quiet(now), min(self._calm, default=0.0)) if all(rest) else None

    def _news(self, part: Mapping[str, Any], news: bool) -> Iterator[Line]:
        """Yield the lines of events that were not told yet; of a first answer, of those since it is in its state."""
        key, first = _key(part), not news and _key(part) not in self._newest
        before, newest = self._newest.get(key, 0), self._newest.get(key, 0)
        for event in part["events"]:
            number = event.get("id")
            if not is_number(number) or number <= before or event.get("instance") != part["instance"]:
                continue
            newest = max(newest, number)
            self._last[key] = max(event["time"], self._last.get(key, 0.0))
            old = first and (part["state"] in RUNS or event["time"] < (part["since"] or 0))
            if event["phase"] in part["shown"] and not old:
                phase = event["phase"] if part["shown"] is SHOWN else ""
                yield _line(part, phase, event.get("text") or "", event.get("seconds"))
        self._newest[key] = newest

    def _quiet(self, part: Mapping[str, Any]) -> float:
        """Return for how many seconds nothing has happened by the node's clock; 0 where it does not tell."""
        since, seconds = part["since"], part["since_seconds"]
        if since is None or not is_number(seconds):
            return 0.0
        return float(since + seconds - max(since, self._last.get(_key(part), since)))


def _states(parts: Iterable[Mapping[str, Any]]) -> List[Any]:
    return [(part["instance"], part["node"], part["state"]) for part in parts]


def _key(part: Mapping[str, Any]) -> str:
    return f"{part['instance']} {part['node']}"


def _parts(answer: Mapping[str, Any]) -> Iterator[Dict[str, Any]]:
    """Yield what a node has of a request, with what tells how it goes on."""
    boards = [one for one in answer.get("boards") or () if one.get("instance")]
    for shown, those in ((SHOWN, boards), (SHOWN_OF_INSTANCES, answer.get("instances") or ())):
        for one in those:
            fields = {key: one.get(key) for key in ("instance", "state", "since", "since_seconds")}
            since = fields["since"] if is_number(fields["since"]) else None
            node, note, events = one.get("name") or "", one.get("note") or "", one.get("events") or ()
            yield dict(fields, since=since, node=node, note=note, events=events, shown=shown)


def _since(part: Mapping[str, Any]) -> str:
    return f"since {age(part['since_seconds'])}" if is_number(part["since_seconds"]) else ""


def _line(part: Mapping[str, Any], phase: str = "", text: str = "", seconds: Any = None) -> Line:
    return dict(instance=part["instance"], node=part["node"], phase=phase, text=text, seconds=seconds)
