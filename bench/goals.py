# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the measurements are held to: each part records what it saw, and `bench/goals.py` prints it beside the goals.

It ends with 1 where something was not measured, but for QUICK. A goal that is missed is a result, and no error.
`bench/goals.py --page` prints the same as the page of figures of the documentation, with the machine.
"""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

#: Whether each part takes one turn, and long ones none (make bench QUICK=1).
QUICK = bool(os.environ.get("QUICK"))
#: One line a record, between the parts of one run.
RECORDS = Path(os.environ.get("BENCH_RECORDS", "build/logs/bench.jsonl"))
#: What is to be measured; None is what we show without having promised anything.
GOALS = {
    "provision of 1: over its own boot": "≤ 0.8 s",
    "provision of 1: times its own boot": "≤ 1.12",
    "provision of 1 again, nothing to do": "≤ 1.5 s",
    "status of 10 boards": "≤ 1.2 s",
    "a plain ssh to the same node": None,
    "of it, a play of Ansible that does nothing": None,
    "tasks of a provision": "≤ 8",
    "commands to the node of a provision, again": "≤ 2",
    "lines of a request, asked again": "≤ 3",
    "lines of a request that nothing fits": "≤ 3",
    "lines of a request with a slip in it": "≤ 3",
    "provision of 8: over 8 own boots at once": "≤ 2.0 s",
    "tasks of a provision, 8 boards beside 1": "as many",
    "status from the node's copy, beside modules sent": "below modules sent",
    "100 owners asked, times one": "≤ 2.5",
    "100 owners of 30 boards each asked, seconds": None,
    "100 owners on this machine asked, times one": None,
    "100 owners, a task of Ansible that does nothing, times one": None,
    "200 users at once: 99 of 100, times the median": "≤ 3.0",
    "the same, claims and releases a second": None,
    "1,000 played boards, started in one request": "≤ 30 s",
    "cost of one request, 8 to 4,000 played boards, exponent": "≤ 1.1",
    "pdu_power, logins for 8 outlets": "1",
    "pdu_power, 8 outlets, menus that end there": "below fence_apc, 1 outlet",
    "the same, 0.2 s a screen": "below fence_apc, 1 outlet",
    "pdu_power, 8 of 24 outlets, menus of AOS 3": "below fence_apc, 1 outlet",
    "the same of AOS 3, 0.2 s a screen": "below fence_apc, 1 outlet",
    "pdu_power, 8 of 24 outlets, menus of AOS 3, command_line": "below fence_apc, 1 outlet",
    "the same with command_line, 0.2 s a screen": "below fence_apc, 1 outlet",
    "pdu_power, 8 of 24 outlets, menus of AOS 2": "below fence_apc, 1 outlet",
    "the same of AOS 2, 0.2 s a screen": "below fence_apc, 1 outlet",
    "pdu_power, 8 of 24 outlets, a lesser account of AOS 3": "below fence_apc, 1 outlet",
    "the same of that account, 0.2 s a screen": "below fence_apc, 1 outlet",
    "pdu_power, 8 of 24 outlets, command line of AOS 5": "below fence_apc, 1 outlet",
    "the same of AOS 5, 0.2 s a screen": "below fence_apc, 1 outlet",
    "redfish, a machine off or on": "below fence_redfish",
    "ipmi, a machine off or on": "below fence_ipmilan",
    "100 PDUs, 8 outlets each, times one": "≤ 2.0",
    "kernel and initrd by HTTP, times by TFTP": None,
    "provision by HTTP beside TFTP, BIOS": None,
    "provision by HTTP beside TFTP, UEFI": None,
    "a private root, beside cp -a": None,
    "a claim with 10,000 boards, beside 10": None,
    "1,000 boards, 10 cycles a day, a year: grown once events are of an age": "≤ 2 %",
    "the same, database and its copies": None,
    "10,000 boards read from their files": "no slower than as INI",
    "the same by ansible-inventory --list": "no slower than as INI",
    "the same, peak memory": "no more than as INI",
    "the same from the inventory's cache": "no slower than as INI",
    "the same with a keyed group": "no slower than as INI",
    "the same with compose and groups": "no slower than as INI",
    "schedule among 10,000 boards": "< 1 s",
    "status of 10,000 boards, as a table": None,
    "the same as a page": None,
    "GPU attach, 5 nodes": "≤ 9 ms",
    "GPU attach, 5 nodes, proof included": "below LXD, 1 device",
    "GPU detach, 5 nodes, proof included": "below LXD, 1 device",
    "the same attach, beside LXD with the same 5": None,
    "the same attach, unprivileged container": "below LXD, 1 device",
}

NOT_MEASURED = "not measured"
PAGE = """\
.. Copyright: hetero.compute contributors
.. GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
.. SPDX-License-Identifier: GPL-3.0-or-later

