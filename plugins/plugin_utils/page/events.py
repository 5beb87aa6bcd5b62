# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The newest events."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from .rack import Node
from .text import Moment, Text, cell_text, is_seconds, moment

#: Events on the page; all of them are in the JSON.
MOST_EVENTS = 40


class Event(NamedTuple):
    """An event of a node; `seconds` is empty where it has none."""

    time: Moment
    node: Any
    instance: Any
    phase: Any
    text: Text
    seconds: str


def recent(nodes: Sequence[Node]) -> list[Event]:
    """Return the newest MOST_EVENTS events of boards and of hosts' instances, the newest first."""
    found = [(event, node) for node in nodes for event in node.said.get("events") or ()]
    found = [pair for pair in found if is_seconds(pair[0].get("time"))]
    found.sort(key=lambda pair: (pair[0]["time"], str(pair[0].get("id")).zfill(20)), reverse=True)
    return [_event(event, node) for event, node in found[:MOST_EVENTS]]


def _event(event: dict[str, Any], node: Node) -> Event:
    seconds = event.get("seconds")
    return Event(
        time=moment(event["time"]),
        node=node.place,
        instance=event.get("instance") or "-",
        phase=event.get("phase"),
        text=cell_text(event.get("text")),
        seconds=f"{seconds:.1f}" if is_seconds(seconds) else "",
    )
