# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface of a way to act on a board that runs a system of the proxy's own: run a command, put a file there.

Which way a board has is its boot driver's to say (`BootDriver.shell`); what is run there is for boards/.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from ...core.deadline import Deadline

#: What is called with (bytes so far, bytes in all).
Progress = Callable[[int, int], None]


class Shell(ABC):
    """Commands on one board, each with its exit status checked and a deadline of its own."""

    @abstractmethod
    def run(self, argv: list[str], deadline: Deadline, stdin: str | None = None) -> str:
        """Run a command on the board until it ends; its standard output as text.

        :param argv: the command's words; the board's shell sees them quoted.
        :param stdin: a path on the proxy whose bytes the command reads; None for nothing.
        :raises HeteroError: it could not be started, ended with another status than 0 (with what it said), or did not
            end before the deadline.
        """

    @abstractmethod
    def put(self, source: str, target: str, deadline: Deadline, progress: Progress | None = None) -> None:
        """Copy a file of the proxy to a path on the board.

        :param progress: called with (bytes so far, bytes in all), at least twice a second while bytes move.
        :raises HeteroError: as for `run`.
        """
