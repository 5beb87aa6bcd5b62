# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a PDU is waited for, told while it is: within two seconds, each thing once, and nothing where nobody waits."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import Callable, Iterator

#: How long nothing is told (seconds): most waits are over before, and whoever follows looks twice a second.
QUIET = 1.5


class Waiting:
    """The waits of one session with a PDU.

    :param name: the PDU's.
    :param tell: called with each text, from any thread; None where nobody wants to know.
    :param seconds: how long it is waited for at most.
    """

    def __init__(self, name: str, tell: Callable[[str], None] | None, seconds: float) -> None:
        self._name, self._tell, self._seconds = name, tell, seconds
        self._told: set[str] = set()
        self._since = time.monotonic()

    def begin(self) -> None:
        """Something else is waited for from now on."""
        self._since = time.monotonic()

    def say(self, text: str) -> None:
        """What is waited for, where that is long enough already."""
        if time.monotonic() - self._since >= QUIET:
            self.say_at_once(text)

    def say_at_once(self, text: str) -> None:
        # one that differs by its seconds only is the same
        kind = "".join(letter for letter in text if not letter.isdigit())
        if self._tell is not None and kind not in self._told:
            self._told.add(kind)
            self._tell(f"{self._name}: {text}")

    @contextmanager
    def long(self, what: str) -> Iterator[None]:
        """Say so where the block takes long."""
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
