# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero console NAME`: attach to a board's console, by conserver's client; several may read, and one writes."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Sequence

from ...boards.records.proxy import Proxy
from ...core.errors import BadInput
from ...site.proxy_config import CONFIG, SET_UP, files_of
from ..verb_parser import verb_parser
from .conserver_files import CLIENT

if TYPE_CHECKING:
    from ...site.boards_file import Board

VERB = "console"
DOES = "Attach to a board's console: one writes, others read. Ctrl-e c . leaves it, Ctrl-e c f takes over the writing."
BINARY = "/usr/bin/console"
#: How whoever attaches as root is called to the others who do.
OPERATOR = "operator"


def parser() -> argparse.ArgumentParser:
    """Return the parser of its words."""
    words = verb_parser(VERB, DOES, CONFIG, "proxy")
    words.add_argument("name", metavar="NAME", help="a board, or the instance that has it")
    words.add_argument("--read", action="store_true", help="only read")
    return words


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    with Proxy(files_of(options.config), f"hetero {VERB}", create=False) as proxy:
        board, file = _board(proxy, options.name), os.path.join(proxy.config.consoles_folder, CLIENT)
    sys.stdout.flush()
    os.execv(BINARY, argv(file, board.name, OPERATOR, options.read))
    return 1


def argv(file: str, board: str, who: str, read: bool = False) -> list[str]:
    """Return the command that attaches to a board's console, which begins with its last lines.

    :param file: the client's configuration.
    :param who: how conserver calls who attaches.
    :param read: do not write.
    """
    return [BINARY, "-n", "-C", file, "-l", who, "-S" if read else "-A", board]


def _board(proxy: Proxy, name: str) -> Board:
    """Return the board of that name, or that an instance of that name has.

    :raises BadInput: there is none, or its console is not the proxy's conserver's.
    """
    claim = proxy.store.claim_of(name)
    named = [board for board in proxy.boards.values() if board.name == name]
    board = proxy.board(claim.board) if claim else named[0] if named else None
    if board is None:
        raise BadInput("is no board, and no instance on a board of this proxy", name, "name one")
    wire = proxy.config.boards.get(str(board.id))
    if wire is None or wire.console_from is None:
        raise BadInput("has no console that conserver serves", board.name, f"name console_from in its wiring, {SET_UP}")
    if not os.path.exists(BINARY):
        raise BadInput("is not there", BINARY, f"install package conserver-client: {SET_UP}")
    return board
