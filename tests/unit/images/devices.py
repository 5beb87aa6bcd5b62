# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files are block devices just now, as the kernel says it of the whole machine, and file systems that break."""

from __future__ import annotations

import contextlib
import glob
import os
import subprocess
from pathlib import Path


def devices_of(folder):
    """Files below a folder that are block devices."""
    files = []
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # somebody else's, which is gone meanwhile
            files.append(Path(path).read_text().strip())
    return sorted(file for file in files if file.startswith(f"{folder}/"))


def break_file_system(file):
    """Have the kernel find an error in the mounted file system of a file; it writes to it no more."""
    found = subprocess.run(["losetup", "-j", str(file), "-O", "NAME", "-n"], capture_output=True, text=True, check=True)
    name = os.path.basename(found.stdout.strip())
    with open(f"/sys/fs/ext4/{name}/trigger_fs_error", "w", encoding="ascii") as trigger:
        trigger.write("by a test\n")
