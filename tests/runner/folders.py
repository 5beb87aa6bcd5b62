# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders that tests have written to."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path


def remove(folder):
    """Remove one; unmount first what tests mounted there, for it may be anything of the machine."""
    for line in reversed(Path("/proc/self/mountinfo").read_bytes().splitlines()):
        # as proc_pid_mountinfo(5) has it, a space is \040
        point = os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), line.split()[4]))
        if point.startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", point], check=True)
    shutil.rmtree(folder, ignore_errors=True)
