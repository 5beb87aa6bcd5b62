# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status page: what needs a look, the rack, instances with their boots, leases, recent events.

Data is what playbook status asked of the owners. One file, without scripts and without anything from elsewhere.
"""

from __future__ import annotations

import datetime
from typing import Any, Mapping, Sequence

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import age

from . import timeline
from .hosts import containers, strips, to_look_at
from .html import Html, clean, join, tag
from .rack import look, rack, tiles
from .style import STYLE

#: Events on the page; all of them are in the JSON.
MOST_EVENTS = 40
#: Characters of a cell's text; further ones, and further lines, are behind a click.
MOST_TEXT = 200
#: A browser that obeys it loads and runs nothing, even if something got past the escaping.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def status_page(
    snapshots: Mapping[str, dict[str, Any]], title: str = "Boards", hosts: Mapping[str, dict[str, Any]] | None = None
) -> str:
    """The page as text.

    :param snapshots: {proxy: {taken_at, boards, claims, error}}, as filter `snapshots` makes them.
    :param hosts: {GPU host: {taken_at, gpus, instances, claims, capacity, error}} likewise.
    """
    hosts = hosts or {}
    boards = [dict(board, proxy=name) for name, seen in snapshots.items() for board in seen["boards"]]
    nodes = boards + containers(hosts)
    taken = max([seen["taken_at"] for seen in (*snapshots.values(), *hosts.values())], default=0)
    several = len(snapshots) > 1
    rack_head = tag("h2", "Rack") if snapshots or not hosts else None
    body = tag(
        "main",
        tag("header", tag("h1", title), tag("span", "as of ", moment(taken, "%Y-%m-%d %H:%M %Z"), class_="soft")),
        tiles(boards) if rack_head else None,
        _needs_a_look(snapshots, boards, several, hosts),
        rack_head,
        [rack(name, seen["boards"]) for name, seen in snapshots.items() if not seen.get("error")],
        strips(hosts),
        _instances(nodes, several),
        _leases(nodes, taken),
        _events(nodes, several),
    )
    # The style is ours, and a style element's text is not escaped in HTML.
    style = Html(f"<style>{STYLE}</style>")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        style,
    )
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', body), lang='en')}\n"


def moment(seconds: Any, form: str = "%d %b %H:%M:%S") -> Html:
    """A time in this machine's zone; a dash for what is none."""
    if not timeline.is_seconds(seconds):
        return tag("span", "-")
    try:
        then = datetime.datetime.fromtimestamp(seconds).astimezone()
    except (OverflowError, OSError, ValueError):
        return tag("span", "-")
    return tag("time", then.strftime(form), datetime=then.isoformat(timespec="seconds"))


def _table(heading: Sequence[str], rows: list[Html]) -> Html:
    head = tag("thead", tag("tr", [cell if isinstance(cell, Html) else tag("th", cell) for cell in heading]))
    return tag("div", tag("table", head, tag("tbody", rows)), class_="card wide")


def _node(board: dict[str, Any], several: bool) -> Any:
    if "node" in board:
        return board["node"]
    return f"{board['proxy']} {board.get('name')}" if several else board.get("name")


def _state(board: dict[str, Any]) -> Html:
    return tag("span", board.get("state"), class_=f"state {look(board)}")


def _text(text: Any, most: int = MOST_TEXT) -> str:
    """The first line of a text; all of it behind a click where there is more."""
    text = clean(text if text is not None else "")
    first = text.split("\n", 1)[0]
    if first == text and len(text) <= most:
        return text
    shown = first if len(first) <= most else f"{first[: most - 1]}…"
    return join(shown, tag("details", tag("summary", "all of it"), tag("pre", text)))


def _needs_a_look(
    snapshots: Mapping[str, dict[str, Any]],
    boards: list[dict[str, Any]],
    several: bool,
    hosts: Mapping[str, dict[str, Any]],
) -> Html | None:
    """What a person has to do something about."""
    rows = [
        tag("tr", tag("th", name), tag("td", tag("span", "no answer", class_="state error")), tag("td"),
            tag("td", _text(seen["error"]), class_="text"))
        for name, seen in snapshots.items()
        if seen.get("error")
    ]  # fmt: skip
    for board in boards:
        if look(board) not in ("error", "away"):
            continue
        evidence = [event for event in board.get("events") or () if event.get("phase") == "error"]
        lines = str(evidence[-1].get("text")).split("\n") if evidence else []
        tail = tag("details", tag("summary", "console"), tag("pre", "\n".join(lines[1:]))) if lines[1:] else None
        outlet = f"{board['pdu']} outlet {board.get('outlet')}" if board.get("pdu") else "-"
        since = board.get("since_seconds")
        state: str = tag("td", _state(board), tag("small", age(since)) if timeline.is_seconds(since) else None)
        note: str = tag("td", _text(board.get("note")) or "-", tail, class_="text")
        rows.append(tag("tr", tag("th", _node(board, several)), state, tag("td", outlet, class_="name"), note))
    known = {(board["proxy"], board.get("id")) for board in boards}
    for name, seen in snapshots.items():
        for claim in seen["claims"]:
            if (name, claim.get("board")) not in known:
                note = f"{claim.get('instance')} of {claim.get('owner')} has it, and the boards file does not name it"
                rows.append(tag("tr", tag("th", claim.get("name")), tag("td"), tag("td", name), tag("td", note)))
    for name, state, where, why in to_look_at(hosts):
        shown, said = tag("td", tag("span", state, class_="state error")), tag("td", _text(why), class_="text")
        rows.append(tag("tr", tag("th", name), shown, tag("td", where, class_="name"), said))
    if not rows:
        return None
    return join(tag("h2", "Needs a look"), _table(("Node", "State", "Where", "Why"), rows))


