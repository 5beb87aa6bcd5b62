# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs of which the driver reported faults, by the Xid lines in the kernel's log since the driver was loaded."""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING

from ...core.command import ended
from ...core.errors import naming

if TYPE_CHECKING:
    from .paths import Folders

#: Faults of the running program and not of the GPU, which NVIDIA's device plugin for Kubernetes ignores too
#: (https://docs.nvidia.com/deploy/xid-errors/).
PROGRAMS_OWN = frozenset((13, 31, 43, 45, 68, 109))
#: "NVRM: Xid (PCI:0000:05:00): 79, …"; drivers before 331 write no "PCI:", and none writes the function.
XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})(?:\.[0-7])?\): (\d+)", re.IGNORECASE)
#: The driver's first line when it is loaded. Earlier faults belong to an earlier load.
LOADED = re.compile(r"NVRM: loading NVIDIA ")
#: More records than a kernel's log buffer holds (64 MiB in records of 64 bytes).
RECORDS = 1 << 20
#: Bytes of the longest record of /dev/kmsg (kernel/printk: PRINTK_MESSAGE_MAX is 2048, in older kernels 8192).
RECORD = 8192


def faults(text: str) -> dict[str, tuple[int, str]]:
    """Return {PCI address without function: (number, line)} of the last Xid that is the GPU's own fault."""
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
    """Return the kernel's log since the machine started, as far as it is kept, or ""."""
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
    """Read one record at a time. EPIPE means that the oldest was overwritten meanwhile; the next read goes on."""
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
    """Return systemd's copy of the log, for containers in which /dev/kmsg is not allowed."""
    if not os.path.isdir(os.path.join(paths.run, "systemd", "system")):
        return ""
    # a line of the kernel has at most 1 KiB (LOG_LINE_MAX), so this stays below the limit for a program's output
    most = ["--lines=50000", "--output=cat", "--no-pager"]
    done = ended(["journalctl", "--quiet", "--dmesg", "--boot", *most], "kernel log")
    return done.stdout if done.returncode == 0 else ""
