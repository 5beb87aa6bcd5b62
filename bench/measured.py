# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a command takes: `measured.py FILE COMMAND…`, output in FILE, prints seconds, processor seconds and peak memory.

A process of its own, and a small one: Linux counts as a child's peak what its parent had in memory when it started it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

MEGABYTE = 1024  # ru_maxrss is in kB
LIMIT = 300  # seconds for one command


def run(command, output, **more):
    """{"seconds", "processor_seconds", "peak_mb"} of a command, measured by this file in a process of its own."""
    whole = [sys.executable, "-S", __file__, str(output), *command]
    done = subprocess.run(whole, stdout=subprocess.PIPE, check=True, text=True, timeout=LIMIT, **more)
    return json.loads(done.stdout)


def main():
    output, *command = sys.argv[1:]
    start = time.perf_counter()
    with open(output, "wb") as file:
        subprocess.run(command, stdout=file, check=True)
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = used.ru_utime + used.ru_stime
    print(json.dumps({"seconds": seconds, "processor_seconds": processor, "peak_mb": used.ru_maxrss / MEGABYTE}))


if __name__ == "__main__":
    main()
