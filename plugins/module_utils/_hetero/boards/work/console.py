# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board's console: the end of its log, and how to sit down at it where its wiring says that one can.

Who writes the log is the site's own business (conserver, ipmitool, the lab's machines). It goes on from tenant to
tenant, so where a claim's own part begins is written down before the board gets power for it the first time.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from ...core.errors import BadInput, Refused
from ...drivers.boot.blame import console_tail
from ..records.store import must_be_of

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ..records.proxy import Proxy

#: Lines that can be asked for at once; more is what the file is for.
MOST_LINES = 10000
#: Phase of the event that says where a claim's part of the log begins, and its text: the file by its inode, and bytes.
PHASE = "console log"
BEGINS = "{file} (inode {inode}), from byte {size}"
BEGUN = re.compile(r"\(inode (\d+)\), from byte (\d+)$")
NONE_YET = "its part of the log begins when the board gets power for it the next time"
OPERATORS = "an operator reads all of the log: -e all=true"


def begin(proxy: Proxy, board: Board) -> None:
    """Write down, before a claim's board gets power, where its part of the log begins; once a claim."""
    claim, file = proxy.store.record(board.id).claim, proxy.wiring(board).get("console")
    if claim and file and proxy.store.first_since_claim(claim, PHASE) is None:
        inode, size = _look(file)
        proxy.store.event(board.id, PHASE, BEGINS.format(file=file, inode=inode, size=size))


def begins(proxy: Proxy, board: Board) -> int:
    """The byte of a board's log at which the part of its claim begins; the end where nobody wrote that down.

    A log that was rotated since, which is another file or a shorter one, is all of the claim.
    """
    claim, file = proxy.store.record(board.id).claim, proxy.wiring(board).get("console")
    inode, size = _look(file)
    mark = proxy.store.first_since_claim(claim, PHASE) if claim else None
    begun = BEGUN.search(mark.text) if mark else None
    if begun is None:
        return size
    return int(begun[2]) if (inode, True) == (int(begun[1]), int(begun[2]) <= size) else 0


def _look(file: str | None) -> tuple[int, int]:
    """(inode, size) of a log; zeros for one that is not there."""
    try:
        seen = os.stat(file) if file else None
    except OSError:
        seen = None
    return (seen.st_ino, seen.st_size) if seen else (0, 0)


def console(
    proxy: Proxy, board_id: int, lines: int, instance: str | None, owner: str | None, everything: bool
) -> dict[str, Any]:
    """What board_console_info returns: `file`, `console` (its last lines), `command` (to attach), and lines for people.

    :param instance: the instance or request that the board is to be of; None asks for nothing.
    :param owner: where given, a board of another owner is refused.
    :param everything: what was said before this claim, too, and of a board that nobody has.
    :raises BadInput: the board's wiring names no console, or its log is not there.
    :raises Refused: it is not theirs to read.
    """
    if not 1 <= lines <= MOST_LINES:
        raise BadInput(f"is {lines}", "lines", f"give 1 to {MOST_LINES}")
    board = proxy.board(board_id)
    wiring, claim = proxy.wiring(board), proxy.store.record(board.id).claim
    must_be_of(claim, instance, board.name)
    if claim and owner not in (None, claim.owner):
        raise Refused(
            f"is {claim.instance}'s, of {claim.owner}", board.name, f"ask {claim.owner}, or add -e force=true"
        )
    file, command = wiring.get("console"), wiring.get("console_command")
    if not file and not command:
        remedy = "name its log (console) or a command to attach (console_command) in tftp_proxy_boards"
        raise BadInput("has no console in the proxy's configuration", board.name, remedy)
    if file and not os.access(file, os.R_OK):
        raise BadInput(f"its log {file} is not there or cannot be read", board.name, "look at what should write it")
    if file and not claim and not everything:
        raise Refused("nobody has it, and what it said is of those who had it", board.name, OPERATORS)
    start = 0 if everything else begins(proxy, board)
    tail = console_tail(file, start, lines)
    name = claim.instance if claim else None
    said: list[Any] = []
    if file:
        size = os.path.getsize(file)
        text = f"{file} ({size} bytes{f', its own from byte {start}' if start else ''})"
        said.append(dict(instance=name, node=board.name, phase="console", text=text, seconds=None))
        said += [f"  {line}" for line in tail]
        if claim and not everything and proxy.store.first_since_claim(claim, PHASE) is None:
            said.append(f"  {NONE_YET}; {OPERATORS}")
    return dict(board=board.id, name=board.name, instance=name, file=file, console=tail, command=command, lines=said)
