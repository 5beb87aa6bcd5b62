# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero kernels`: leads boards that nobody has to the kernels that were put into the TFTP root for them by hand.

Set-up and `hetero reap` do so, too, so that a kernel that is put there later is found within a minute. What lies in the
TFTP root is not changed; tftp/kernels_by_hand.py knows which files these are.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import TYPE_CHECKING, Callable, Sequence

from ...boards.records.proxy import Proxy
from ...core.deadline import Deadline
from ...core.errors import HeteroError, TimedOut, naming, told
from ...core.locks import lock
from ...roots.provision import lead_to_by_hand
from ...site.proxy_config import CONFIG, files_of
from ...tftp.board_folder import BoardFiles
from ...tftp.kernels_by_hand import lead, put_there
from ..verb_parser import verb_parser

if TYPE_CHECKING:
    from ...boards.records.claim_records import Claim
    from ...site.boards_file import Board

VERB = "kernels"
DOES = "Lead boards that nobody has to kernels (vmlinux_N) that were put into the TFTP root by hand, and list these."
#: Folders of boards are called by their addresses.
ADDRESS = re.compile(r"\d+(\.\d+){3}")
NOW, NO_MORE = " from now on", "{name}: is no more what {address} gets: {why}"


def kernels(proxy: Proxy, say: Callable[[str], object], check: bool = False) -> bool:
    """Lead each board of the boards file to what was put there for it, and others to nothing.

    If a turn was cut off, the rest of the folder of a board that nobody has is removed, too.

    :param say: called with a line for each file that was put there by hand, and for each that a board gets no more.
    :param check: change nothing, and say what would be.
    :returns: whether that was possible for all boards. One that another verb works on is left to the next turn.
    """
    done = True
    claims = {claim.board: claim for claim in proxy.store.claims()}
    for board in proxy.boards.values():
        try:
            with naming(board.name):
                _board(proxy, board, claims.get(board.id), say, check)
        except TimedOut:
            say(f"{board.name}: another works on it, so it was left out: hetero {VERB} does it then")
        except HeteroError as error:
            say(f"{board.name}: {told(error, board.name)}")
            done = False
    addresses = {board.ip for board in proxy.boards.values()}
    root = proxy.config.tftp_root
    for name in sorted(os.listdir(root)) if os.path.isdir(root) else []:
        if ADDRESS.fullmatch(name) and name not in addresses:
            for old in lead(BoardFiles(root, name), set(), check)[1]:
                say(NO_MORE.format(name=old, address=name, why="no board of the boards file has that address"))
    return done


def parser() -> argparse.ArgumentParser:
    """Return the parser of its words."""
    words = verb_parser(VERB, DOES, CONFIG, "proxy")
    words.add_argument("--check", action="store_true", help="change nothing, and say what would be changed")
    return words


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    with Proxy(files_of(options.config), f"hetero {VERB}", create=False) as proxy:
        return 0 if kernels(proxy, lambda text: sys.stdout.write(f"{text}\n"), options.check) else 1


def _board(proxy: Proxy, board: Board, claim: Claim | None, say: Callable[[str], object], check: bool) -> None:
    root = proxy.config.tftp_root
    there, files = put_there(root, board.id), BoardFiles(root, board.ip)
    new, old = _lead(proxy, board, claim, True)
    empty = not claim and files.is_empty()
    if (new or old or empty) and not check:
        with lock(proxy.config.run_folder, board.name, VERB, proxy.actor, Deadline(0)):
            # Anew, for another may have claimed it meanwhile.
            claim = proxy.store.record(board.id).claim
            new, old = _lead(proxy, board, claim, False)
            if not claim:
                files.remove_empty()
    led = {*files.by_hand(), *new} - set(old)
    for name, why in there.items():
        path = os.path.join(root, name)
        if name in led:
            say(f"{board.name} gets {path}, put there by hand{NOW if name in new else ''}")
        elif claim:
            say(f"{board.name} is {claim.instance}'s: it does not get {path}, put there by hand, which stays")
        else:
            say(f"{board.name} does not get {path}: it {why or 'has boot files of its own, left by an instance'}")
    for name in [name for name in old if name not in there]:
        say(NO_MORE.format(name=name, address=board.name, why=f"it is not in {root} any more"))


def _lead(proxy: Proxy, board: Board, claim: Claim | None, check: bool) -> tuple[list[str], list[str]]:
    if claim:
        return lead(BoardFiles(proxy.config.tftp_root, board.ip), set(), check)
    return lead_to_by_hand(proxy, board, check)
