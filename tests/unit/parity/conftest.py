# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nova from PyPI in an environment of its own, made where it is missing, and asked by a process of its own.

The environment is named by what is in it, so that other requirements make another one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NOVA = Path(__file__).resolve().parents[2] / "nova"
REQUIREMENTS = NOVA / "requirements.txt"
CACHE = Path.home() / ".cache" / "hetero-compute"


def environment():
    """The folder of the environment. Tests in other processes wait here until the first of them has made it."""
    name = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:40]
    folder = CACHE / f"nova-{name}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "nova.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _run([sys.executable, "-m", "venv", folder])
            # what it imports is compiled by the first question: a third of its 6,000 files
            words = ["--quiet", "--no-compile", "--no-deps", "-r", REQUIREMENTS]
            _run([folder / "bin" / "python", "-m", "pip", "install", *words])
            (folder / "ready").touch()
    return folder


def _run(argv):
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, f"{argv[-1]}: {done.stdout}{done.stderr}"


@pytest.fixture(scope="session")
def ask_nova():
    """ask(question, cases): Nova's answers. Questions are the functions of tests/nova/answer.py."""
    python = environment() / "bin" / "python"

    def ask(question, cases):
        argv = [python, "-I", NOVA / "answer.py", question]
        done = subprocess.run(argv, check=False, input=json.dumps(cases), capture_output=True, text=True, timeout=3000)
        assert done.returncode == 0, done.stderr
        answers = json.loads(done.stdout)
        assert len(answers) == len(cases)
        return answers

    return ask


@pytest.fixture
def tell(capsys):
    """Print a line of a tally where a person sees it, whether the test passes or not."""

    def tell(line):
        with capsys.disabled():
            print(f"\n{line}", end="", flush=True)

    return tell
