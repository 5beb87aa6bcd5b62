# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface for acting on a board that runs a system of the proxy's own: run a command, copy a file there.

A board's boot driver knows the way to it (`BootDriver.shell`), and boards/ what is run there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from ...core.deadline import Deadline

#: Is called with (bytes so far, bytes in all).
Progress = Callable[[int, int], None]


class Shell(ABC):
    """Runs commands on one board. Each has a deadline, and its exit status is checked."""

    @abstractmethod
    def run(self, argv: list[str], deadline: Deadline, stdin: str | None = None) -> str:
        """Run a command on the board until it ends; return its standard output as text.

        :param argv: the command's words; they are quoted for the board's shell.
        :param stdin: path of a file on the proxy that the command reads; None for none.
        :raises HeteroError: it could not be started, did not end with 0 (its output is in the text), or did not end
            before the deadline.
        """

    @abstractmethod
    def put(self, source: str, target: str, deadline: Deadline, progress: Progress | None = None) -> None:
        """Copy a file of the proxy to a path on the board.

        :param progress: is called with (bytes so far, bytes in all) at least twice a second while bytes move.
        :raises HeteroError: as of `run`.
        """
