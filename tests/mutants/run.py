# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Would the unit tests notice a small fault? A sample of mutants of the code that boards, outlets and GPUs hang on.

`make test-mutants`, or, once that has recorded which test runs which line, by hand:
`PYTHONPATH=tests .venv/bin/python -m mutants.run --seed 7 --mutants 20 --only drivers/power/snmp.py`. Each mutant is
put into a copy of the project, and the tests that ran its line are run there, the quickest first, until one fails or
hangs. Ends with 1 where SURVIVE or more of them live on. A mutant that changes nothing for anybody stands in
equivalent.toml, with the reason.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tomllib

from . import choosing, sampling

ROOT = Path(__file__).resolve().parents[2]
UTILS = "plugins/module_utils/_hetero"
#: What is looked at, below UTILS: folders, and files of others.
PACKAGES = (
    "scheduling/",
    "boards/",
    "site/boards_file.py",
    "site/board_states.py",
    "drivers/power/",
    "drivers/boot/blame.py",
    "claims/host/allocation.py",
    "devices/gpus/",
    "devices/cgroup/",
    "hypervisors/lxc_gpus/",
)
#: This share of the sample, and the run has failed.
SURVIVE = 0.05
#: More tests than this that fail without a mutant, and the run has failed: what they know was not asked.
MOST_UNSOUND = 5
#: So many tests are asked first.
AT_ONCE = 8
#: Copies at work at a time; tests wait for most of their time.
COPIES = 4
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".lab", ".ansible", "build", "collections", "__pycache__")


