# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board's console: the end of its log, and how to sit down at it where its wiring says that one can.

Who writes the log is the site's own business (conserver, ipmitool, the lab's machines).
"""

from __future__ import annotations

import os
from typing import Any

from ..errors import BadInput
from .blame import console_tail

#: Lines that can be asked for at once; more is what the file is for.
MOST_LINES = 10000


def console(proxy, board_id, lines):
    """What board_console returns: `file`, `console` (its last lines), `command` (to attach), and lines for people.

    :raises BadInput: the board's wiring names no console, or its log is not there.
    """
    if not 1 <= lines <= MOST_LINES:
        raise BadInput(f"is {lines}", "lines", f"give 1 to {MOST_LINES}")
    board = proxy.board(board_id)
    wiring, claim = proxy.wiring(board), proxy.store.record(board.id).claim
    file, command = wiring.get("console"), wiring.get("console_command")
    if not file and not command:
        remedy = "name its log (console) or a command to attach (console_command) in tftp_proxy_boards"
        raise BadInput("has no console in the proxy's configuration", board.name, remedy)
    if file and not os.access(file, os.R_OK):
        raise BadInput(f"its log {file} is not there or cannot be read", board.name, "look at what should write it")
    tail = console_tail(file, 0, lines)
    instance = claim.instance if claim else None
    said: list[Any] = []
    if file:
        text = f"{file} ({os.path.getsize(file)} bytes)"
        said.append(dict(instance=instance, node=board.name, phase="console", text=text, seconds=None))
        said += [f"  {line}" for line in tail]
    return dict(
        board=board.id, name=board.name, instance=instance, file=file, console=tail, command=command, lines=said
    )