def _instances(boards: list[dict[str, Any]], several: bool) -> Html:
    """Who has what, and how each running instance booted."""
    taken = sorted((board for board in boards if board.get("instance")), key=lambda board: str(board["instance"]))
    if not taken:
        return join(tag("h2", "Instances"), tag("p", "None.", class_="soft"))
    boots = [timeline.last_boot(board.get("events") or (), board["instance"]) for board in taken]
    scale = timeline.Scale(boots)
    rows = []
    for board, boot in zip(taken, boots):
        since = board.get("since_seconds")
        if board.get("gpus"):
            shown = tag("span", ", ".join(board["gpus"]))
        elif board.get("state") != board_states.RUNNING:
            shown = tag("span", board.get("note") or "-", class_="soft")
        elif boot:
            shown = join(timeline.picture(boot, scale), tag("small", timeline.words(boot)))
        else:
            shown = tag("span", "its boot is not among the events that were asked for", class_="soft")
        cells = (
            tag("th", board["instance"], tag("small", board.get("owner"))),
            tag("td", _node(board, several), tag("small", board.get("ip")), class_="name"),
            tag("td", _state(board), tag("small", age(since)) if timeline.is_seconds(since) else None),
            tag("td", board.get("flavor"), tag("small", board.get("image"))),
            tag("td", shown, class_="bars"),
        )
        rows.append(tag("tr", cells))
    named = "Boot, seconds from power on" if any("node" not in board for board in taken) else "GPUs"
    boot_head = tag("th", named, timeline.axis(scale) if any(boots) else None)
    heading = ("Instance, owner", "Node", "State", "Flavor, image", boot_head)
    return join(tag("h2", "Instances"), _table(heading, rows))


def _leases(boards: list[dict[str, Any]], now: float) -> Html | None:
    """Which claims end, the soonest first."""
    taken = [board for board in boards if board.get("instance")]
    ending = sorted(
        (board for board in taken if timeline.is_seconds(board.get("expires"))), key=lambda board: board["expires"]
    )
    if not taken:
        return None
    rows = []
    for board in ending:
        left = board["expires"] - now
        said = tag("td", f"in {age(left)}") if left > 0 else tag("td", f"{age(-left)} ago", class_="late")
        ends = tag("td", moment(board["expires"], "%Y-%m-%d %H:%M"), class_="when")
        rows.append(tag("tr", tag("th", board["instance"]), tag("td", board.get("owner")), ends, said))
    open_ended = len(taken) - len(ending)
    rest = tag("p", f"{open_ended} without an end.", class_="soft") if open_ended else None
    table = _table(("Instance", "Owner", "Ends", ""), rows) if rows else None
    return join(tag("h2", "Leases"), table, rest)


def _events(boards: list[dict[str, Any]], several: bool) -> Html | None:
    """What happened last, the newest first."""
    found = [(event, board) for board in boards for event in board.get("events") or ()]
    found = [pair for pair in found if timeline.is_seconds(pair[0].get("time"))]
    found.sort(key=lambda pair: (pair[0]["time"], str(pair[0].get("id")).zfill(20)), reverse=True)
    if not found:
        return None
    rows = []
    for event, board in found[:MOST_EVENTS]:
        seconds = event.get("seconds")
        cells = (
            tag("td", moment(event["time"]), class_="when"),
            tag("td", _node(board, several), class_="name"),
            tag("td", event.get("instance") or "-"),
            tag("td", event.get("phase")),
            tag("td", _text(event.get("text")), class_="text"),
            tag("td", f"{seconds:.1f}" if timeline.is_seconds(seconds) else "", class_="number"),
        )
        rows.append(tag("tr", cells))
    heading = ("Time", "Node", "Instance", "Phase", "What", tag("th", "Seconds", class_="number"))
    return join(tag("h2", "Recent events"), _table(heading, rows))
