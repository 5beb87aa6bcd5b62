# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of pytest: how many tests passed, and what is left of its folders."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from runner.folders import remove
from runner.places import BIN, BUILD, ROOT, environment
from runner.tools import StageFailed, counted, tool

#: Our own plugins of pytest, of this folder's parent.
PLUGINS = ("processor", "own_folders")


def pytest(log, folders, *more, limit=3600, run=(BIN / "python", "-m"), env=None, behind=0):
    """Run tests; how many passed. Their folders lie in one of this run's own; of tests that failed they stay.

    By default pytest shares one with all runs on the machine: each keeps the last three and takes away the others,
    but for those whose lock is there and younger than three days.
    """
    # kept: the tests start thousands of Pythons
    env = dict(dict(PYTHONPATH=str(BUILD)), **(env or environment()), PYTHONPYCACHEPREFIX=str(BUILD / "pycache"))
    rewrite(log, folders, more, env, behind)
    base = tempfile.mkdtemp(prefix="hetero-tests-")
    began = log.tell()
    try:
        output = tool(
            log,
            [*run, "pytest", "-p", "no:cacheprovider", f"--basetemp={base}", "--durations=20", "--dist=worksteal"]
            + [word for name in PLUGINS for word in ("-p", f"ansible_collections.hetero.compute.tests.{name}")]
            + [*more, *folders],
            limit=limit,
            behind=behind,
            env=env,
        )
    except StageFailed:
        remove_passed(base, Path(log.name).read_text(errors="replace")[began:])
        raise
    # all that a test may ask for is put in by tools/setup, so a skipped test is a test lost
    if re.search(r"^SKIPPED ", output, re.MULTILINE):
        raise StageFailed("tests were skipped")
    passed = counted(r"^=+ .*?([0-9]+) passed", output, "tests")
    remove(base)
    return passed


def rewrite(log, folders, words, env, behind):
    """The first run in a clone has pytest's own code of all tests written once, by a process before the workers.

    Each of them would write all of it, beside the others: half a minute of a processor each.
    """
    written = [BUILD / "pycache" / ROOT.joinpath(folder).relative_to("/") for folder in folders]
    beside = any(word.startswith("--numprocesses=") for word in words)
    if beside and not any(next(folder.rglob("test_*-pytest-*.pyc"), None) for folder in written):
        argv = [BIN / "python", "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-qq"]
        ignored = [word for word in words if word.startswith("--ignore=")]
        tool(log, [*argv, *ignored, *folders], env=env, behind=behind)


def remove_passed(base, output):
    """Folders of tests that passed go, by what pytest said in the end of those that did not.

    A run that was ended in its middle has not said it, and keeps all.
    """
    failed = re.findall(r"^(?:FAILED|ERROR) \S+?::(.+?)(?: - .*)?$", output, re.MULTILINE)
    # pytest calls a test's folder so, with a number after it, and a link to it with a word
    kept = {re.sub(r"\W", "_", name.rpartition("::")[2])[:30] for name in failed}
    folders = [*Path(base).glob("test_*"), *Path(base).glob("popen-gw*/test_*")] if failed else []
    for folder in folders:
        if not any(re.fullmatch(re.escape(name) + r"(\d+|current)", folder.name) for name in kept):
            if folder.is_symlink():
                folder.unlink()
            else:
                remove(folder)
