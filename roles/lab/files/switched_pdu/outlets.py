# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One outlet of the lab's PDU and the board on it, a child process that lives exactly as long as its power.

It keeps the board's console in a log with the time of each line; which outlet is to be switched is decided elsewhere.
"""

from __future__ import annotations

import ctypes
import datetime
import os
import signal
import subprocess
from contextlib import suppress

from .resets import Resets
from .serial_lines import SerialLine

PR_SET_PDEATHSIG = 1  # linux/prctl.h
LIBC = ctypes.CDLL(None)


class Outlet:
    """One outlet and the board on it: `argv` is started with the power and killed with it, without a warning.

    :param place: address and network interface of the lab's terminal server, at whose port `line` of the settings the
        board's serial line is.
    """

    def __init__(self, number, settings, loop, place=("127.0.0.1", None)):
        self.number = number
        self.name = settings.get("name", f"Outlet {number}")
        self.argv = settings.get("argv")
        self.console = settings.get("console")
        self.state = "off"
        self.board = None
        self._loop = loop
        self._line = b""
        self._resets = None
        port = settings.get("line")
        self.line = SerialLine((place[0], port), place[1], self._typed) if port else None

    def log(self, text):
        if self.console:
            stamp = datetime.datetime.now().astimezone().isoformat(timespec="milliseconds")
            with open(self.console, "a", encoding="utf-8") as file:
                file.write(f"{stamp} {text}\n")

    def on(self):
        if self.state == "on":
            return
        self.state = "on"
        if self.console:
            os.makedirs(os.path.dirname(os.path.abspath(self.console)), exist_ok=True)
        self.log("--- power on ---")
        if self.argv:
            self._start()

    def _start(self):
        parent = os.getpid()
        self._resets = Resets(self.argv)

        def die_with_the_pdu():
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

        try:
            self.board = subprocess.Popen(
                self._resets.argv,
                pass_fds=self._resets.descriptors,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_the_pdu,
            )
        except (OSError, subprocess.SubprocessError) as error:
            self.log(f"--- does not start: {error} ---")
            self._resets.close()
            return
        self._resets.listen(self._loop)
        os.set_blocking(self.board.stdout.fileno(), False)
        os.set_blocking(self.board.stdin.fileno(), False)
        self._loop.add_reader(self.board.stdout.fileno(), self._pump)

    def _typed(self, data):
        """Type on the board. What it does not read, or has no power for, is lost."""
        if self.board:
            with suppress(BlockingIOError, BrokenPipeError):
                os.write(self.board.stdin.fileno(), data)

    def off(self):
        if self.state == "off":
            return
        self.state = "off"
        if self.board:
            if self.board.poll() is None:
                os.killpg(self.board.pid, signal.SIGKILL)
                self.board.wait()
            self._forget()
        self.log("--- power off ---")

    def look(self):
        """Reap a board that ended by itself; its outlet stays on, as a crashed machine's would. One that resets itself
        goes on as a new process.
        """
        if self.board and self.board.poll() is not None:
            code, is_reset = self.board.returncode, self._resets.seen()
            self._forget()
            if is_reset:
                self._start()
                return True
            self.log(f"--- board ended by itself ({code}), power is still on ---")
            return True
        return False

    def _forget(self):
        self._pump()
        self._loop.remove_reader(self.board.stdout.fileno())
        if self._line:
            self.log(self._line.decode("utf-8", "replace"))
        self._line = b""
        self._resets.close()
        self.board.stdin.close()
        self.board.stdout.close()
        self.board = None

    def _pump(self):
        while True:
            data = self.board.stdout.read(65536)
            if data == b"":
                self._loop.remove_reader(self.board.stdout.fileno())
            if not data:
                return
            if self.line:
                self.line.say(data)
            *lines, self._line = (self._line + data).split(b"\n")
            for line in lines:
                self.log(line.rstrip(b"\r").decode("utf-8", "replace"))
