# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of what needs a person: nodes that gave no answer, boards and GPUs out of use, claims of unknown boards."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from .hosts import to_look_at
from .rack import look, place
from .text import Text, cell_text, since


class Ill(NamedTuple):
    """A board that is out of use; `console` is the end of its console's log."""

    node: Any
    look: str
    state: Any
    since: str | None
    outlet: str
    note: Text
    console: str


class Stray(NamedTuple):
    """A claim of a board that the proxy's boards file does not name."""

    board: Any
    proxy: str
    why: str


class Finding(NamedTuple):
    """A thing on a host that needs a look."""

    node: str
    state: str
    where: Any
    why: Text


class Attention(NamedTuple):
    """All that needs a look; `silent` has (proxy, error) of each proxy that gave no answer."""

    silent: list[tuple[str, Text]]
    ill: list[Ill]
    strays: list[Stray]
    findings: list[Finding]


def attention(
    snapshots: Mapping[str, dict[str, Any]],
    boards: list[dict[str, Any]],
    several: bool,
    hosts: Mapping[str, dict[str, Any]],
) -> Attention | None:
    """Return what needs a look; None where nothing does.

    :param boards: the boards of all snapshots, each with its `proxy`.
    :param several: True with several proxies, where a board's name is shown with its proxy's.
    """
    found = Attention(
        silent=[(name, cell_text(seen["error"])) for name, seen in snapshots.items() if seen.get("error")],
        ill=[_ill(board, several) for board in boards if look(board) in ("error", "away")],
        strays=_strays(snapshots, boards),
        findings=[Finding(node, state, where, cell_text(why)) for node, state, where, why in to_look_at(hosts)],
    )
    return found if any(found) else None


def _ill(board: dict[str, Any], several: bool) -> Ill:
    evidence = [event for event in board.get("events") or () if event.get("phase") == "error"]
    lines = str(evidence[-1].get("text")).split("\n") if evidence else []
    return Ill(
        node=place(board, several),
        look=look(board),
        state=board.get("state"),
        since=since(board.get("since_seconds")),
        outlet=f"{board['pdu']} outlet {board.get('outlet')}" if board.get("pdu") else "-",
        note=cell_text(board.get("note")),
        console="\n".join(lines[1:]),
    )


def _strays(snapshots: Mapping[str, dict[str, Any]], boards: list[dict[str, Any]]) -> list[Stray]:
    known = {(board["proxy"], board.get("id")) for board in boards}
    said = "{} of {} has it, and the boards file does not name it"
    return [
        Stray(claim.get("name"), name, said.format(claim.get("instance"), claim.get("owner")))
        for name, seen in snapshots.items()
        for claim in seen["claims"]
        if (name, claim.get("board")) not in known
    ]