class Copy:
    """A copy of the project with a process that asks its tests."""

    def __init__(self, root, folder, patience):
        self.root = folder / "c"
        self._mtime = 1_000_000_000
        shutil.copytree(root, self.root, symlinks=True, ignore=LEFT_OUT)
        link = self.root / "build" / "ansible_collections" / "hetero" / "compute"
        link.parent.mkdir(parents=True)
        link.symlink_to(self.root)
        # where tests write what they measured
        (self.root / "build" / "logs").mkdir()
        path = os.pathsep.join(map(str, (self.root / "build", ROOT / "tests")))
        more = dict(PYTHONPATH=path, PYTHONPYCACHEPREFIX=str(folder / "pyc"), TMPDIR=str(folder))
        more.update(ANSIBLE_COLLECTIONS_PATH=str(self.root / "build"), ANSIBLE_HOME=str(folder / "ansible"))
        take_compiled(root, self.root, folder / "pyc")
        self._env = dict(os.environ, **more)
        self._argv = [sys.executable, "-m", "mutants.asking", str(self.root), str(patience)]
        self.cpu = 0.0
        self._start()

    def _start(self):
        pipe, self._before = subprocess.PIPE, self.cpu
        self._process = subprocess.Popen(self._argv, env=self._env, stdin=pipe, stdout=pipe, text=True)

    def ask(self, seconds):
        self._process.stdin.write(json.dumps(seconds) + "\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        if not said.startswith("{"):
            raise SystemExit(f"what asks the tests said {said[:200]!r} of {list(seconds)}")
        answer = json.loads(said)
        self.cpu = self._before + answer.pop("cpu")
        return answer

    def begin_anew(self):
        """In a place where no mutant was: one may have left rules in a cgroup, or a mount."""
        self.end()
        self._start()

    def write(self, path, source):
        """With a time of its own: Python takes a compiled file for the one of a source of the same time and length."""
        self._mtime += 1
        (self.root / path).write_text(source, encoding="utf-8")
        os.utime(self.root / path, (self._mtime, self._mtime))

    def end(self):
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()


def take_compiled(root, copy, into):
    """Have a copy's Pythons find what the recorded run has compiled, which each copy would compile and rewrite again.

    A file's time is its copy's, too, so what is compiled is known to be of that very text; and of a mutant's it is not.

    :param into: the folder in which they look for it (PYTHONPYCACHEPREFIX).
    """
    compiled = root / "build" / "pycache"
    if compiled.is_dir():
        # thousands of files, which Python would take a second for
        subprocess.run(["cp", "--archive", "--reflink=auto", compiled, into], check=True)
        own = into / root.relative_to("/")
        if own.is_dir():
            (into / copy.relative_to("/")).parent.mkdir(parents=True)
            own.rename(into / copy.relative_to("/"))


class Trial:
    """Asks about mutants: each copy of the project is one mutant's at a time.

    :param recorded: choosing.Recorded.
    """

    def __init__(self, recorded):
        self.recorded = recorded
        #: Tests that pass in a copy without a mutant, and tests that do not.
        self.sound, self.unsound = set(), set()
        #: Path → tests that noticed a mutant of that file.
        self.noticed = {}

    def ask(self, copy, mutant, source):
        """(how it ended, by which test, how many passed before, how many know of it)."""
        tests, known = self.recorded.asked(mutant)
        # which look at a file closely enough to notice one fault notice most others of it
        noticed = self.noticed.setdefault(mutant.path, set())
        tests.sort(key=lambda test: test not in noticed or self.recorded.seconds[test] > choosing.QUICK)
        passed = 0
        # most faults are noticed by the first tests, so the files of the others need not even be read
        for some in (tests[:AT_ONCE], tests[AT_ONCE:]):
            while some := [test for test in some if test not in self.unsound]:
                end, killer, number = self._once(copy, mutant, source, some)
                passed += number
                if end == "passed":
                    break
                if end != "unsound":
                    noticed.add(killer)
                    return end, killer, passed, known
        return "survived" if passed else "not run", None, passed, known

    def _once(self, copy, mutant, source, tests):
        asked = {test: self.recorded.seconds[test] for test in tests}
        copy.write(mutant.path, mutant.applied(source))
        try:
            answer = copy.ask(asked)
        finally:
            copy.write(mutant.path, source)
        killer, end, passed = answer["test"], answer["verdict"], len(answer["passed"])
        self.sound.update(answer["passed"])
        if end == "passed":
            # what pytest passed over was not asked
            self.unsound.update(set(tests) - set(answer["passed"]))
        if end == "passed" or killer in self.sound:
            return end, killer, passed
        # a test that fails without the mutant as well has shown nothing; what is no test is a file of tests, or all
        proofs = [test for test in tests if killer in (None, test, test.partition("::")[0])]
        proof = {proofs[0]: asked[proofs[0]]}
        if copy.ask(proof)["verdict"] == "passed":
            self.sound.add(proofs[0])
            return end, killer, passed
        copy.begin_anew()
        if copy.ask(proof)["verdict"] == "passed":
            self.sound.add(proofs[0])
            return self._once(copy, mutant, source, tests)
        self.unsound.update(proofs)
        return "unsound", killer, 0


def equivalent(root):
    """Of mutants that nobody can notice: file, the line's text, what becomes of what."""
    path = root / "tests" / "mutants" / "equivalent.toml"
    entries = tomllib.loads(path.read_text())["mutant"] if path.exists() else []
    return {(entry["file"], entry["line"], entry["old"], entry["new"]) for entry in entries}


def candidates(root, only):
    """Path → source of the files to be mutated, and of all that was measured."""
    measured = {
        str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in sorted((root / UTILS).rglob("*.py"))
    }
    looked_at = tuple(f"{UTILS}/{package}" for package in PACKAGES)
    chosen = {path: source for path, source in measured.items() if path.startswith(looked_at)}
    return {path: source for path, source in chosen.items() if path.startswith(f"{UTILS}/{only}")}, measured


def main(argv=None):
    today = datetime.date.today().strftime("%Y%m%d")
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--seed", type=int, default=int(today))
    arguments.add_argument("--mutants", type=int, default=300)
    arguments.add_argument("--only", metavar="FILE", default="", help="such as drivers/power/snmp.py, or power")
    arguments.add_argument("--root", type=Path, default=ROOT, help="the project")
    arguments.add_argument("--recorded", type=Path, help="build/recording in it")
    arguments.add_argument("--patience", type=float, default=20, help="seconds until a test that was quick hangs")
    options = arguments.parse_args(argv)
    root = options.root.resolve()
    sources, measured = candidates(root, options.only)
    tests = {str(path.relative_to(root)): path.read_text() for path in (root / "tests").rglob("test_*.py")}
    recorded = choosing.Recorded(options.recorded or root / "build" / "recording", measured, tests)
    chosen = sampling.sample(sources, options.mutants, options.seed, equivalent(root))
    if not chosen or not recorded.lines:
        sys.exit("no mutants, or no recorded tests: nothing was tested")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hm-", ignore_cleanup_errors=True) as folder:
        ends, cpu, unsound = run(root, Path(folder), chosen, sources, recorded, options.patience)
    survivors = [mutant for mutant, end in ends.items() if end in ("survived", "not run")]
    for mutant in survivors:
        print(f"SURVIVOR {ends[mutant]}: {mutant}")
    print(f"{cpu:.0f} s of CPU in {time.monotonic() - began:.0f} s")
    summary, code = verdict(options.seed, len(chosen), len(survivors), len(unsound))
    print(summary)
    return code


def verdict(seed, mutants, survivors, unsound):
    """The last line, and how the run ends."""
    share, unasked = survivors / mutants, f", {unsound} tests not asked" if unsound else ""
    summary = f"{mutants} mutants, seed {seed}, {survivors} survive ({100 * share:.1f} %){unasked}"
    return summary, 1 if share >= SURVIVE or unsound > MOST_UNSOUND else 0


def run(root, folder, chosen, sources, recorded, patience):
    """Mutant → how it ended, the seconds of CPU that the tests took, and the tests that fail without a mutant."""
    copies, trial = queue.SimpleQueue(), Trial(recorded)
    everyone = []
    for number in range(COPIES):
        (folder / str(number)).mkdir()
        everyone.append(Copy(root, folder / str(number), patience))
        copies.put(everyone[-1])

    def one(mutant):
        copy = copies.get()
        try:
            began = time.monotonic()
            end, test, passed, known = trial.ask(copy, mutant, sources[mutant.path])
            words = f"{time.monotonic() - began:5.1f} s  after {passed} of {known} tests"
            print(f"{end:8} {words:34} {mutant}  {test or ''}", flush=True)
            return end
        finally:
            copies.put(copy)

    try:
        with ThreadPoolExecutor(COPIES) as threads:
            ends = dict(zip(chosen, threads.map(one, chosen)))
    finally:
        for copy in everyone:
            copy.end()
    for test in sorted(trial.unsound):
        print(f"NOT ASKED, for it fails without a mutant: {test}")
    return ends, sum(copy.cpu for copy in everyone), trial.unsound


if __name__ == "__main__":
    sys.exit(main())
