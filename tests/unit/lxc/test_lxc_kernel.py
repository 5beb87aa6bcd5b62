# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths kept inside a root, on the kernel of this machine."""

from __future__ import annotations

import os
import subprocess
import sys

from ansible_collections.hetero.compute.plugins.module_utils.lxc import kernel

RENAMING = """
import os, sys
while True:
    os.rename(sys.argv[1], sys.argv[1] + ".new")
    os.rename(sys.argv[1] + ".new", sys.argv[1])
"""


def test_renames_elsewhere_on_the_machine(tmp_path):
    """A container whose /dev holds a link with ".." would be refused its GPUs on a host that is busy otherwise."""
    (tmp_path / "root" / "dev").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    names = ["one", "two"]
    for name in names:
        (tmp_path / "elsewhere" / name).touch()
    argv = [sys.executable, "-c", RENAMING]
    busy = [subprocess.Popen([*argv, name], cwd=tmp_path / "elsewhere") for name in names]
    root = os.open(tmp_path / "root", os.O_PATH)
    try:
        for _attempt in range(3000):
            os.close(kernel.open_in_root(root, "dev/../" * 500 + "dev", os.O_PATH))
    finally:
        os.close(root)
        for process in busy:
            process.kill()
            process.wait(10)
