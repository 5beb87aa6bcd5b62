# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module in a process of its own that is killed (SIGKILL) before its n-th write.

The writes are found by the interpreter's own audit events, SQLite's trace and a few wrapped calls, in all threads and
in the children that the module forks: opening a file to write, the moment after that, fsync, rename, unlink, mkdir,
mount, each writing statement and commit, each program started. Which states must come out is for the test.
"""

from __future__ import annotations

import builtins
import ctypes
import fcntl
import importlib
import json
import mmap
import os
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError

MODULES = "ansible_collections.hetero.compute.plugins.modules."
#: Audit events (docs.python.org, "Audit events table") of calls that change something outside the process.
EVENTS = {
    f"os.{name}"
    for name in ("rename", "remove", "mkdir", "rmdir", "link", "symlink", "chmod", "chown", "truncate", "utime")
}
STATEMENTS = ("INSERT", "UPDATE", "DELETE", "CREATE", "COMMIT", "BEGIN IMMEDIATE", "PRAGMA journal", "PRAGMA user")
TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
#: Longest that one module may take here, with its patience for a board that does not answer (6 s).
LIMIT = 600.0


class Points:
    """Write points counted over a play's processes, and the one before which the process is killed (0: none)."""

    def __init__(self):
        self._memory = mmap.mmap(-1, 4096)
        self.reset(0)

    def reset(self, kill_at):
        self._memory[:] = bytes(4096)
        self._kill_at = kill_at

    @property
    def count(self):
        return struct.unpack("q", self._memory[:8])[0]

    @property
    def killed(self):
        """What was about to be done when the process was killed, "" where it was not."""
        return self._memory[8:].rstrip(b"\0").decode("utf-8", "replace")

    def arm(self):
        """From now on this process and its children count, and one of them kills the process at the point."""
        self._process = os.getpid()
        self._turn = threading.RLock()
        self._armed = True
        real_open, real_sync, real_write = builtins.open, os.fsync, os.pwrite
        real_start, real_connect = subprocess.Popen.__init__, sqlite3.connect

        def opened(path, mode="r", *args, **kwargs):
            file = real_open(path, mode, *args, **kwargs)
            if isinstance(path, (str, bytes, os.PathLike)) and set(mode) & set("wax+"):
                self._point(f"the first write to {path}")
            return file

        def synced(file):
            self._point("fsync")
            return real_sync(file)

        def written(*args):
            self._point("pwrite")
            return real_write(*args)

        def started(process, argv, *args, **kwargs):
            real_start(process, argv, *args, **kwargs)
            self._point(f"the end of {argv[0]}")

        def connected(*args, **kwargs):
            db = real_connect(*args, **kwargs)
            db.set_trace_callback(self._statement)
            return db

        builtins.open, os.fsync, os.pwrite, sqlite3.connect = opened, synced, written, connected
        subprocess.Popen.__init__ = started
        sys.addaudithook(self._audit)

    def disarm(self):
        self._armed = False

    def _audit(self, event, args):
        if event == "open":
            path, _mode, flags = args
            if isinstance(path, (str, bytes)) and flags & TO_WRITE and path not in ("/dev/null", b"/dev/null"):
                self._point(f"open {path}")
        elif event in EVENTS:
            self._point(f"{event} {args[0]}")
        elif event == "subprocess.Popen":
            self._point(f"start {' '.join(map(str, args[1]))}")
        elif event == "ctypes.dlsym" and args[1] in ("mount", "umount2"):
            self._point(args[1])

    def _statement(self, sql):
        if sql.startswith(STATEMENTS):
            self._point(sql[:60])

    def _point(self, what):
        with self._turn:
            if not self._armed:
                return
            number = self.count + 1
            self._memory[:8] = struct.pack("q", number)
            if number == self._kill_at:
                text = what.encode("utf-8", "replace")[:4000]
                self._memory[8 : 8 + len(text)] = text
                self.strike()

    def strike(self):
        """What happens at the point."""
        os.kill(self._process, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def run(points, name, **given):
    """Run a module in a process of its own; its result, or None where it was killed."""
    module = importlib.import_module(MODULES + name)
    params = {option: spec.get("default") for option, spec in module.SPEC.options.items()}
    check = given.pop("check", False)
    params.update(given)
    return run_alone(points, lambda: module.work(params, check))


def run_alone(points, work):
    """What `work()` returns in a process of its own, or None where it was killed.

    An error that is not HeteroError is `broken` in the result, with its traceback. What the process has started is
    waited for: a rerun by hand comes later than that.
    """
    before = _children()
    _adopt(True)
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            os.close(reader)
            points.arm()
            result = _outcome(work)
            points.disarm()
            os.write(writer, json.dumps(result, default=str).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as answer:
        text = answer.read()
    try:
        _reap(before)
    finally:
        # other tests leave processes that are to be nobody's, such as a container's monitor
        _adopt(False)
    return json.loads(text) if text else None


def _outcome(work):
    try:
        return work()
    except HeteroError as error:
        return {"failed": True, "msg": str(error)}
    except BaseException:
        return {"failed": True, "broken": True, "msg": traceback.format_exc()}


def _adopt(orphans):
    """Whether processes whose parent ended become ours."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(orphans), 0, 0, 0)


def _children():
    """Process ids of our children."""
    return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))


def _reap(before):
    """Wait for all that the module left; `before` are children that are not the module's."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        left = _children() - before
        if not left:
            return
        for pid in left:
            os.waitpid(pid, os.WNOHANG)
        time.sleep(0.002)
    raise AssertionError(f"a process that the module left runs on after {LIMIT:g} s")


def is_free(path):
    """Whether nobody holds the lock file."""
    file = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(file)
    return True
