# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs that the driver reported faults of: Xid lines of the kernel's log, since the driver was loaded."""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING

from ...core.command import ended
from ...core.errors import naming

if TYPE_CHECKING:
    from .paths import Folders

#: Faults of the program that ran, not of the GPU: those that NVIDIA's device plugin for Kubernetes leaves out too
#: (facts: Xid 13, 31, 43, 45, 68, 109; https://docs.nvidia.com/deploy/xid-errors/).
PROGRAMS_OWN = frozenset((13, 31, 43, 45, 68, 109))
#: "NVRM: Xid (PCI:0000:05:00): 79, …"; drivers before 331 write no "PCI:", and none writes the function.
XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})(?:\.[0-7])?\): (\d+)", re.IGNORECASE)
#: What the driver says when it is loaded: earlier faults were of a driver that is gone.
LOADED = re.compile(r"NVRM: loading NVIDIA ")
#: More records than any kernel's log buffer holds (64 MiB in records of 64 bytes).
RECORDS = 1 << 20
#: The longest record of /dev/kmsg (kernel/printk: PRINTK_MESSAGE_MAX is 2048, older kernels 8192).
RECORD = 8192


def faults(text: str) -> dict[str, tuple[int, str]]:
    """PCI address without the function → (number, line) of the last Xid that is the GPU's own."""
    found = {}
    for line in text.splitlines():
        if LOADED.search(line):
            found.clear()
            continue
        match = XID.search(line)
        if match and int(match[2]) not in PROGRAMS_OWN:
            found[match[1].lower()] = (int(match[2]), line[match.start() :].strip())
    return found


def kernel_log(paths: Folders) -> str:
    """The kernel's log since the start of this machine, as far as somebody still has it; "" where nobody has."""
    path = os.path.join(paths.dev, "kmsg")
    with naming(path):
        try:
            file = os.open(path, os.O_NONBLOCK)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EPERM, errno.EACCES, errno.ENXIO):
                raise
            return _journal(paths)
    try:
        with naming(path):
            return _records(file)
    finally:
        os.close(file)


def _records(file: int) -> str:
    """One record a read; EPIPE says that the oldest was overwritten meanwhile, and the next read goes on."""
    parts = []
    for _record in range(RECORDS):
        try:
            part = os.read(file, RECORD)
        except BlockingIOError:
            break
        except BrokenPipeError:
            continue
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode("utf-8", "replace")


def _journal(paths: Folders) -> str:
    """systemd's copy, where /dev/kmsg is not for us (as in some containers)."""
    if not os.path.isdir(os.path.join(paths.run, "systemd", "system")):
        return ""
    # a line of the kernel's has 1 KiB at most (LOG_LINE_MAX), so this is below what is kept of a program
    most = ["--lines=50000", "--output=cat", "--no-pager"]
    done = ended(["journalctl", "--quiet", "--dmesg", "--boot", *most], "kernel log")
    return done.stdout if done.returncode == 0 else ""
