# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a stage left behind on the machine: namespaces, mounts, processes."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from runner.places import ROOT
from runner.watched import reap_ended


def traces():
    """Namespaces without a process, mounts in this folder and own descendants that are there now, for a person to read.

    A namespace in which a process lives, or that is named for one which does, is another run's, or that process is ours
    and is found itself.
    """
    reap_ended()
    found = set()
    used = {number for number in map(inode, Path("/proc").glob("[0-9]*/ns/net")) if number}
    for path in Path("/run/netns").glob("*"):
        maker = path.name.rpartition("-")[2]  # a test's own is named for its process
        if inode(path) not in used and not (maker.isdigit() and Path(f"/proc/{maker}").exists()):
            found.add(f"namespace {path.name}")
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if line.split()[4].startswith(f"{ROOT}/"):
            found.add(f"mount {line.split()[4]}")
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            # ssh's shared connections end by themselves (ControlPersist)
            if not re.match(r"ssh: .*\[mux\]", command):
                found.add(f"process {pid} {command[:100]}")
    return found


def inode(path):
    """None for a process that ended meanwhile."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return path.stat().st_ino
