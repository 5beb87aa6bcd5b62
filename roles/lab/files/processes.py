# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that the lab runs and waits for, and its background processes."""

from __future__ import annotations

import os
import signal
import subprocess
import time


def run(*argv, check=True):
    done = subprocess.run(
        argv,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    if check and done.returncode:
        raise SystemExit(f"{' '.join(argv)} ended with {done.returncode}: {done.stdout.strip()}")
    return done


class Process:
    """A background process of the lab, remembered by pid and start time so that a reused pid is never taken for it."""

    def __init__(self, lab, name):
        self.file = os.path.join(lab["folder"], "run", name + ".pid")

    @staticmethod
    def _started(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] == "Z" else fields[19]  # proc(5): field 22, starttime

    @property
    def pid(self):
        try:
            with open(self.file, encoding="ascii") as file:
                pid, started = file.read().split()
        except (OSError, ValueError):
            return None
        return int(pid) if self._started(pid) == started else None

    def start(self, argv, log):
        with open(log, "ab") as output:
            child = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        with open(self.file, "w", encoding="ascii") as file:
            file.write(f"{child.pid} {self._started(child.pid)}\n")

    def stop(self):
        pid = self.pid
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            wait(lambda: self.pid is None, 10, f"process {pid} does not end on SIGTERM")
        if os.path.exists(self.file):
            os.unlink(self.file)
        return pid is not None


def wait(condition, seconds, complaint):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"after {seconds} s: {complaint}")
        time.sleep(0.02)
