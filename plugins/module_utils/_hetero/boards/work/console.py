# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board's console: the end of its log, and the command to attach to it, where the wiring names one.

The site's own programs write the log (conserver, ipmitool, the lab's machines). One log has the output of all tenants
in turn, so the start of a claim's part is written down before the board first gets power for the claim. What the
board's sshd says of this node's own questions is left out, but for operators who read all of it.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from ...core.errors import BadInput, Refused
from ...core.lines import line
from ...core.plays import play
from ...drivers.boot.blame import console_tail
from ...site.owners import is_owner
from ...site.proxy_config import ATTACH, FOLLOW
from ..records import console_logs
from ..records.store import must_be_of

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ..records.proxy import Proxy

#: Most lines that a call may ask for; who needs more reads the file.
MOST_LINES = 10000
#: The phase of the event that says where a claim's part of the log begins. Its text has the file's inode and the byte.
PHASE = "console log"
#: The phase of the event that tells that a log goes on which was to be set aside.
LOG = "log"
BEGINS = "{file} (inode {inode}), from byte {size}"
BEGUN = re.compile(r"\(inode (\d+)\), from byte (\d+)$")
NONE_YET = "its part of the log begins when the board gets power for it the next time"
WRITER = "see that what should write its log (conserver, ipmitool) runs"
#: The same where the proxy's own conserver writes the log.
CONSERVER = "see whether its console is reached: journalctl -u hetero-consoles on its proxy node"
OPERATORS = "an operator reads all of the log: -e all=true"


def begin(proxy: Proxy, board: Board) -> None:
    """Write down, once for each claim, where its part of the log begins; called before its board gets power."""
    claim, file = proxy.store.record(board.id).claim, proxy.wiring(board).console
    if claim and file and proxy.store.first_since_claim(claim, PHASE) is None:
        inode, size = _look(file)
        proxy.store.event(board.id, PHASE, BEGINS.format(file=file, inode=inode, size=size))


def begin_anew(proxy: Proxy, board: Board) -> None:
    """Have a board's next boot begin a log of its own, where the proxy's conserver writes it (console_from)."""
    if proxy.wiring(board).console_from is None:
        return
    proxy.store.commit()  # for who waits to write: conserver is waited for
    failed = _set_aside(proxy, board)
    if failed:
        proxy.store.event(board.id, LOG, failed)


def bound(proxy: Proxy) -> None:
    """Set aside the logs of the proxy's conserver that have grown long within a boot; what fails is tried again."""
    for board in proxy.boards.values():
        if console_logs.is_long(proxy.config, board):
            _set_aside(proxy, board)


def _set_aside(proxy: Proxy, board: Board) -> str | None:
    """Set a log aside: it is the claim's if that had power before, else nobody's. Return why it could not be done."""
    claim = proxy.store.record(board.id).claim
    is_its_own = claim and proxy.store.first_since_claim(claim, PHASE) is not None
    return console_logs.begin_anew(proxy.config, board, claim.instance if claim and is_its_own else None)


def begins(proxy: Proxy, board: Board) -> int:
    """Return the byte at which the claim's part of a board's log begins; the end of the log where that is not known.

    A log that was rotated since (another file, or a shorter one) is wholly the claim's.
    """
    claim, file = proxy.store.record(board.id).claim, proxy.wiring(board).console
    inode, size = _look(file)
    mark = proxy.store.first_since_claim(claim, PHASE) if claim else None
    begun = BEGUN.search(mark.text) if mark else None
    if begun is None:
        return size
    return int(begun[2]) if (inode, True) == (int(begun[1]), int(begun[2]) <= size) else 0


def looked_at(proxy: Proxy, board: Board) -> tuple[int, int]:
    """Return (inode, size in bytes) of the log of a board's console; zeros where there is none."""
    return _look(proxy.wiring(board).console)


def _look(file: str | None) -> tuple[int, int]:
    """Return (inode, size in bytes) of a log; zeros for a missing one."""
    try:
        seen = os.stat(file) if file else None
    except OSError:
        seen = None
    return (seen.st_ino, seen.st_size) if seen else (0, 0)


