# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of what a PDU is waited for: within two seconds, each thing once, and nothing for short waits."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import Callable, Iterator

#: Seconds before anything is reported: most waits are over by then, and the reader looks twice a second.
QUIET = 1.5


class Waiting:
    """The waits of one session with a PDU.

    :param name: the PDU's name.
    :param tell: is called with each text, from any thread; None for no reports.
    :param seconds: the longest time that the PDU is waited for.
    """

    def __init__(self, name: str, tell: Callable[[str], None] | None, seconds: float) -> None:
        self._name, self._tell, self._seconds = name, tell, seconds
        self._told: set[str] = set()
        self._since = time.monotonic()

    def begin(self) -> None:
        """Note that from now on something else is waited for."""
        self._since = time.monotonic()

    def say(self, text: str) -> None:
        """Report what is waited for, if the wait is long enough already."""
        if time.monotonic() - self._since >= QUIET:
            self.say_at_once(text)

    def say_at_once(self, text: str) -> None:
        # a text that differs only in its numbers is the same
        kind = "".join(letter for letter in text if not letter.isdigit())
        if self._tell is not None and kind not in self._told:
            self._told.add(kind)
            self._tell(f"{self._name}: {text}")

    @contextmanager
    def long(self, what: str) -> Iterator[None]:
        """Report it if the block takes long."""
        if self._tell is None:
            yield
            return
        text = f"{what} takes longer; it is waited for until {self._seconds:g} s are over"
        timer = threading.Timer(QUIET, self.say_at_once, (text,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
