# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that are traced while tests run. If these fail, stage mutants hangs for ten minutes, once in a few runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
TRACED = """
import sys, threading, time
from mutants.recording import PatientSys

threading._sys = PatientSys()
sys.addaudithook(lambda event, _arguments: time.sleep(0.05) if event == "sys.settrace" else None)
threading.settrace(lambda *_: None)
ran = []
threads = [threading.Thread(target=ran.append, args=(number,)) for number in range(4)]
# a thread that ends before it begins is never told as started: all are begun side by side, and not waited for
for thread in threads:
    threading.Thread(target=thread.start, daemon=True).start()
end = time.monotonic() + 60
while len(ran) < len(threads) and time.monotonic() < end:
    time.sleep(0.01)
print(sorted(ran))
"""


def test_a_thread_begins_while_another_one_begins_to_be_traced():
    done = subprocess.run(
        [sys.executable, "-c", TRACED],
        env=dict(os.environ, PYTHONPATH=str(TESTS)),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (done.returncode, done.stdout) == (0, "[0, 1, 2, 3]\n"), done.stderr