def _before(logs: list[str], lines: int, tail: list[str]) -> list[str]:
    """Return the last lines of logs that were set aside, and of what came after them.

    :param tail: the last lines of that.
    """
    for log in reversed(logs):
        if len(tail) < lines:
            tail = console_tail(log, 0, lines - len(tail)) + tail
    return tail


def console(
    proxy: Proxy, board_id: int, lines: int, instance: str | None, owner: str | None, everything: bool
) -> dict[str, Any]:
    """Return the result of board_console_info.

    :param instance: the instance or request that must have the board; None for any.
    :param owner: where given, a board of another owner is refused.
    :param everything: also return what was printed before this claim, and the log of a board that nobody has.
    :returns: dict of `file`, `console` (its last lines), `command` (to attach), `follow` (the command that prints the
        log as it grows), and lines for people.
    :raises BadInput: the board's wiring names no console, or its log is missing.
    :raises Refused: this instance or owner may not read it.
    """
    if not 1 <= lines <= MOST_LINES:
        raise BadInput(f"is {lines}", "lines", f"give 1 to {MOST_LINES}")
    board = proxy.board(board_id)
    wiring, claim = proxy.wiring(board), proxy.store.record(board.id).claim
    must_be_of(claim, instance, board.name)
    if claim and not is_owner(owner, claim.owner):
        raise Refused(
            f"is {claim.instance}'s, of {claim.owner}", board.name, f"ask {claim.owner}, or add -e force=true"
        )
    file, command = wiring.console, wiring.console_command
    if claim and wiring.console_from:
        command = ATTACH.format(name=claim.instance)  # it ends with the claim
    if not file and not command:
        remedy = "name where it comes from (console_from) or another program's log (console) in tftp_proxy_boards"
        raise BadInput("has no console in the proxy's configuration", board.name, remedy)
    began = proxy.store.first_since_claim(claim, PHASE) is not None if claim else True
    boots = f"{play('start_instance', instance=claim.instance)} boots it" if claim else ""
    writer = CONSERVER if wiring.console_from else WRITER
    if file and not os.path.exists(file):
        remedy = writer if began else f"it has had no power for its instance yet: {boots}"
        remedy = remedy if claim else f"it may have had no power yet; if it had, {remedy}"
        raise BadInput(f"has said nothing: its log {file} is not there", board.name, remedy)
    if file and not os.access(file, os.R_OK):
        raise BadInput(f"its log {file} cannot be read", board.name, writer)
    if file and not claim and not everything:
        raise Refused("nobody has it, and what it said is of those who had it", board.name, OPERATORS)
    start = 0 if everything else begins(proxy, board)
    older = console_logs.set_aside(file) if file and everything and wiring.console_from else []
    older = [log for log in older if not os.path.islink(log)]  # what is set aside is a file, and the folder conserver's
    tail = _before(older, lines, console_tail(file, start, lines, None if everything else proxy.config.server))
    if claim and not everything and not claim.is_same(proxy.store.record(board.id).claim):
        raise Refused("was given back meanwhile, and what its log says may be another's", board.name, "run this again")
    name = claim.instance if claim else None
    said: list[Any] = []
    if file:
        size = os.path.getsize(file)
        before = f", {len(older)} logs before it" if older else ""
        text = f"{file} ({size} bytes{f', its own from byte {start}' if start else ''}{before})"
        said.append(line(name, board.name, "console", text))
        said += [f"  {line}" for line in tail]
        if not began and not everything:
            said.append(f"  {NONE_YET} ({boots}); {OPERATORS}")
        elif not tail:
            said.append(f"  nothing yet. If the board has booted: {writer}")
    follow = FOLLOW.format(name=name or board.name) if file else None
    shown = dict(console=tail, command=command, follow=follow, lines=said)
    return dict(board=board.id, name=board.name, instance=name, file=file, **shown)