.. _ansible_collections.hetero.compute.docsite.figures:

Figures
=======

What things cost, beside what others cost, as ``make bench`` measured it on the lab of a single machine. Boards are
emulated by its processors, so their own boots are slow, and take from what runs beside them. A row without a goal is
there for comparison. ``make bench QUICK=1`` measures some of it, once each. After either, ``.venv/bin/python
bench/FILE.py`` measures the rows of one file. This page is what ``.venv/bin/python bench/goals.py --page`` prints then.

- Code: {commit}
- Machine: {machine}

.. list-table::
   :header-rows: 1

   * - What
     - Goal
     - Measured
     -
"""

# A part that is cut off at its limit ends what it has started, as it does at its own end.
signal.signal(signal.SIGTERM, lambda *_which: sys.exit("cut off at its limit"))


def record(goal, measured, met=None):
    """Keep what was measured; `met` is None where there is no goal."""
    assert goal in GOALS, goal
    RECORDS.parent.mkdir(parents=True, exist_ok=True)
    with RECORDS.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"goal": goal, "measured": measured, "met": met}) + "\n")


def turns(number):
    """How many turns a part takes, of which the median counts."""
    return 1 if QUICK else number


def say(text):
    """A line of progress, with the time of day, seen at once."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def rows():
    """(what, goal, measured, verdict) of each goal; in a quick run of those that it measures."""
    lines = RECORDS.read_text(encoding="utf-8").splitlines() if RECORDS.exists() else []
    seen = {entry["goal"]: entry for entry in map(json.loads, lines)}
    for goal, limit in GOALS.items():
        entry = seen.get(goal, {"measured": NOT_MEASURED, "met": None})
        if goal in seen or not QUICK:
            yield goal, limit or "", entry["measured"], {True: "met", False: "MISSED", None: ""}[entry["met"]]


def main():
    """The table; returns whether all was measured."""
    print(f"{'':58}{'goal':28}{'measured':42}")
    found = list(rows())
    for goal, limit, measured, verdict in found:
        print(f"{goal:58}{limit:28}{measured:42}{verdict}".rstrip())
    return bool(found) and all(measured != NOT_MEASURED for _goal, _limit, measured, _verdict in found)


def machine():
    """The machine in words: processors, memory, kernel, Python."""
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    what = f"{os.cpu_count()} processors ({model[1].strip() if model else platform.machine()}), {memory:.0f} GiB"
    return f"{what}, Linux {platform.release()}, Python {platform.python_version()}"


def page():
    """The page of figures (reStructuredText)."""
    commit = ["git", "show", "--no-patch", "--format=%h of %cs", "HEAD"]
    done = subprocess.run(commit, check=True, capture_output=True, text=True).stdout.strip()
    print(PAGE.format(commit=done, machine=machine()), end="")
    for row in rows():
        print("\n".join(f"   {'  ' if number else '* '}- {cell}".rstrip() for number, cell in enumerate(row)))


if __name__ == "__main__":
    if sys.argv[1:] == ["--page"]:
        page()
    else:
        sys.exit(0 if main() else "not everything was measured")
