# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has what, how each running instance booted, and which leases end."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import age

from .rack import look, place
from .text import Moment, is_seconds, moment, since
from .timeline import Bar, Boot, Scale, bar, last_boot


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


class Instances(NamedTuple):
    """All instances, and the scale of their bars; None where there is no bar."""

    rows: list[Row]
    with_boards: bool
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


def instances(nodes: Sequence[dict[str, Any]], several: bool) -> Instances:
    """The instances by name.

    :param nodes: boards, each with its `proxy`, and containers as hosts.containers has them.
    :param several: whether there are several proxies.
    """
    taken = sorted((node for node in nodes if node.get("instance")), key=lambda node: str(node["instance"]))
    boots = [last_boot(node.get("events") or (), node["instance"]) for node in taken]
    scale = Scale(boots)
    return Instances(
        rows=[_row(node, boot, scale, several) for node, boot in zip(taken, boots)],
        with_boards=any("node" not in node for node in taken),
        scale=scale if any(boots) else None,
    )


def _row(node: dict[str, Any], boot: Boot, scale: Scale, several: bool) -> Row:
    runs = node.get("state") == board_states.RUNNING
    return Row(
        instance=node["instance"],
        owner=node.get("owner"),
        node=place(node, several),
        ip=node.get("ip"),
        look=look(node),
        state=node.get("state"),
        since=since(node.get("since_seconds")),
        flavor=node.get("flavor"),
        image=node.get("image"),
        gpus=", ".join(node["gpus"]) if node.get("gpus") else None,
        note=None if runs else node.get("note") or "-",
        boot=bar(boot, scale) if runs and boot else None,
    )


def leases(nodes: Sequence[dict[str, Any]], now: float) -> Leases | None:
    """Which claims end; None where there is no instance.

    :param nodes: as for `instances`.
    :param now: Unix seconds at which the owners were asked.
    """
    taken = [node for node in nodes if node.get("instance")]
    ending = sorted((node for node in taken if is_seconds(node.get("expires"))), key=lambda node: node["expires"])
    return Leases([_ending(node, now) for node in ending], len(taken) - len(ending)) if taken else None


def _ending(node: dict[str, Any], now: float) -> Ending:
    left = node["expires"] - now
    said = f"in {age(left)}" if left > 0 else f"{age(-left)} ago"
    return Ending(node["instance"], node.get("owner"), moment(node["expires"], "%Y-%m-%d %H:%M"), said, left <= 0)
