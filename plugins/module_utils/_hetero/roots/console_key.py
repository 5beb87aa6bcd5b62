# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host key that a RAM system made for one boot, read from the log of its board's console.

A console is wired to its board alone, so a key that is printed there is the board's, whatever other machines are on the
boards' network. The proxy puts a random word, new for each boot, into what the board boots, and the board prints it
beside its key, so that a key of an earlier boot is not taken for the present one.
"""

from __future__ import annotations

import os
import re
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

    from ..core.deadline import Deadline

#: What may stand before the line: the time, which many programs put into a console's log. Nothing else, for what others
#: make the board log (their names at its ssh server) comes behind words of its own.
TIME = r"(?:\[[^\]\n]*\])?(?: ?[A-Z][a-z]{2} )*[0-9TZ:.,+/ -]*"
#: An ed25519 key in OpenSSH's form: 51 bytes, base64 (RFC 8709).
KEY = r"(ssh-ed25519 [A-Za-z0-9+/]{68})"
#: How often a key must be read before it is believed: a character that a serial line garbled would make another key.
TIMES = 2
#: Bytes of a log that are looked at after the boot began; firmware and a kernel say some ten thousand.
MOST = 1 << 20
NAP = 0.05


class ConsoleKey:
    """A key that the board has yet to print.

    :param log: the file that the console is written to. What is in it now is from before.
    """

    def __init__(self, log: str) -> None:
        self.log = log
        self.word = secrets.token_hex(16)
        self.host_key: str | None = None
        self._start = os.path.getsize(log) if os.path.exists(log) else 0

    def wait(self, deadline: Deadline, cancelled: threading.Event | None = None) -> str | None:
        """Return the key; None where it was not said before the deadline, or the wait was cancelled.

        :param cancelled: ends the wait once it is set.
        """
        while self.host_key is None and not deadline.passed and not (cancelled is not None and cancelled.is_set()):
            said = re.findall(rf"(?m)^{TIME}hetero-ram-key {self.word} {KEY}\s", self._text())
            self.host_key = next((key for key in said if said.count(key) >= TIMES), None)
            if self.host_key is None:
                deadline.nap(NAP)
        return self.host_key

    def _text(self) -> str:
        try:
            with open(self.log, "rb") as file:
                end = file.seek(0, os.SEEK_END)
                # A log that is shorter than it was has been rotated: then all of it is new.
                file.seek(max(self._start if self._start <= end else 0, end - MOST))
                return file.read(MOST).decode("ascii", "replace")
        except FileNotFoundError:
            return ""
