# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stage's tools: run with a time limit, their output in the stage's log, their seconds of the processor counted."""

from __future__ import annotations

import collections
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

from runner.places import ROOT, environment

#: {process id of a tool that runs now: its log}.
RUNNING = {}
#: Held while a tool begins: who ends those that run misses none whose process is not written down yet.
BEGINS = threading.Lock()
#: Seconds of the processor that tools have taken, by the path of the log that they wrote.
SPENT = collections.Counter()
WATCHED = Path(__file__).with_name("watched.py")


class StageFailed(Exception):
    """The reason, in one clause."""


def tool(log, argv, limit=1800, cwd=ROOT, env=None, behind=0):
    """Run `argv`, its output in `log`; return its output. StageFailed when it fails or runs longer than `limit` s.

    :param behind: nice(2) against the other stages.
    """
    print(f"$ {' '.join(map(str, argv))}", file=log, flush=True)
    start = log.tell()
    told, telling = os.pipe()
    with BEGINS:
        process = subprocess.Popen(
            [sys.executable, "-I", WATCHED, str(telling), str(behind), *argv],
            cwd=cwd,
            env=env or environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=[telling],
        )
        RUNNING[process.pid] = log.name
    os.close(telling)
    with process, open(told, "rb") as end:
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)
            raise StageFailed(f"{Path(argv[0]).name} ran longer than {limit} s") from error
        finally:
            RUNNING.pop(process.pid, None)
        # nothing where who watches it was killed
        said = json.loads(end.read() or b"{}")
    SPENT[log.name] += said.get("seconds", 0)
    code = said.get("code", code)
    with open(log.name, encoding="utf-8", errors="replace") as written:
        written.seek(start)
        output = written.read()
    log.seek(0, os.SEEK_END)
    if code != 0:
        raise StageFailed(f"{Path(argv[0]).name} ended with {code}")
    return output


def counted(pattern, output, what):
    """The sum of the numbers `pattern` finds; none at all means that the tool tested nothing."""
    number = sum(map(int, re.findall(pattern, output, re.MULTILINE)))
    if number == 0:
        raise StageFailed(f"no {what}: the tool tested nothing")
    return number
