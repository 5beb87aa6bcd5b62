# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose fault a boot that stalled is, in what words, and with which evidence. What follows is boot/boot_loop.py's.

The order is the design's: the proxy's own self-test first, because its fault looks like every board's; then others on
the network who stand in the proxy's place; then what the board asked for says whether it works and its image does not.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Collection, Container

from ...core.printable import one_line
from .driver import ENTRY, KERNEL, NFS, NFS_ROOT, SYSTEM, TFTP

if TYPE_CHECKING:
    from ...core.errors import StepFailed
    from ...site.boards_file import Board
    from .ssh import WrongHostKey

PROXY, NETWORK, IMAGE, BOARD, INSTANCE = "proxy", "network", "image", "board", "instance"
#: The step of a boot driver with which its others begin: it waits for the system that they act on.
MONITOR = "monitor"

#: Lines of the console that go with an error, and the bytes of the log that are read for them at most.
CONSOLE_LINES = 20
CONSOLE_BYTES = 65536
#: Characters of one line of a console that are shown; a terminal has 80 to 250.
CONSOLE_WIDTH = 1000
#: Colours (ECMA-48, SGR), which init systems put into their lines, are left out. Other control characters show escaped.
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
TIMES = {1: "", 2: ", twice"}
#: What goes with the error of a board that did begin to boot.
SLOW = "; if it only needs longer, give it more: timeout (in the playbooks hetero_boot_timeout)"


def verdict(
    faults: Collection[str],
    asked: Container[str],
    wrong_key: WrongHostKey | None,
    kinds: Container[str] = (),
    strangers: Collection[str] = (),
) -> str:
    """Who is to blame.

    :param faults: what the proxy's self-test found.
    :param asked: roles of the files the board asked for.
    :param wrong_key: another host key answered after a verified power cycle.
    :param kinds: kinds of things seen; a root is mounted by a kernel only, also by one that was not asked for (flash).
    :param strangers: other machines that stand in the proxy's place; what they do looks like any fault of a board.
    """
    if faults:
        return PROXY
    if strangers:
        return NETWORK
    if wrong_key:
        return BOARD
    return IMAGE if KERNEL in asked or NFS in kinds else BOARD


def awaited(asked: Container[str], kinds: Container[str], flash: bool = False, root: str = NFS_ROOT) -> str:
    """The phase a boot waits for: what the last thing seen of it does not yet prove."""
    if NFS in kinds or (KERNEL in asked and root != NFS_ROOT):
        return "running"
    if KERNEL in asked or (flash and SYSTEM in kinds):
        return "nfs"
    return "flash" if flash else "tftp"


def stalled(
    asked: Collection[str],
    kinds: Collection[str],
    seconds: float,
    tries: int,
    console: str | None = None,
    flash: bool = False,
    root: str = NFS_ROOT,
) -> str:
    """The note of a boot that stalled ("stalled at tftp after 41 s, twice; console: board4.log").

    :param flash: its kernel comes from its own flash memory.
    :param root: where its root lies.
    """
    times = TIMES.get(tries, f", {tries} times")
    if not kinds:
        text = f"no boot request within {seconds:.0f} s{times}"
    else:
        text = f"stalled at {awaited(asked, kinds, flash, root)} after {seconds:.0f} s{times}"
        if ENTRY in asked and KERNEL not in asked:
            text += " (boot entry fetched, kernel not asked for)"
        elif TFTP not in kinds and not asked:
            text += " (asked for an address only)"
    return f"{text}; console: {os.path.basename(console)}" if console else text


def failed_step(error: StepFailed | None, kinds: Container[str], tries: int) -> str | None:
    """The note of a boot on which a step of its driver failed; None where it did not come as far as that.

    :param error: StepFailed, or None.
    """
    if error is None or (error.phase == MONITOR and NFS not in kinds):
        return None
    return f"{error.what}{TIMES.get(tries, f', {tries} times')} ({error.remedy})"


def wrong_feed(board: Board, pdu: str, outlet: str) -> str:
    """The note of a board behind whose address another host key answers although its own power was cycled."""
    return (
        f"outlet {outlet} of {pdu} does not feed this board, or its address is taken: {board.ip} shows another host key"
    )


def own_root(board: Board) -> str:
    """The note of a board that mounted its root in this boot, and behind whose address another host key answers."""
    return (
        f"it has mounted its root, and {board.ip} shows another host key than the one that is known: its tenant may "
        "have made a new one, or another machine has its address"
    )


def console_size(path: str | None) -> int:
    """Where the console's log ends now; what a boot writes comes after it."""
    try:
        return os.path.getsize(path) if path else 0
    except OSError:
        return 0


def console_tail(path: str | None, since: int, most: int = CONSOLE_LINES) -> list[str]:
    """The last lines, `most` of them, of a console's log written after position `since`, as they may be printed."""
    if not path:
        return []
    try:
        with open(path, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            # A log shorter than it was has been rotated: then all of it is new.
            start = since if since <= end else 0
            file.seek(max(start, end - CONSOLE_BYTES * (1 + most // 500)))
            text = file.read().decode("utf-8", "replace")
    except OSError as error:
        return [f"{path}: {error.strerror}"]
    lines = [_shown(line) for line in text.replace("\r", "\n").split("\n")]
    return [line for line in lines if line][-most:]


def _shown(line: str) -> str:
    line = COLOURS.sub("", line).expandtabs().rstrip()
    return one_line(line if len(line) <= CONSOLE_WIDTH else f"{line[: CONSOLE_WIDTH - 1]}…")
