# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each verb takes: seconds, tasks that a play goes through, and commands to the node (round trips).

`bench/verbs.py`, from the repository's root: a node that is a folder (tests/unit/plays), 50 ms away, whose boards need
no time to boot. Each verb is run as it does its work, and where it can be, again where there is nothing left to do.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from goals import record

sys.path[:0] = ["build", "tests"]
LATENCY, TIMES = 0.05, 3
NAME = {"instance": "jackie"}
ASKED = dict(NAME, flavor="tp64.8x8")
#: The life of an instance, in this order: (what it is called here, playbook, its words).
LIFE = (
    ("status of a free board", "status", {}),
    ("provision", "provision_instance", ASKED),
    ("provision again", "provision_instance", ASKED),
    ("status of a running one", "status", {}),
    ("start what runs", "start_instance", NAME),
    ("reboot", "reboot_instance", NAME),
    ("extend", "extend_instance", dict(NAME, hours=1)),
    ("stop", "stop_instance", NAME),
    ("stop again", "stop_instance", NAME),
    ("start", "start_instance", NAME),
    ("rebuild", "rebuild_instance", NAME),
    ("reconcile, all is well", "reconcile", {}),
    ("terminate", "terminate_instance", NAME),
    ("terminate again", "terminate_instance", NAME),
    ("images, listed", "image", {}),
)


def main(folder):
    os.environ["HETERO_BUILDS"] = str(folder / "builds")
    (folder / "builds").mkdir()
    from ansible_collections.hetero.compute.tests.unit.plays.proxies import Playbooks, Proxy

    proxy, seen = Proxy(folder / "p1", 1), {}
    try:
        plays = Playbooks(folder, ["p1"])
        plays.alone()
        commands = folder / "commands"
        plays.env.update(PROXY_LATENCY=str(LATENCY), PROXY_COMMANDS=str(commands))
        plays.env["ANSIBLE_DISPLAY_SKIPPED_HOSTS"] = "yes"  # each task counts
        for turn in range(TIMES + 1):
            for what, playbook, words in LIFE:
                commands.write_text("")
                began = time.perf_counter()
                rc, output = plays.play(playbook, **words)
                took = time.perf_counter() - began
                if rc:
                    sys.exit(output)
                if turn:  # the first has the node write down what the next ones find
                    counted = (output.count("\nTASK ["), len(commands.read_text().splitlines()))
                    seen.setdefault(what, []).append((took, *counted))
    finally:
        proxy.remove()
    print(f"{'':26}{'seconds':>9}{'tasks':>7}{'commands':>10}")
    for what, measured in seen.items():
        seconds, tasks, trips = zip(*measured)
        print(f"{what:26}{statistics.median(seconds):9.2f}{max(tasks):7}{max(trips):10}", flush=True)
        if what == "provision":
            record("tasks of a provision", str(max(tasks)), max(tasks) <= 8)
        elif what == "provision again":
            record("commands to the node of a provision, again", str(max(trips)), max(trips) <= 2)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        main(Path(folder))
