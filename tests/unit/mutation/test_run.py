# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mutation run on a made-up project: which faults its tests notice, and how that is told."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]

FIT = '''\
"""Does a board fit."""

LIMIT = 8


def fits(have, want):
    return have > want


def small(have):
    return have < LIMIT


def waits(nap):
    while True:
        nap()
        break
    return "over"


def rarely():
    return "seen"


def unseen():
    return 3
'''
PROGRAM = """\
import sys
import time
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.fit import small, waits

print(small(int(sys.argv[1])), waits(lambda: time.sleep(0.1)))
"""
SETTINGS = """\
[run]
source_pkgs = ansible_collections.hetero.compute.plugins.module_utils
parallel = true
patch = subprocess
[paths]
source =
  plugins
  */compute/plugins
"""
TEST = """\
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling import fit


def test_fits():
    if "/hm-" in os.getcwd():
        # as an action shows its progress, from a worker of Ansible's
        Path(f"/proc/{os.getppid()}/fd/1").write_text("progress\\n")
    assert fit.fits(3, 2)


@pytest.mark.another_day
def test_rarely():
    assert fit.rarely() == "seen"


def test_in_a_process():
    if "/hm-" in os.getcwd():
        # what is left behind does not outlive the question
        subprocess.Popen(["sleep", "1234567"], start_new_session=True)
    argv = [sys.executable, Path(__file__).with_name("program.py"), "8"]
    assert subprocess.run(argv, check=True, capture_output=True, text=True).stdout == "False over\\n"
"""
#: As tests/unit/conftest.py does.
CONFTEST = """\
def pytest_collection_modifyitems(config, items):
    if not config.option.markexpr:
        items[:] = [item for item in items if not item.get_closest_marker("another_day")]
"""


def files(folder, **texts):
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A recorded project."""
    root = tmp_path_factory.mktemp("project")
    below = root / "plugins" / "module_utils" / "_hetero" / "scheduling"
    files(below, fit_py=FIT)
    files(root / "tests" / "unit", test_fit_py=TEST, program_py=PROGRAM, conftest_py=CONFTEST)
    (root / "pytest.ini").write_text("[pytest]\naddopts = -m 'not another_day'\nmarkers = another_day\n")
    (root / "coveragerc").write_text(SETTINGS)
    link = root / "build" / "ansible_collections" / "hetero" / "compute"
    link.parent.mkdir(parents=True)
    link.symlink_to(root)
    env = dict(
        os.environ,
        PYTHONPATH=os.pathsep.join([str(root / "build"), str(TESTS)]),
        COVERAGE_FILE=str(root / "build" / "recording" / "data"),
        COVERAGE_RCFILE=str(root / "coveragerc"),
        PYTEST_ADDOPTS="",
    )
    (root / "build" / "recording").mkdir()
    measured = [
        "-m",
        "coverage",
        "run",
        "-m",
        "pytest",
        "-p",
        "mutants.recording",
        "-p",
        "no:cacheprovider",
        "-m",
        "another_day or not another_day",
        "tests",
    ]
    for words in (measured, ["-m", "coverage", "combine"]):
        subprocess.run([sys.executable, *words], cwd=root, env=env, check=True)
    return root


def run(project):
    argv = [
        sys.executable,
        "-m",
        "mutants.run",
        "--root",
        project,
        "--seed",
        "1",
        "--mutants",
        "100",
        "--patience",
        "5",
    ]
    done = subprocess.run(
        argv, env=dict(os.environ, PYTHONPATH=str(TESTS)), check=False, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


def commands():
    """The command line of each process; one may end between its being listed and its being read (ESRCH)."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes()


def test_what_the_tests_notice(project):
    """Else a developer trusts tests that look at nothing, or hunts survivors that a test kills."""
    code, said, errors = run(project)
    survivors = [line for line in said.splitlines() if line.startswith("SURVIVOR")]
    assert survivors == [
        "SURVIVOR survived: plugins/module_utils/_hetero/scheduling/fit.py:7: have > want  →  (have >= want)",
        "SURVIVOR survived: plugins/module_utils/_hetero/scheduling/fit.py:15: True  →  False",
        "SURVIVOR survived: plugins/module_utils/_hetero/scheduling/fit.py:16: nap()  →  pass",
        "SURVIVOR survived: plugins/module_utils/_hetero/scheduling/fit.py:26: return 3  →  return None",
        "SURVIVOR survived: plugins/module_utils/_hetero/scheduling/fit.py:26: 3  →  30",
        "SURVIVOR survived: plugins/module_utils/_hetero/scheduling/fit.py:26: 3  →  4",
    ], said + errors
    # noticed by the process alone, by the test alone, and by the time a test takes
    assert "LIMIT  →  (have <= LIMIT)  tests/unit/test_fit.py::test_in_a_process" in said
    assert "have > want  →  (have <= want)  tests/unit/test_fit.py::test_fits" in said
    assert "break  →  continue  tests/unit/test_fit.py::test_in_a_process" in said
    # and by a test that only this stage runs today
    assert "'XXseen'  tests/unit/test_fit.py::test_rarely" in said
    assert code == 1
    assert "seed 1, 6 survive" in said.splitlines()[-1]
    # nothing of it is left: not in the project, not among the processes
    assert (project / "plugins" / "module_utils" / "_hetero" / "scheduling" / "fit.py").read_text() == FIT
    assert not [command for command in commands() if b"1234567" in command and b"sleep" in command[:8]]
