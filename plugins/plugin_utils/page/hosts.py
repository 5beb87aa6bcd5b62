# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU hosts on the page: a strip of GPUs for each host, and their containers as rows beside the boards' instances."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import instance_states
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import age

from ..snapshots import devices
from .html import Html, join, tag
from .timeline import is_seconds

#: State of a container → how the page shows it (keys of rack.LOOKS); any other is an error.
LOOKS = {
    instance_states.CLAIMED: "booting",
    instance_states.BUILDING: "booting",
    instance_states.REBUILDING: "booting",
    instance_states.STARTING: "booting",
    instance_states.RUNNING: "running",
    instance_states.STOPPING: "leaving",
    instance_states.STOPPED: "free",
}
#: How a GPU is shown → in words.
SAID = {"free": "free", "running": "in use", "error": "not to be given"}


def containers(hosts: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The instances of GPU hosts in the words that the page has for boards."""
    return [
        dict(one, proxy=name, node=name, look=LOOKS.get(one.get("state"), "error"))
        for name, seen in hosts.items()
        for one in seen["instances"]
    ]


def strips(hosts: Mapping[str, dict[str, Any]]) -> Html | None:
    """A card for each host that answered, with its GPUs; nothing where there is none."""
    cards = [_card(name, seen) for name, seen in hosts.items() if not seen.get("error")]
    return (
        join(
            tag("h2", "KVM and GPU hosts" if any(seen.get("devices") for seen in hosts.values()) else "GPU hosts"),
            cards,
        )
        if cards
        else None
    )


def _card(name: str, seen: dict[str, Any]) -> Html:
    gpus = devices(seen)
    free = sum(1 for gpu in gpus if _look(gpu) == "free")
    left = ", ".join(
        f"{amount.get('free')} of {amount.get('total')} {key}" for key, amount in (seen.get("capacity") or {}).items()
    )
    thing = "device" if seen.get("devices") else "GPU"
    said = f"{len(gpus)} {thing}{'' if len(gpus) == 1 else 's'}, {free} free{f'; free: {left}' if left else ''}"
    head = tag("div", tag("h3", name), tag("span", said, class_="soft"), class_="head")
    why = tag("p", seen["unsupported"], class_="soft") if seen.get("unsupported") else None
    cells = tag("ul", [_cell(gpu) for gpu in gpus], class_="outlets")
    return tag("section", head, why, cells if gpus else None, class_="card rack")


def _look(gpu: dict[str, Any]) -> str:
    if gpu.get("unsupported") or not gpu.get("healthy"):
        return "error"
    return "running" if gpu.get("holder") else "free"


def _cell(gpu: dict[str, Any]) -> Html:
    name = _look(gpu)
    why = gpu.get("unsupported") or gpu.get("why_unhealthy")
    more = [f"{what}: {gpu[what]}" for what in ("model", "uuid", "driver", "numa_node", "holder") if gpu.get(what)]
    return tag(
        "li",
        tag("b", gpu.get("address")),
        tag("span", gpu.get("holder") or why or "-", class_="who"),
        tag("small", f"{gpu.get('arch') or 'unknown'} · {SAID[name]}"),
        class_=name,
        title="\n".join([str(gpu.get("address")), *more]),
    )


def to_look_at(hosts: Mapping[str, dict[str, Any]]) -> Iterator[tuple[str, str, Any, Any]]:
    """(node, state, where, why) of what a person has to do something about: no answer, GPUs, containers."""
    for name, seen in hosts.items():
        if seen.get("error"):
            yield name, "no answer", "", seen["error"]
        for gpu in devices(seen):
            if _look(gpu) == "error":
                yield name, "error", gpu.get("address"), gpu.get("unsupported") or gpu.get("why_unhealthy")
        for one in seen["instances"]:
            if one.get("state") not in LOOKS:
                since = f" {age(one['since_seconds'])}" if is_seconds(one.get("since_seconds")) else ""
                yield name, f"{one.get('state')}{since}", one.get("instance"), one.get("note")
