# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status page: what needs a look, the rack, instances with their boots, leases, recent events.

The data are the owners' answers to playbook status. The files beside this one compute what is shown, each for its part
of the page; templates/ has the HTML.
"""

from __future__ import annotations

from typing import Any, Mapping

from . import hosts as of_hosts
from .attention import attention
from .events import recent
from .instances import instances, leases
from .jinja import render
from .rack import nodes as of_boards
from .rack import rack, tiles
from .text import moment


def status_page(
    snapshots: Mapping[str, dict[str, Any]], title: str = "Boards", hosts: Mapping[str, dict[str, Any]] | None = None
) -> str:
    """Return the page as text.

    :param snapshots: {proxy: {taken_at, boards, claims, error}}, as filter `snapshots` makes them.
    :param hosts: {GPU host: {taken_at, gpus, instances, claims, capacity, error}}, as filter `snapshots` makes them.
    """
    hosts = hosts or {}
    boards = [dict(board, proxy=name) for name, seen in snapshots.items() for board in seen["boards"]]
    taken = max([seen["taken_at"] for seen in (*snapshots.values(), *hosts.values())], default=0)
    several = len(snapshots) > 1
    nodes = of_boards(boards, several) + of_hosts.nodes(hosts)
    with_rack = bool(snapshots or not hosts)
    return render(
        "page.html.j2",
        title=str(title),
        taken=moment(taken, "%Y-%m-%d %H:%M %Z"),
        tiles=tiles(boards) if with_rack else None,
        attention=attention(snapshots, boards, several, hosts),
        racks=[rack(name, seen["boards"]) for name, seen in snapshots.items() if not seen.get("error")],
        hosts_title=of_hosts.title(hosts),
        cards=of_hosts.cards(hosts),
        instances=instances(nodes),
        leases=leases(nodes, taken),
        events=recent(nodes),
    )
