# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If this fails, one mutant that freezes what it started holds the whole run of mutants for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

FREEZER = Path("/sys/fs/cgroup/freezer")
#: A child of its own in a frozen cgroup below another frozen one; then all of the question is ended.
FROZEN = """
import pathlib, subprocess, sys
from mutants import asking

place = pathlib.Path(sys.argv[1])
child = subprocess.Popen(["sleep", "1000"])
(place / "a" / "cgroup.procs").write_text(str(child.pid))
for folder in (place / "a", place):
    (folder / "freezer.state").write_text("FROZEN")
asking.end_all()
print("ended")
"""


@pytest.mark.skipif(os.geteuid() != 0 or not FREEZER.is_dir(), reason="needs root and cgroups of version 1")
def test_what_is_frozen_is_ended_too():
    place = FREEZER / f"hetero-test-asking-{os.getpid()}"
    (place / "a").mkdir(parents=True)
    try:
        argv = [sys.executable, "-c", FROZEN, place]
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=600, check=False)
        assert done.stdout.endswith("ended\n"), done.stderr
    finally:
        for folder in (place, place / "a"):
            (folder / "freezer.state").write_text("THAWED")
        for pid in (place / "a" / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        for folder in (place / "a", place):
            folder.rmdir()
