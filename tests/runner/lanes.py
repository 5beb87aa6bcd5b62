# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stages run, a few beside each other: each with its log, whether it passed, and what it cost."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from runner.places import LOGS, ROOT
from runner.plan import STAGES, USED
from runner.said import report, telling
from runner.tools import BEGINS, RUNNING, SPENT, StageFailed

#: So many stages are run beside each other: each waits for half of its time, so four keep two cores busy, and who
#: waits for something still gets it in time.
LANES = 4


#: {stage: (seconds, seconds of the processor)}
COSTS = {}


def run_stage(name, stage):
    """True when it passed."""
    path = LOGS / f"test-{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with path.open("w", encoding="utf-8") as log:
        try:
            summary = stage(log)
        except StageFailed as failure:
            log.flush()
            print(telling(path.read_text(errors="replace")))
            report(name, f"FAILED: {failure} ({path.relative_to(ROOT)})", began)
            return False
        finally:
            COSTS[name] = (time.monotonic() - began, SPENT[log.name])
    report(name, summary, began)
    return True


def run_stages(names, stages=None):
    """Whether each passed, in the order in which they ended.

    :param stages: {name: stage} of stages that are none of STAGES.
    """
    stages = STAGES if stages is None else stages
    waiting, running, results = list(names), {}, []
    with ThreadPoolExecutor(LANES) as lanes:
        try:
            while waiting or running:
                for name in list(waiting):
                    used = set().union(*(USED.get(other, ()) for other in running.values()))
                    if len(running) < LANES and not used & USED.get(name, set()):
                        running[lanes.submit(run_stage, name, stages[name])] = name
                        waiting.remove(name)
                for stage in wait(running, return_when=FIRST_COMPLETED).done:
                    results.append(stage.result())
                    del running[stage]
        finally:
            end_tools()
    return results


def end_tools(patience=60, longest=1800, again=10):
    """After Ctrl-C: tools take away what they have set up, such as a lab, which beside other load takes minutes.

    They are killed once they have said nothing for `patience` s, after `longest` s, and by another Ctrl-C. Every
    `again` seconds a line says that they are waited for.
    """
    began = time.monotonic()
    heard, since, told = _said(), began, began
    try:
        _tell(signal.SIGINT)
        while RUNNING and time.monotonic() < min(since + patience, began + longest):
            time.sleep(0.1)
            if _said() != heard:
                heard, since = _said(), time.monotonic()
            if time.monotonic() - told >= again:
                told = time.monotonic()
                report("tidying", "waits for what takes its lab down; another Ctrl-C kills it", began)
    finally:
        if RUNNING:
            report("tidying", f"FAILED: killed {len(RUNNING)} before they had ended: a lab may run on", began)
        _tell(signal.SIGKILL)


def _said():
    """How much the tools that run, and what takes labs down for them, have said by now."""
    sizes = {}
    for path in {*RUNNING.values(), os.environ.get("HETERO_TIDYING")} - {None}:
        with contextlib.suppress(OSError):
            sizes[path] = os.path.getsize(path)
    return sizes


def _tell(what):
    with BEGINS:
        for pid in list(RUNNING):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, what)
