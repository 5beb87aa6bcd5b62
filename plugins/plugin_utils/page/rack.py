# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boards as they hang on their PDUs: a strip of outlets for each PDU, a rack for each proxy node.

Which states there are is known to module_utils/_hetero/site/board_states.py; here is how they are shown.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Sequence

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import age

from .html import Html, tag
from .timeline import is_seconds

#: How a board is shown → its states; what is in none of them is shown as an error, for nobody can use it.
LOOKS = {
    "running": ("running", {board_states.RUNNING}),
    "booting": ("booting", {board_states.BOOTING}),
    "leaving": ("shutting down", {board_states.SHUTTING_DOWN}),
    "free": ("free", {board_states.POWER_OFF}),
    "error": ("error", {board_states.ERROR}),
    "away": ("maintenance", {board_states.MAINTENANCE}),
}
NO_PDU = "no PDU"


def look(board: dict[str, Any]) -> str:
    """A key of LOOKS. A board that is off and claimed waits for its boot; a container brings its own."""
    if "look" in board:
        return board["look"]
    for name, (_shown, own) in LOOKS.items():
        if board.get("state") in own:
            return "booting" if name == "free" and board.get("instance") else name
    return "error"


def counted(boards: Iterable[dict[str, Any]]) -> dict[str, int]:
    """{key of LOOKS: how many boards}"""
    count = dict.fromkeys(LOOKS, 0)
    for board in boards:
        count[look(board)] += 1
    return count


def in_words(boards: Sequence[dict[str, Any]]) -> str:
    """ "10 boards: 2 running, 8 free" """
    said = ", ".join(f"{number} {LOOKS[name][0]}" for name, number in counted(boards).items() if number)
    return f"{len(boards)} board{'' if len(boards) == 1 else 's'}{': ' if said else ''}{said}"


def natural(text: object) -> list[tuple[int, int, str]]:
    """Sorts outlet 10 behind outlet 9."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.findall(r"[0-9]+|[^0-9]+", str(text))]


def tiles(boards: Sequence[dict[str, Any]]) -> Html:
    """How many boards there are of each kind, and in all."""
    rows = [("all", "boards", len(boards))]
    rows += [(name, LOOKS[name][0], number) for name, number in counted(boards).items()]
    return tag(
        "ul",
        [
            tag("li", tag("b", number), shown, class_=f"card {name}{'' if number else ' none'}")
            for name, shown, number in rows
        ],
        class_="tiles",
    )


def rack(name: str, boards: Sequence[dict[str, Any]]) -> Html:
    """A proxy node with its PDUs, each with its boards in the order of its outlets."""
    pdus: dict[str, list[dict[str, Any]]] = {}
    for board in boards:
        pdus.setdefault(board.get("pdu") or NO_PDU, []).append(board)
    strips = [_strip(pdu, pdus[pdu]) for pdu in sorted(pdus, key=lambda pdu: (pdu == NO_PDU, natural(pdu)))]
    head = tag("div", tag("h3", name), tag("span", in_words(boards), class_="soft"), class_="head")
    return tag("section", head, strips, class_="card rack")


def _strip(pdu: str, boards: Sequence[dict[str, Any]]) -> Html:
    boards = sorted(boards, key=lambda board: (natural(board.get("outlet") or ""), natural(board.get("id"))))
    count = f"{len(boards)} outlet{'' if len(boards) == 1 else 's'}" if pdu != NO_PDU else in_words(boards)
    cells = tag("ul", [_cell(board) for board in boards], class_="outlets")
    return tag("div", tag("div", pdu, tag("small", count, class_="soft")), cells, class_="pdu")


def _cell(board: dict[str, Any]) -> Html:
    name, since = look(board), board.get("since_seconds")
    shown, own = LOOKS[name]
    state = "free" if name == "free" else board.get("state")
    span = f" · {age(since)}" if is_seconds(since) and name != "free" else ""
    return tag(
        "li",
        tag("b", board.get("name")),
        tag("span", board.get("outlet"), class_="no") if board.get("outlet") else None,
        tag("span", board.get("instance") or ("-" if name == "free" else board.get("note") or "-"), class_="who"),
        tag("small", f"{state}{span}"),
        class_=name,
        title=_more(board),
    )


def _more(board: dict[str, Any]) -> str:
    """What a cell has no room for."""
    said = [f"{board.get('name')}: {board.get('state')}"]
    for what in ("instance", "owner", "ip", "mac", "arch", "pdu", "outlet", "power", "note"):
        if board.get(what):
            said.append(f"{what}: {board[what]}")
    return "\n".join(said)
