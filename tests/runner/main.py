# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`tests/run STAGE...`: which stages are meant, that they leave nothing behind, and whether all of it passed."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from runner.labs_left import left_up, take_down
from runner.lanes import COSTS, run_stages
from runner.leftovers import traces
from runner.places import BUILD, ROOT
from runner.plan import BY_NAME, CONTAINED, GROUPS, RARE, SCENARIOS, STAGES, not_today
from runner.said import report, write_costs
from runner.watched import adopt
from turns import DAY

#: The exit code of what Ctrl-C ended, as shells have it: 128 and SIGINT's number.
INTERRUPTED = 130


def main(words):
    """The exit code: 0 when all has passed and nothing is left behind. Labs that a stage left up are taken down.

    :param words: stages or groups of them; none for today's, `--all` for all.
    """
    # which cases have their turn (tests/turns.py): the same ones in all processes, past midnight as well
    os.environ["HETERO_DAY"] = str(DAY)
    os.environ["HETERO_BUILDS"] = tempfile.mkdtemp(prefix="hetero-builds-")
    atexit.register(shutil.rmtree, os.environ["HETERO_BUILDS"], ignore_errors=True)
    # what labs.py has lab_down say, which pytest keeps to itself (lanes.end_tools)
    os.environ["HETERO_TIDYING"] = f"{os.environ['HETERO_BUILDS']}/tidying"
    tree, began = tested() if words in ([], ["--all"]) else None, time.monotonic()
    names = chosen(words)
    # what a stage leaves running becomes our child, and so is seen at the end
    adopt()
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a script began in the background ignores it
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup(1) has it ignored
        signal.signal(signal.SIGHUP, end)
    before = traces()
    results, interrupted = [], False
    try:
        results = run_stages(names)
    except KeyboardInterrupt:
        interrupted = True
    finally:  # a run of hours that is ended tells as well what cost most
        write_costs(words, COSTS, time.monotonic() - began)
    begun = list(COSTS)
    up = left_up(begun)
    if up:
        results.append(take_down(up))
    for name in [] if words or interrupted else sorted(not_today(DAY)):
        report(name, "not its day")
    left = sorted(traces() - before)
    report("leftovers", f"FAILED: {', '.join(left)}" if left else "none")
    results.append(not left)
    if interrupted:
        report("interrupted", f"{len(begun)} of {len(names)} stages were begun")
        return INTERRUPTED
    passed = sum(results)
    print(f"{passed} passed, {len(results) - passed} failed")
    if tree and all(results) and tree == tested():
        (BUILD / "tests-passed").write_text(f"{tree}\n")
    return 0 if all(results) else 1


def end(number, _frame):
    """SIGTERM ends a run as Ctrl-C does, once: timeout(1) sends it twice, and tools are given time to tidy up.

    So does SIGHUP, after which there may be no terminal any more: nothing is said there.
    """
    signal.signal(number, signal.SIG_IGN)
    if number == signal.SIGHUP:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for printed in (1, 2):
            os.dup2(nowhere, printed)
    raise KeyboardInterrupt


def chosen(names):
    """The stages that are meant by the words of a command line."""
    if names == ["--all"]:
        names = [name for name in STAGES if name not in {*CONTAINED, *BY_NAME}]
    names = names or [name for name in STAGES if name not in RARE | not_today(DAY)]
    names = [stage for name in names for stage in GROUPS.get(name, [name])]
    unknown = [name for name in names if name not in STAGES]
    if unknown or not SCENARIOS:
        sys.exit(f"no such stage: {' '.join(unknown)}; there are: {' '.join([*STAGES, *GROUPS])}")
    return names


def tested():
    """What is tested, as git names it; None where something is not committed. tools/release asks for it."""
    said = []
    for words in (["status", "--porcelain"], ["rev-parse", "HEAD^{tree}"]):
        argv = ["git", "-c", "safe.directory=*", *words]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
        said.append(done.stdout.strip() if done.returncode == 0 else None)
    return said[1] if said[0] == "" else None
