# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders that tests have written to."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def remove(folder):
    """Remove one; unmount first what tests mounted there, for it may be anything of the machine."""
    for line in reversed(Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()):
        if line.split()[4].startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", line.split()[4]], check=True)
    shutil.rmtree(folder, ignore_errors=True)
