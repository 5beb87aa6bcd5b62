# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The logs that the proxy's conserver writes of consoles: one for each boot, and which of the older ones are kept.

Before a board gets power, and when a claim ends, the log is set aside under a name with the time and the instance, and
conserver is told to go on in a new file. nodes/proxy/consoles.py starts conserver.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ...core.command import command
from ...core.deadline import Deadline
from ...core.errors import HeteroError

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ...site.proxy_config import ProxyConfig

#: Bytes at which a log is set aside within a boot (by `hetero reap`, whose timer looks each minute), bytes at which the
#: kernel ends a file (RLIMIT_FSIZE), and the logs set aside that are kept of a board: how many, and their bytes.
LOG_BYTES, MOST_BYTES = 8 << 20, 16 << 20
KEPT, KEPT_BYTES = 30, 64 << 20
#: In the name of a log: whose it was, where nobody's.
NOBODY = "nobody"
#: Seconds within which conserver begins its new logs, which takes it some milliseconds, and between two looks. A boot
#: waits no longer for one that hangs (it asks DNS for a terminal server's name, and does nothing else meanwhile).
PATIENCE, NAP = 0.3, 0.002
#: The program whose process may be told, as the kernel calls it.
PROGRAM = "conserver"
#: Its client, the file by which that finds conserver, in ProxyConfig.consoles_folder, and seconds that it may take.
ATTACHING, CLIENT, CUT = "/usr/bin/console", "console.cf", 2.0


def pid_file(config: ProxyConfig) -> str:
    """Return the file with the process id of the proxy's conserver."""
    return os.path.join(config.consoles_folder, "pid")


def tell(config: ProxyConfig, number: int) -> int | None:
    """Send conserver a signal, or none (0); return its process id, None where it does not run."""
    try:
        with open(pid_file(config), encoding="ascii") as file:
            pid = int(file.read())
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            if file.read().strip() != PROGRAM:
                return None
        os.kill(pid, number)
        return pid
    except (OSError, ValueError):
        return None


def begin_anew(config: ProxyConfig, board: Board, whose: str | None) -> str | None:
    """Set a board's log aside, and have conserver go on in a new one. An empty log stays.

    Where conserver does not run, it goes on in the new one when it starts.

    :param whose: the instance whose log it was; None for nobody's.
    :returns: why the log could not be set aside; None where it was, or there is none. No boot fails for that.
    """
    wire = config.boards.get(str(board.id))
    if wire is None or wire.console_from is None:
        return None
    log, aside = config.console_log(board.name), None
    try:
        if os.path.lexists(log) and os.lstat(log).st_size:
            aside = _set_aside(log, whose or NOBODY)
    except OSError as error:
        return f"{log} could not be set aside: {error.strerror}"
    # It opens its logs anew, and consoles that could not be reached.
    pid, deadline = tell(config, signal.SIGUSR2), Deadline(PATIENCE)
    while aside and pid and _has_open(pid, aside):
        if deadline.passed:
            return f"conserver goes on writing {aside} {PATIENCE:g} s after it was told to begin a new log"
        deadline.nap(NAP)
    try:
        if aside:
            prune(log)  # last: what cannot be removed must not have conserver go on in the log of whoever was before
    except OSError as error:
        return f"older logs beside {log} could not be removed: {error.strerror} ({error.filename})"
    return None


def _set_aside(log: str, whose: str) -> str:
    """Rename a log and make an empty one in its place; return the new name. Where the second fails, nothing is done."""
    aside = _aside(log, whose)
    os.rename(log, aside)
    try:
        _make(log)
    except OSError:
        with suppress(OSError):
            os.rename(aside, log)
        raise
    return aside


def ended(config: ProxyConfig, board: Board, whose: str | None) -> None:
    """Cut off who attached to a board's console as an instance whose claim has ended, and set its log aside.

    What fails here has another chance: `hetero console` ends with the claim, and the next boot sets the log aside.

    :param whose: the instance; None where nobody had the board.
    """
    wire = config.boards.get(str(board.id))
    if wire is None or wire.console_from is None:
        return
    if whose and os.path.exists(ATTACHING) and tell(config, 0):
        file = os.path.join(config.consoles_folder, CLIENT)
        with suppress(HeteroError):
            command([ATTACHING, "-n", "-C", file, "-d", f"{whose}@{board.name}"], board.name, timeout=CUT)
    begin_anew(config, board, whose)


def is_long(config: ProxyConfig, board: Board) -> bool:
    """Return whether a board's log is to be set aside although its boot goes on, so that it stays bounded."""
    wire = config.boards.get(str(board.id))
    if wire is None or wire.console_from is None:
        return False
    with suppress(OSError):
        return os.lstat(config.console_log(board.name)).st_size >= LOG_BYTES
    return False


def _has_open(pid: int, path: str) -> bool:
    """Return whether one of conserver's processes has a file open."""
    with suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        for child in file.read().split():
            with suppress(OSError):
                for number in os.listdir(f"/proc/{child}/fd"):
                    with suppress(OSError):
                        if os.readlink(f"/proc/{child}/fd/{number}") == path:
                            return True
    return False


def _aside(log: str, whose: str) -> str:
    """Return the name of a log that is set aside now: its own, the time (UTC), and whose it was."""
    now = time.time()
    return f"{log}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}.{int(now % 1 * 1e6):06d}-{whose}"


def _make(log: str) -> None:
    """Make an empty log that conserver, whose folder it is in, may write, unless conserver was told to for another."""
    owner = os.stat(os.path.dirname(log))
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640)
    except FileExistsError:
        return
    try:
        os.fchown(file, owner.st_uid, owner.st_gid)
    finally:
        os.close(file)


def set_aside(log: str) -> list[str]:
    """Return the logs of a board that were set aside, the oldest first."""
    folder, name = os.path.split(log)
    try:
        names = [one for one in os.listdir(folder) if one.startswith(f"{name}-")]
    except FileNotFoundError:
        return []
    return [os.path.join(folder, one) for one in sorted(names)]


def prune(log: str) -> None:
    """Remove the oldest logs of a board that were set aside, but for the newest KEPT of at most KEPT_BYTES."""
    left = KEPT_BYTES
    for number, path in enumerate(reversed(set_aside(log))):
        try:
            left -= os.lstat(path).st_size
            if number >= KEPT or left < 0:
                os.unlink(path)
        except FileNotFoundError:
            continue
