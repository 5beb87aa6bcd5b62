# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A PDU for tests: the lab's emulator as a process of its own, on a port of the loopback that is free.

Its outlets feed real child processes, so that a test sees power in the process table and not in a variable.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline

EMULATOR = Path(__file__).resolve().parents[4] / "roles" / "lab" / "files" / "pdu.py"
PASSWORD = "xyzzy-1957"


class EmulatedPdu:
    """One emulator process, its configuration, and what the process table says of its outlets."""

    def __init__(self, folder, **settings):
        self.name = settings.pop("name", "pdu-t")
        self.folder = folder
        self.config = folder / "lab.json"
        defaults = {"address": "127.0.0.1", "port": 0, "username": "apc", "password": PASSWORD, "outlet_count": 8}
        self._pdu = {**defaults, **settings}
        self._write()
        argv = [sys.executable, str(EMULATOR), str(self.config), self.name]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            if not ready.select(60):
                self.stop()
                raise AssertionError("the emulator did not start within 60 s")
        line = self.process.stdout.readline()
        assert "listens on" in line, line + self.process.stdout.read()
        self.port = int(line.split()[-1])

    def _write(self):
        self.config.write_text(json.dumps({"pdus": {self.name: self._pdu}, "run": str(self.folder / "run")}))

    def change(self, **settings):
        """Other settings from its next session on."""
        self._pdu.update(settings)
        self._write()
        self.process.send_signal(signal.SIGHUP)

    @property
    def settings(self):
        return {"driver": "apc", "host": "127.0.0.1", "port": self.port, "transport": "telnet"}

    @property
    def secrets(self):
        return {"username": "apc", "password": PASSWORD}

    @property
    def outlets(self):
        """{outlet: {"state", "pid"}} as the status file has it."""
        return self._status["outlets"]

    @property
    def screens(self):
        """How many screens it has drawn up to the end of the last session."""
        return self._status["screens"]

    @property
    def logins(self):
        """How many sessions it has let in."""
        return self._status["logins"]

    @property
    def logouts(self):
        """How many sessions their users ended as they should, rather than by hanging up."""
        return self._status["logouts"]

    @property
    def bad_logins(self):
        """How many in a row, up to the end of the last session; it locks itself at three."""
        return self._status["bad_logins"]

    @property
    def _status(self):
        return json.loads((self.folder / "run" / f"{self.name}.json").read_text())

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()


def alive(pid):
    """A process that runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(true, seconds=60.0):
    """Wait until `true()` is; False where it never became."""
    deadline = Deadline(seconds)
    while not true():
        if deadline.passed:
            return False
        time.sleep(0.01)
    return True


def boards(folder, *outlets):
    """Outlets with boards: real processes that print a line and stay."""
    argv = ["sh", "-c", "echo power good; exec sleep 600"]
    return {
        outlet: {"name": f"board{outlet}", "argv": argv, "console": os.path.join(folder, f"{outlet}.log")}
        for outlet in outlets
    }
