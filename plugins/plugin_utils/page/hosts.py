# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU hosts on the page: a strip of GPUs for each host, and their containers as rows beside the boards' instances."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, NamedTuple

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import instance_states

from ..snapshots import devices
from .rack import Cell, Node
from .text import since

#: {state of a container: how the page shows it, a key of rack.LOOKS}; any other state is shown as an error.
LOOKS = {
    instance_states.CLAIMED: "booting",
    instance_states.BUILDING: "booting",
    instance_states.REBUILDING: "booting",
    instance_states.STARTING: "booting",
    instance_states.RUNNING: "running",
    instance_states.STOPPING: "leaving",
    instance_states.ENDING: "leaving",
    instance_states.STOPPED: "free",
}
#: {how a GPU is shown: the same in words}.
SAID = {"free": "free", "running": "in use", "error": "not to be given"}


class Card(NamedTuple):
    """A host with its GPUs; `why` says why it serves none of them."""

    name: str
    said: str
    why: Any
    cells: list[Cell]


def nodes(hosts: Mapping[str, dict[str, Any]]) -> list[Node]:
    """Return the instances of hosts as nodes."""
    return [
        Node(one, LOOKS.get(one.get("state"), "error"), name, on_host=True)
        for name, seen in hosts.items()
        for one in seen["instances"]
    ]


def title(hosts: Mapping[str, dict[str, Any]]) -> str:
    """Return the heading over the hosts' cards."""
    return "KVM and GPU hosts" if any(seen.get("devices") for seen in hosts.values()) else "GPU hosts"


def cards(hosts: Mapping[str, dict[str, Any]]) -> list[Card]:
    """Return a card for each host that answered, with its GPUs."""
    return [_card(name, seen) for name, seen in hosts.items() if not seen.get("error")]


def _card(name: str, seen: dict[str, Any]) -> Card:
    gpus = devices(seen)
    free = sum(1 for gpu in gpus if _look(gpu) == "free")
    left = ", ".join(
        f"{amount.get('free')} of {amount.get('total')} {key}" for key, amount in (seen.get("capacity") or {}).items()
    )
    thing = "device" if seen.get("devices") else "GPU"
    said = f"{len(gpus)} {thing}{'' if len(gpus) == 1 else 's'}, {free} free{f'; free: {left}' if left else ''}"
    return Card(name, said, seen.get("unsupported"), [_cell(gpu) for gpu in gpus])


def _look(gpu: dict[str, Any]) -> str:
    if gpu.get("unsupported") or not gpu.get("healthy"):
        return "error"
    return "running" if gpu.get("holder") else "free"


def _cell(gpu: dict[str, Any]) -> Cell:
    name = _look(gpu)
    why = gpu.get("unsupported") or gpu.get("why_unhealthy")
    more = [f"{what}: {gpu[what]}" for what in ("model", "uuid", "driver", "numa_node", "holder") if gpu.get(what)]
    return Cell(
        look=name,
        name=gpu.get("address"),
        outlet=None,
        who=gpu.get("holder") or why or "-",
        state=f"{gpu.get('arch') or 'unknown'} · {SAID[name]}",
        more="\n".join([str(gpu.get("address")), *more]),
    )


def to_look_at(hosts: Mapping[str, dict[str, Any]]) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield (node, state, where, why) of each thing that needs a person: hosts without an answer, GPUs, containers."""
    for name, seen in hosts.items():
        if seen.get("error"):
            yield name, "no answer", "", seen["error"]
        for gpu in devices(seen):
            if _look(gpu) == "error":
                yield name, "error", gpu.get("address"), gpu.get("unsupported") or gpu.get("why_unhealthy")
        for one in seen["instances"]:
            if one.get("state") not in LOOKS:
                span = since(one.get("since_seconds"))
                yield name, f"{one.get('state')}{f' {span}' if span else ''}", one.get("instance"), one.get("note")
