# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each test took of the processor, as a stage's log has it (tests/processor.py)."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

PLUGIN = "ansible_collections.hetero.compute.tests.processor"
TESTS = """
import subprocess, sys, time

BUSY = "import time\\nwhile time.process_time() < 0.5: pass"

def test_waits(): time.sleep(0.6)
def test_starts_a_busy_process(): subprocess.run([sys.executable, "-c", BUSY], check=True)
"""


@pytest.mark.parametrize("workers", [[], ["--numprocesses=1"]], ids=["alone", "workers"])
def test_what_waits_costs_nothing_and_what_is_started_counts(tmp_path, workers):
    """Lost: where the time of a run goes, to whoever makes it shorter: beside others the clock tells who waited."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "busy").mkdir()
    (tmp_path / "busy" / "test_some.py").write_text(TESTS)
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", PLUGIN, *workers, "busy"]
    env = dict(os.environ, PYTEST_ADDOPTS="")
    said = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600, check=True).stdout
    lines = re.findall(r"^ +([0-9.]+) (\S+)$", said, re.MULTILINE)
    told = {name.rpartition("::")[2]: float(seconds) for seconds, name in lines}
    assert told["test_starts_a_busy_process"] >= 0.45
    assert told.get("test_waits", 0.0) < 0.4
    assert "seconds of the processor: folders" in said
