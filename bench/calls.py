# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a play costs where its node has the copy of the collection, and where each module is sent with all it imports.

`bench/calls.py`, from the repository's root, on a lab that is up: status by turns, both ways, over ssh. Processor
seconds are the controller's.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time

from goals import record, say, turns
from measured import run

FOLDER, ASIDE = "/usr/lib/hetero", "/usr/lib/hetero-aside"
TIMES = turns(5)


def move(old, new):
    words = ["ansible", "proxies", "--module-name", "ansible.builtin.command", "--args", f"mv {old} {new}"]
    subprocess.run([f".venv/bin/{words[0]}", *words[1:]], check=True, stdout=subprocess.DEVNULL, timeout=120)


def status(output):
    return run([".venv/bin/ansible-playbook", "hetero.compute.status"], output)


def plain():
    """Seconds of a login to the same node that does nothing: no play is faster."""
    began = time.perf_counter()
    subprocess.run(["ssh", "-F", ".lab/ssh/proxy1", "proxy1", "true"], check=True, timeout=60)
    return time.perf_counter() - began


seen = {"copy": [], "sent": []}
with tempfile.NamedTemporaryFile() as output:
    for turn in range(TIMES + 1):
        for way in seen:
            if way == "sent":
                move(FOLDER, ASIDE)
            try:
                took = status(output.name)
            finally:
                if way == "sent":
                    move(ASIDE, FOLDER)
            if turn:  # the first reads what the next have in memory
                seen[way].append(took)
                say(f"status, {way}: {took['seconds']:.2f} s, {took['processor_seconds']:.2f} s of processor")

copy, sent = (
    {name: statistics.median(took[name] for took in seen[way]) for name in ("seconds", "processor_seconds")}
    for way in ("copy", "sent")
)
record(
    "status from the node's copy, beside modules sent",
    f"{copy['seconds']:.1f} s beside {sent['seconds']:.1f} s",
    copy["seconds"] < sent["seconds"],
)
record("a plain ssh to the same node", f"{statistics.median(plain() for _turn in range(TIMES + 1)):.2f} s")
