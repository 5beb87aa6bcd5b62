# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The instances and their owners, how each running instance booted, and which leases end."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import age

from ..filters.status_table import drawn
from .rack import Node
from .text import Moment, is_seconds, moment, since
from .timeline import Bar, Boot, Scale, bar_of, last_boot

#: What an instance draws where no device tells it.
UNMEASURED = "-"


class Row(NamedTuple):
    """An instance. Of `gpus`, `note` and `boot` the first that is not None is shown."""

    instance: Any
    owner: Any
    node: Any
    ip: Any
    look: str
    state: Any
    since: str | None
    flavor: Any
    image: Any
    gpus: str | None
    note: Any
    boot: Bar | None
    drawn: str


class Instances(NamedTuple):
    """All instances, whether it is known what any of them draws, and the scale of their bars; None without a bar."""

    rows: list[Row]
    with_boards: bool
    measured: bool
    scale: Scale | None


class Ending(NamedTuple):
    """A claim that ends, or has ended: `late`."""

    instance: Any
    owner: Any
    ends: Moment
    left: str
    late: bool


class Leases(NamedTuple):
    """Claims that end, the soonest first, and how many do not."""

    ending: list[Ending]
    open_ended: int


def instances(nodes: Sequence[Node]) -> Instances:
    """Return the instances of boards and hosts, by name."""
    taken = sorted((node for node in nodes if node.said.get("instance")), key=lambda node: str(node.said["instance"]))
    boots = [last_boot(node.said.get("events") or (), node.said["instance"]) for node in taken]
    scale = Scale(boots)
    rows = [_row(node, boot, scale) for node, boot in zip(taken, boots)]
    return Instances(
        rows=rows,
        with_boards=any(not node.on_host for node in taken),
        measured=any(row.drawn != UNMEASURED for row in rows),
        scale=scale if any(boots) else None,
    )


def _row(node: Node, boot: Boot, scale: Scale) -> Row:
    said = node.said
    runs = said.get("state") == board_states.RUNNING
    return Row(
        instance=said["instance"],
        owner=said.get("owner"),
        node=node.place,
        ip=said.get("ip"),
        look=node.look,
        state=said.get("state"),
        since=since(said.get("since_seconds")),
        flavor=said.get("flavor"),
        image=said.get("image"),
        gpus=", ".join(said["gpus"]) if node.on_host and said.get("gpus") else None,
        note=None if runs else said.get("note") or "-",
        boot=bar_of(boot, scale) if runs and boot else None,
        drawn=drawn(said) or UNMEASURED,
    )


def leases(nodes: Sequence[Node], now: float) -> Leases | None:
    """Return the claims that end, and the number of those that do not; None where there is no instance.

    :param now: unix seconds at which the owners were asked.
    """
    taken = [node.said for node in nodes if node.said.get("instance")]
    ending = sorted((said for said in taken if is_seconds(said.get("expires"))), key=lambda said: said["expires"])
    return Leases([_ending(said, now) for said in ending], len(taken) - len(ending)) if taken else None


def _ending(said: dict[str, Any], now: float) -> Ending:
    left = said["expires"] - now
    when = f"in {age(left)}" if left > 0 else f"{age(-left)} ago"
    return Ending(said["instance"], said.get("owner"), moment(said["expires"], "%Y-%m-%d %H:%M"), when, left <= 0)
