# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with cgroup v2 alone, for one program: started as `unshare -m python on_v2.py PROGRAM ARGUMENTS…`.

The machine may have both versions: what it mounts is put away in this mount namespace only.
"""

from __future__ import annotations

import os
import subprocess
import sys


def main():
    subprocess.run(["umount", "-lR", "/sys/fs/cgroup"], check=True)
    subprocess.run(["mount", "-t", "cgroup2", "none", "/sys/fs/cgroup"], check=True)
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
