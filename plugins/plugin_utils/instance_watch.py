# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person who watches an instance is told, by what its node answers again and again: each phase once, how it
stands meanwhile, and whether it is settled. action/node_info.py asks the node.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.job_watch import SHOWN, SHOWN_OF_INSTANCES
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states, instance_states
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import age
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
GONE = "gone"


class Watched:
    """The instances of a request that one node has.

    :ivar parts: how each stands: instance, node (its board, or host), state and note.
    """

    def __init__(self, now: float) -> None:
        self.parts: List[Dict[str, Any]] = []
        self._calm: List[float] = []
        self._told = self._changed = now
        self._newest: Dict[str, float] = {}

    def look(self, answer: Mapping[str, Any], now: float) -> list[Line]:
        """Return the lines for an answer of the node, which answers.py has checked.

        :param now: seconds of a clock that only goes on.
        """
        found = list(_parts(answer))
        lines = [line for part in found for line in self._news(part)]
        parts = [{key: part[key] for key in ("instance", "node", "state", "note")} for part in found]
        there = {part["instance"] for part in parts}
        lost = [one for one in self.parts if one["instance"] not in there]
        parts += [dict(one, state=GONE, note="its node does not have it any more") for one in lost]
        if lines or parts != self.parts:
            self._told = self._changed = now
        elif now - self._told >= AGAIN:
            self._told = now
            lines = [_line(part, text=f"{part['state']} {_since(part)}".rstrip()) for part in found]
        self.parts, self._calm = parts, [_calm(part) for part in found]
        return lines

    def quiet(self, now: float) -> float:
        """Return for how many seconds nothing has happened."""
        return now - self._changed

    def settled(self, now: float) -> bool:
        """Return whether each of them runs, is gone, or is left in another state by the verb that brought it there."""
        rest = [part["state"] in AT_REST for part in self.parts if part["state"] not in (*RUNS, GONE)]
        return all(rest) and (not rest or max(self.quiet(now), min(self._calm, default=0.0)) >= CALM)

    def _news(self, part: Mapping[str, Any]) -> Iterator[Line]:
        """Yield the lines of events that were not told yet; at first, of those since it is in its state."""
        key, first = f"{part['instance']} {part['node']}", f"{part['instance']} {part['node']}" not in self._newest
        before, newest = self._newest.get(key, 0), self._newest.get(key, 0)
        for event in part["events"]:
            number = event.get("id")
            if not is_number(number) or number <= before:
                continue
            newest = max(newest, number)
            old = first and (part["state"] in RUNS or event["time"] < (part["since"] or 0))
            if event["phase"] in part["shown"] and event.get("instance") == part["instance"] and not old:
                phase = event["phase"] if part["shown"] is SHOWN else ""
                yield _line(part, phase, event.get("text") or "", event.get("seconds"))
        self._newest[key] = newest


def _parts(answer: Mapping[str, Any]) -> Iterator[Dict[str, Any]]:
    """Yield what a node has of a request, with what tells how it goes on."""
    boards = [one for one in answer.get("boards") or () if one.get("instance")]
    for shown, those in ((SHOWN, boards), (SHOWN_OF_INSTANCES, answer.get("instances") or ())):
        for one in those:
            fields = {key: one.get(key) for key in ("instance", "state", "since", "since_seconds")}
            since = fields["since"] if is_number(fields["since"]) else None
            node, note, events = one.get("name") or "", one.get("note") or "", one.get("events") or ()
            yield dict(fields, since=since, node=node, note=note, events=events, shown=shown)


def _calm(part: Mapping[str, Any]) -> float:
    """Return for how many seconds nothing has happened by the node's clock; 0 where it does not tell."""
    since, seconds = part["since"], part["since_seconds"]
    if since is None or not is_number(seconds):
        return 0.0
    newest = max([since, *(one["time"] for one in part["events"] if one.get("instance") == part["instance"])])
    return float(since + seconds - newest)


def _since(part: Mapping[str, Any]) -> str:
    return f"since {age(part['since_seconds'])}" if is_number(part["since_seconds"]) else ""


def _line(part: Mapping[str, Any], phase: str = "", text: str = "", seconds: Any = None) -> Line:
    return dict(instance=part["instance"], node=part["node"], phase=phase, text=text, seconds=seconds)
