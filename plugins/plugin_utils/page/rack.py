# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boards as they hang on their PDUs: a strip of outlets for each PDU, a rack for each proxy node.

module_utils/_hetero/site/board_states.py has the states; this file says how they are shown.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, NamedTuple, Sequence

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states

from .text import since

#: {how a board is shown: its states}; a board in any other state is shown as an error, for nobody can use it.
LOOKS = {
    "running": ("running", {board_states.RUNNING}),
    "booting": ("booting", {board_states.BOOTING}),
    "leaving": ("shutting down", {board_states.SHUTTING_DOWN}),
    "free": ("free", {board_states.POWER_OFF}),
    "error": ("error", {board_states.ERROR}),
    "away": ("maintenance", {board_states.MAINTENANCE}),
}
NO_PDU = "no PDU"


class Tile(NamedTuple):
    """A number of boards that are shown alike (a key of LOOKS, or "all")."""

    look: str
    said: str
    number: int


class Cell(NamedTuple):
    """A board in its outlet, or a GPU in its host; `more` is the text that has no room in a cell."""

    look: str
    name: Any
    outlet: Any
    who: Any
    state: str
    more: str


class Node(NamedTuple):
    """A board, or an instance of a host, as the page shows it.

    :param said: its owner's answer, for display; the fields below are computed, and not taken from it as they are.
    :param look: a key of LOOKS.
    :param place: its host, or its board, with the proxy's name if there are several proxies.
    """

    said: dict[str, Any]
    look: str
    place: Any
    on_host: bool = False


class Strip(NamedTuple):
    """A PDU, and its boards in the order of its outlets."""

    pdu: str
    said: str
    cells: list[Cell]


class Rack(NamedTuple):
    """A proxy node with its PDUs."""

    name: str
    said: str
    strips: list[Strip]


def look(board: dict[str, Any]) -> str:
    """Return the key of LOOKS for a board's state; a board that is off and claimed counts as waiting for its boot."""
    for name, (_shown, own) in LOOKS.items():
        if board.get("state") in own:
            return "booting" if name == "free" and board.get("instance") else name
    return "error"


def place(board: dict[str, Any], several: bool) -> Any:
    """Return the name of a board, with its proxy's if there are several proxies."""
    return f"{board['proxy']} {board.get('name')}" if several else board.get("name")


def nodes(boards: Iterable[dict[str, Any]], several: bool) -> list[Node]:
    """Return the boards as nodes."""
    return [Node(board, look(board), place(board, several)) for board in boards]


def counted(boards: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Return {key of LOOKS: number of boards}."""
    count = dict.fromkeys(LOOKS, 0)
    for board in boards:
        count[look(board)] += 1
    return count


def in_words(boards: Sequence[dict[str, Any]]) -> str:
    """ "10 boards: 2 running, 8 free" """
    said = ", ".join(f"{number} {LOOKS[name][0]}" for name, number in counted(boards).items() if number)
    return f"{len(boards)} board{'' if len(boards) == 1 else 's'}{': ' if said else ''}{said}"


def natural(text: object) -> list[tuple[int, int, str]]:
    """Return a sort key that puts outlet 10 after outlet 9.

    Only 0 to 9 are digits, and no number is made of them: int() refuses more than 4,300.
    """
    key = []
    for part in re.findall(r"[0-9]+|[^0-9]+", str(text)):
        number = part.lstrip("0")
        key.append((0, len(number), number) if "0" <= part[0] <= "9" else (1, 0, part))
    return key


def tiles(boards: Sequence[dict[str, Any]]) -> list[Tile]:
    """Return a Tile for each kind of boards, and one for all of them."""
    rows = [Tile("all", "boards", len(boards))]
    return rows + [Tile(name, LOOKS[name][0], number) for name, number in counted(boards).items()]


def rack(name: str, boards: Sequence[dict[str, Any]]) -> Rack:
    """Return a proxy node with its PDUs, each with its boards in the order of its outlets."""
    pdus: dict[str, list[dict[str, Any]]] = {}
    for board in boards:
        pdus.setdefault(board.get("pdu") or NO_PDU, []).append(board)
    ordered = sorted(pdus, key=lambda pdu: (pdu == NO_PDU, natural(pdu)))
    return Rack(name, in_words(boards), [_strip(pdu, pdus[pdu]) for pdu in ordered])


def _strip(pdu: str, boards: Sequence[dict[str, Any]]) -> Strip:
    boards = sorted(boards, key=lambda board: (natural(board.get("outlet") or ""), natural(board.get("id"))))
    count = f"{len(boards)} outlet{'' if len(boards) == 1 else 's'}" if pdu != NO_PDU else in_words(boards)
    return Strip(pdu, count, [_cell(board) for board in boards])


def _cell(board: dict[str, Any]) -> Cell:
    name = look(board)
    free = name == "free"
    span = None if free else since(board.get("since_seconds"))
    return Cell(
        look=name,
        name=board.get("name"),
        outlet=board.get("outlet"),
        who=board.get("instance") or ("-" if free else board.get("note") or "-"),
        state=f"{'free' if free else board.get('state')}{f' · {span}' if span else ''}",
        more=_more(board),
    )


def _more(board: dict[str, Any]) -> str:
    """Return the text about a board that has no room in its cell."""
    said = [f"{board.get('name')}: {board.get('state')}"]
    for what in ("instance", "owner", "ip", "mac", "arch", "pdu", "outlet", "power", "note"):
        if board.get(what):
            said.append(f"{what}: {board[what]}")
    return "\n".join(said)
