# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person reads: a line for each stage, the end of a failed one's log, and in build/logs what the stages cost."""

from __future__ import annotations

import time

from runner.places import LOGS


def report(name, text, began=None):
    """A line of the tour: what, on what, seconds."""
    seconds = "" if began is None else f"{time.monotonic() - began:5.1f} s"
    print(f"test    {name:<24} {text:<50}{seconds}".rstrip(), flush=True)


def telling(output):
    """The lines of a failed tool's output that a person wants to see."""
    lines = output.splitlines()
    # ansible-test's findings stand between hundreds of lines of pip's
    return "\n".join([line for line in lines if line.startswith("ERROR: ")] or lines[-200:])


def write_costs(names, costs, seconds):
    """Append a table to build/logs/test-costs.log: each stage's seconds and the processor's, what cost most first.

    :param names: what was asked for on the command line.
    :param costs: {stage: (seconds, seconds of the processor)}. What a stage left running is not in it.
    :param seconds: what all of it took, the stages beside each other.
    """
    rows = sorted(costs.items(), key=lambda row: -row[1][1])
    spent = sum(processor for _wall, processor in costs.values())
    with open(LOGS / "test-costs.log", "a", encoding="utf-8") as table:
        said = f"{time.strftime('%Y-%m-%d %H:%M')} tests/run {' '.join(names)}".rstrip()
        print(f"{said:<50} seconds  processor  share", file=table)
        for name, (wall, processor) in rows:
            print(f"{name:<50} {wall:7.1f}  {processor:9.1f}  {processor / max(spent, 0.01):5.0%}", file=table)
        print(f"{'together':<50} {seconds:7.1f}  {spent:9.1f}\n", file=table)
