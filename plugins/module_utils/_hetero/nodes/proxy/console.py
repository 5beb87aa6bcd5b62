# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero console NAME`: attach to a board's console by conserver's client, or follow its log.

Several may read, and one writes. Who named an instance is cut off when its claim ends, so that they do not see what the
board says for the next one: by conserver (records/console_logs.py), and here, where conserver does not obey.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import termios
import time
from contextlib import closing
from typing import TYPE_CHECKING, NoReturn, Sequence

from ...boards.records.console_logs import ATTACHING, CLIENT
from ...boards.records.proxy import Proxy
from ...boards.work.console import begins
from ...boards.work.followed_log import FollowedLog
from ...core.errors import BadInput
from ...site.proxy_config import CONFIG, SET_UP, files_of
from ..verb_parser import verb_parser

if TYPE_CHECKING:
    from ...boards.records.claim_records import Claim
    from ...site.boards_file import Board

VERB = "console"
DOES = (
    "Attach to a board's console: one writes, others read. Ctrl-e c . leaves it, Ctrl-e c f takes over the writing. "
    "Who names an instance is cut off when its claim ends."
)
#: How whoever attaches to a board, and not to an instance, is called to the others who do. No instance has this name
#: as theirs are in small letters: who attached by the name of an instance is cut off when that ends.
OPERATOR = "Operator"
#: Seconds between two looks whether the claim goes on and the log grows.
LOOK = 0.2
#: Lines of what was said before that `--follow` shows.
BEFORE = 20
#: Seconds that conserver's client has to end.
ENDS = 2.0
#: conserver names neither the keys that leave it, nor why a console is down.
HOW = "{board}: Ctrl-e c . leaves. If nothing comes of it: journalctl -u hetero-consoles\n"
OVER = "{name}'s claim of {board} is over\n"


def parser() -> argparse.ArgumentParser:
    """Return the parser of its words."""
    words = verb_parser(VERB, DOES, CONFIG, "proxy")
    words.add_argument("name", metavar="NAME", help="a board, or the instance that has it")
    how = words.add_mutually_exclusive_group()
    how.add_argument("--read", action="store_true", help="only read")
    how.add_argument("--follow", action="store_true", help="print its log as it grows; also one of another program")
    return words


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    with Proxy(files_of(options.config), f"hetero {VERB}", create=False) as proxy:
        board, claim = _found(proxy, options.name)
        code = follow(proxy, board, claim) if options.follow else attach(proxy, board, claim, options.read)
        if claim and _is_over(proxy, claim):
            sys.stdout.write(OVER.format(name=claim.instance, board=board.name))
            return 1
        return code


def argv(file: str, board: str, who: str, read: bool = False) -> list[str]:
    """Return the command that attaches to a board's console, which begins with its last lines.

    :param file: the client's configuration.
    :param who: how conserver calls who attaches.
    :param read: do not write.
    """
    return [ATTACHING, "-n", "-C", file, "-l", who, "-S" if read else "-A", board]


def attach(proxy: Proxy, board: Board, claim: Claim | None, read: bool) -> int:
    """Run conserver's client until it ends, or the claim does; return its exit code.

    :raises BadInput: the console is not the proxy's conserver's.
    """
    wire = proxy.config.boards.get(str(board.id))
    if wire is None or wire.console_from is None:
        raise BadInput("has no console that conserver serves", board.name, f"name console_from in its wiring, {SET_UP}")
    if not os.path.exists(ATTACHING):
        raise BadInput("is not there", ATTACHING, f"install package conserver-client: {SET_UP}")
    file = os.path.join(proxy.config.consoles_folder, CLIENT)
    terminal = termios.tcgetattr(sys.stdin) if sys.stdin.isatty() else None
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    sys.stderr.write(HOW.format(board=board.name))
    sys.stderr.flush()
    child = subprocess.Popen(argv(file, board.name, claim.instance if claim else OPERATOR, read))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is typed is the client's
    try:
        while claim is None or not _is_over(proxy, claim):
            try:
                return child.wait(LOOK)
            except subprocess.TimeoutExpired:
                continue
        return 1
    finally:
        _end(child)
        if terminal:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, terminal)


def follow(proxy: Proxy, board: Board, claim: Claim | None) -> int:
    """Print a console's log as it grows, so that no terminal obeys it, until the claim ends or Ctrl-c is typed.

    :param claim: whose part of the log it is; None for all of it.
    :raises BadInput: the board's console has no log.
    """
    path = proxy.wiring(board).console
    if not path:
        raise BadInput("has no log of its console", board.name, f"name console_from or console in its wiring, {SET_UP}")
    start = begins(proxy, board) if claim else 0
    most = BEFORE
    with closing(FollowedLog(path, start, proxy.config.server if claim else None)) as log:
        try:
            while True:
                lines = log.lines()
                if claim and _is_over(proxy, claim):
                    return 1  # they may be the next one's
                sys.stdout.write("".join(f"{line}\n" for line in lines[-most:]))
                sys.stdout.flush()
                most = sys.maxsize
                if not lines:
                    time.sleep(LOOK)
        except KeyboardInterrupt:
            return 0
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0


def _leave(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End conserver's client, if it has not ended."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(ENDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _is_over(proxy: Proxy, claim: Claim) -> bool:
    """Return whether a claim has ended, or its instance has another board by now."""
    return not claim.is_same(proxy.store.record(claim.board).claim)


def _found(proxy: Proxy, name: str) -> tuple[Board, Claim | None]:
    """Return the board that an instance has, with its claim, or the board of that name.

    :raises BadInput: there is none.
    """
    claim = proxy.store.claim_of(name)
    if claim:
        return proxy.board(claim.board), claim
    for board in proxy.boards.values():
        if board.name == name:
            return board, None
    raise BadInput("is no board, and no instance on a board of this proxy", name, "name one")
