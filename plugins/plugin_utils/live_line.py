# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A line at the bottom of a terminal that is written anew while something lasts, and gives way to each other line."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Any

#: To the begin of the line above, and clear to its end (ECMA-48: CUU, CR, EL).
UP = "\x1b[1A\r\x1b[K"
#: Keep the cursor's place, and go back there (DECSC, DECRC).
KEEP, BACK = "\x1b7", "\x1b8"


class LiveLine:
    """The live line of an Ansible Display, whose other lines are printed in its place.

    The cursor stands below it, so that what another program asks there stays, such as ssh for a passphrase.

    :param display: the process's Display; its method `display` clears the line before it prints.
    :param terminal: the terminal's file descriptor.
    """

    def __init__(self, display: Any, terminal: int = 1) -> None:
        self._terminal = terminal
        self._lock = threading.RLock()
        self._is_there = self._is_held = self._is_over = False
        print_line, process = display.display, os.getpid()

        def above(*args: Any, **kwargs: Any) -> None:
            # a worker, which is forked while anybody may have the lock, has its lines printed by this process
            if os.getpid() != process:
                print_line(*args, **kwargs)
                return
            with self._lock:
                self.clear()
                print_line(*args, **kwargs)

        display.display = above
        atexit.register(self.end)

    @staticmethod
    def is_wanted() -> bool:
        """Return whether standard output is a terminal."""
        return sys.stdout.isatty()

    def write(self, text: str, end: str = "") -> None:
        """Write the line anew: `text`, as much of it as the terminal is wide, and `end`."""
        with self._lock:
            if not (self._is_over or self._is_held):
                space = self._width() - 1
                shown = f"{text[: max(space - len(end), 0)]}{end}"[:space]
                self._put(f"{KEEP}{UP}{shown}{BACK}" if self._is_there else f"{shown}\n")
                self._is_there = True

    def clear(self) -> None:
        """Take the line away, if it is there."""
        with self._lock:
            if self._is_there:
                self._put(UP)
                self._is_there = False

    def hold(self) -> None:
        """Take the line away, and write none until `go_on`: a person is asked for something."""
        with self._lock:
            self.clear()
            self._is_held = True

    def go_on(self) -> None:
        """Let lines be written again."""
        self._is_held = False

    def end(self) -> None:
        """Take the line away for good."""
        with self._lock:
            self.clear()
            self._is_over = True

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._terminal).columns or 80
        except OSError:
            return 80

    def _put(self, text: str) -> None:
        try:
            os.write(self._terminal, text.encode(errors="replace"))
        except OSError:
            self._is_over = True  # the terminal is gone
