# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tilera's tile-monitor: its command lines, in the form that Nova's former bare-metal driver used, and a board's Shell
over them.

The boot driver (tilera.py) knows which commands a board needs, and when.
"""

from __future__ import annotations

import os
import shlex
import uuid
from typing import TYPE_CHECKING, Callable, Iterable, Sequence, cast

from ...core.command import Limits, ended, last_words
from ...core.errors import BadInput
from ...core.output import MOST_OF_OTHERS
from ...core.this_node import THIS_NODE
from .shell import Shell, exit_error

if TYPE_CHECKING:
    import subprocess

    from ...core.deadline import Deadline
    from .shell import Progress

#: Begins and ends a command with its arguments.
BRACKET = "-"
#: Characters of a command's output that are kept as evidence.
KEPT = 4000


def runs(*commands: Sequence[str]) -> list[str]:
    """Return the words that run commands one after the other, each to its end.

    :raises BadInput: a word of a command is BRACKET, which tile-monitor would take for the command's end.
    """
    words = []
    for command in commands:
        if BRACKET in command:
            raise BadInput(f"cannot be a word of a command: {BRACKET!r}", "tile-monitor", "put it into a shell's line")
        words += ["--run", BRACKET, *command, BRACKET, "--wait"]
    return [*words, "--quit"]


def upload(source: str, target: str) -> list[str]:
    """Return the words that copy a file of this node to the board."""
    return ["--upload", source, target, "--quit"]


def passed_on(*command: str) -> list[str]:
    """Return the words that run one command whose output comes back."""
    return ["--", *command]


class TileMonitor:
    """The tile-monitor of this node, used for one board.

    :param path: the program.
    :param ip: the board's address.
    :param name: the board's name, for errors.
    """

    def __init__(self, path: str, ip: str, name: str) -> None:
        self.path = path
        self.ip = ip
        self.name = name

    def fault(self) -> str | None:
        """Return why it cannot be run, or None."""
        if not os.path.isfile(self.path):
            return f"{self.path}: is missing: install Tilera's MDE on {THIS_NODE}, or correct tftp_proxy_tile_monitor"
        if not os.access(self.path, os.X_OK):
            return f"{self.path}: is not executable: chmod +x it, or correct tftp_proxy_tile_monitor"
        return None

    def do(
        self, words: list[str], deadline: Deadline, look: Callable[[int], None] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end; return it as a CompletedProcess, whatever its exit status is.

        :param look: is called with its process id a few times a second.
        :raises TimedOut: the deadline passed. Fact `said` has its output.
        :raises HeteroError: it cannot be run.
        """
        argv = [self.path, "--resume", "--net", self.ip, *words]
        limits = Limits(max(round(deadline.left, 1), 0.1), MOST_OF_OTHERS)
        return ended(argv, self.name, "look at the board's console", limits, look=look)


def said(done: subprocess.CompletedProcess[str]) -> str:
    """Return a command's output, at most its last KEPT characters."""
    return (done.stdout + done.stderr).strip()[-KEPT:]


class TileShell(Shell):
    """Runs commands and copies files on a board by tile-monitor."""

    def __init__(self, monitor: TileMonitor) -> None:
        self._monitor = monitor

    def run(self, argv: list[str], deadline: Deadline, stdin: str | None = None) -> str:
        if stdin is not None:
            # tile-monitor passes no standard input on. So the bytes are copied as a file first, which the command
            # removes.
            file = f"/tmp/hetero-{uuid.uuid4().hex}"
            self.put(stdin, file, deadline)
            argv = ["sh", "-c", f"exec < {file} && rm {file} && exec {_quoted(argv)}"]
        elif BRACKET in argv:
            argv = ["sh", "-c", f"exec {_quoted(argv)}"]
        return self._do(runs(argv), deadline, argv[0])

    def put(self, source: str, target: str, deadline: Deadline, progress: Progress | None = None) -> None:
        size, most = os.path.getsize(source), 0

        def look(pid: int) -> None:
            nonlocal most  # one that has read all closes the file, and goes on for as long as the board writes
            most = max(most, read_so_far(pid, source))
            cast("Progress", progress)(most, size)

        self._do(upload(source, target), deadline, f"--upload {source}", look if progress else None)
        if progress:
            progress(size, size)

    def _do(self, words: list[str], deadline: Deadline, what: str, look: Callable[[int], None] | None = None) -> str:
        done = self._monitor.do(words, deadline, look)
        if done.returncode:
            facts = dict(command=words, said=said(done))
            raise exit_error(what, done.returncode, last_words(done), self._monitor.name, **facts)
        return done.stdout


def read_so_far(pid: int, path: str) -> int:
    """Return how many bytes a process has read of a file that it has open (proc(5), fdinfo), or 0."""
    wanted, folder = os.path.realpath(path), f"/proc/{pid}/fd"
    try:
        for number in os.listdir(folder):
            if os.readlink(f"{folder}/{number}") == wanted:
                with open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii") as file:
                    return int(file.readline().split()[1])
    except OSError:
        return 0  # it ended, or closed the file
    return 0


def _quoted(argv: Iterable[str]) -> str:
    return " ".join(shlex.quote(word) for word in argv)
