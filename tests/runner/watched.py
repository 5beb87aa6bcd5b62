# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`watched.py FILE_DESCRIPTOR NICE TOOL...` runs a tool, and writes how it ended to the file descriptor, as JSON.

`code` is subprocess's returncode; `seconds` are the processor's, of the tool and of all that it started and that has
ended: what outlives its parent becomes this program's child, such as a lab's machines and containers.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def adopt():
    """What a descendant leaves running becomes this process's child."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def yield_to_others(behind):
    """Run with a nice(2) of `behind` against the other stages."""
    # between sessions Linux weighs the groups that it makes of each of them (sched(7)), where it does
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, behind)
        Path("/proc/self/autogroup").write_text(str(behind))


def reap_ended():
    """Children that have ended are waited for, and so counted."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main(told, behind, argv):
    adopt()
    if behind:
        yield_to_others(behind)
    # Ctrl-C is for the tool, which ends what it began, and is waited for; a program that is started has no handler
    signal.signal(signal.SIGINT, lambda *_: None)
    process = subprocess.Popen(argv)
    ended = status = None
    while ended != process.pid:
        ended, status = os.wait()
    reap_ended()
    times = os.times()
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    os.write(told, json.dumps({"code": code, "seconds": times.children_user + times.children_system}).encode())


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
