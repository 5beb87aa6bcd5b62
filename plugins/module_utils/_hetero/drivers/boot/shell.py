# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface for acting on a board that runs a system of the proxy's own: run a command, copy a file there.

A board's boot driver knows the way to it (`BootDriver.shell`), and boards/ what is run there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Callable

from ...core.errors import HeteroError

if TYPE_CHECKING:
    from ...core.deadline import Deadline

#: Exit status of a shell that finds no such program (POSIX, Shell Command Language, 2.8.2).
NOT_FOUND = 127

#: Is called with (bytes so far, bytes in all).
Progress = Callable[[int, int], None]


class NoProgram(HeteroError):
    """The system that the board runs lacks a program: its image is at fault, and neither the board nor its disk."""


def exit_error(what: str, code: int, last: str, name: str, **facts: Any) -> HeteroError:
    """Return the error of a command that ended on a board with another exit status than 0.

    :param what: the command, as errors name it.
    :param last: its last words.
    :param name: the board's.
    """
    text = f"{what} ended with {code} and said: {last}"
    if code == NOT_FOUND:
        return NoProgram(text, name, "name an image that has this program in tftp_proxy_ram_images", **facts)
    return HeteroError(text, name, "look at its console", **facts)


class Shell(ABC):
    """Runs commands on one board. Each has a deadline, and its exit status is checked."""

    @abstractmethod
    def run(self, argv: list[str], deadline: Deadline, stdin: str | None = None) -> str:
        """Run a command on the board until it ends; return its standard output as text.

        :param argv: the command's words; they are quoted for the board's shell.
        :param stdin: path of a file on the proxy that the command reads; None for none.
        :raises NoProgram: the board has no such program.
        :raises HeteroError: it could not be started, did not end with 0 (its output is in the text), or did not end
            before the deadline.
        """

    @abstractmethod
    def put(self, source: str, target: str, deadline: Deadline, progress: Progress | None = None) -> None:
        """Copy a file of the proxy to a path on the board.

        :param progress: is called with (bytes so far, bytes in all) at least twice a second while bytes move.
        :raises HeteroError: as of `run`.
        """
