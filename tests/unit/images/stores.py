# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Image stores of many tests that begin with the same images: filled once in a process, and copied for each test."""

from __future__ import annotations

import os
import subprocess
import tempfile

#: {what is in it: a folder with a store `images`}; they go with the process.
_FILLED = {}


def filled(folder, what, fill):
    """Have an image store in `folder`: `fill()` puts one there, and the next that is to hold `what` is a copy of it.

    To take an image in, read it back and have it on the disk takes ten times as long.
    """
    if what not in _FILLED:
        fill()
        _FILLED[what] = tempfile.TemporaryDirectory(prefix="hetero-images-")
        copy(folder, f"{_FILLED[what].name}/images")
    else:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        copy(f"{_FILLED[what].name}/images", folder)


def copy(store, folder):
    """Copy a store to where no folder is yet; holes in its file systems stay holes."""
    subprocess.run(["cp", "--archive", "--no-target-directory", store, folder], check=True)
