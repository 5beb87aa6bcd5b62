# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How tests/run has tests run. If these fail, a run beside others is red without a fault, or hides one."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import tempfile
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

#: A test that lasts until other runs have been, each of which takes away what older ones left.
LONG = """
import os, subprocess, sys
from pathlib import Path

HERE = Path(__file__).parent

def test_long(tmp_path):
    for lock in Path(os.environ["PYTEST_DEBUG_TEMPROOT"]).glob("*/*/.lock"):
        os.utime(lock, (0, 0))  # as one of a machine that was suspended for days, or whose clock was set
    other = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "other.py"]
    for number in range(4):
        subprocess.run(other, cwd=HERE, check=True, capture_output=True)
    assert tmp_path.is_dir()
    (HERE / "folder").write_text(str(tmp_path))
    assert not (HERE / "red").exists()
"""


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """A folder with that test, and tests/run as a module: `passed()` runs it as a stage does."""
    loader = importlib.machinery.SourceFileLoader("stages", str(ROOT / "tests" / "run"))
    spec = importlib.util.spec_from_loader("stages", loader)
    stages = importlib.util.module_from_spec(spec)
    monkeypatch.syspath_prepend(str(ROOT / "tests"))
    loader.exec_module(stages)
    below = tmp_path / "stage"
    below.mkdir()
    (below / "pytest.ini").write_text("[pytest]\n")
    (below / "test_long.py").write_text(LONG)
    (below / "other.py").write_text("def test_other(tmp_path): pass\n")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    env = stages.environment(PYTEST_DEBUG_TEMPROOT=str(tmp_path / "temporary"), PYTEST_ADDOPTS="")

    def passed():
        with open(tmp_path / "log", "w+") as log:
            return stages.pytest(log, [str(below)], run=(sys.executable, "-m"), env=env)

    passed.stages, passed.env = stages, env
    passed.failed = stages.StageFailed
    passed.below = below
    passed.folder = lambda: Path((below / "folder").read_text())
    return passed


def test_other_runs_leave_a_runs_folders_alone(stage):
    """Lost: a test, red in one run of many, whose folder another run on the machine took away in its middle."""
    assert stage() == 1
    assert not stage.folder().exists(), "and none is left of one that passed"


def test_what_a_failed_test_left_stays_and_no_other(stage):
    """Lost: what a person needs to see why a test failed; or gigabytes of those that passed beside it."""
    (stage.below / "red").write_text("")
    (stage.below / "test_green.py").write_text("def test_green(tmp_path): (tmp_path / 'large').touch()\n")
    with pytest.raises(stage.failed):
        stage()
    assert stage.folder().is_dir()
    assert list(stage.folder().parent.glob("test_green*")) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root: run as root")
def test_what_a_test_left_mounted_is_not_emptied(stage, tmp_path):
    """Lost: files of the machine that a test had mounted in its folder."""
    (tmp_path / "machine").mkdir()
    (tmp_path / "machine" / "file").write_text("")
    mount = f"mount --bind {tmp_path}/machine {{tmp_path}}/m"
    more = f"    (tmp_path / 'm').mkdir()\n    assert os.system(f'{mount}') == 0\n"
    with open(stage.below / "test_long.py", "a") as file:
        file.write(more)
    assert stage() == 1
    assert not stage.folder().exists()
    assert (tmp_path / "machine" / "file").exists()
    assert str(stage.folder()) not in Path("/proc/self/mountinfo").read_text()


def test_no_two_test_files_have_one_name():
    """Lost: all tests of one of both: pytest takes them for the same where their folders are no packages."""
    names = [path.name for path in (ROOT / "tests" / "unit").rglob("test_*.py")]
    assert {name for name in names if names.count(name) > 1} == set()


def test_each_scenario_has_its_day(stage):
    """Lost: a kind of board or host that no day's run tries, and is found broken by who has one."""
    stages = stage.stages
    days = range(739942, 739942 + len(stages.TURNS))
    scenarios = {f"molecule-{path.parent.name}" for path in (ROOT / "molecule").glob("*/molecule.yml")}
    tried = [scenarios - stages.RARE - stages.not_today(day) for day in days]
    assert set().union(*tried) == scenarios - stages.RARE
    assert all(tried), "each day has one"
    assert stages.not_today(days[0]) == stages.not_today(days[0] + len(days))


CASES = """
import pytest

@pytest.mark.parametrize("number", range(7))
def test_many(number):
    pass

@pytest.mark.parametrize("number", range(3))
def test_few(number):
    pass
"""


def test_each_case_has_its_day(stage, monkeypatch):
    """Lost: a case of a sweep that no day's run has; or one of a few, each of which is a subject of its own."""
    for old in ("test_long.py", "other.py"):
        (stage.below / old).unlink()
    (stage.below / "test_cases.py").write_text(CASES)
    (stage.below / "pytest.ini").write_text("[pytest]\naddopts = -m 'not another_day'\nmarkers = another_day\n")
    (stage.below / "conftest.py").write_text(
        "import sys, pytest\n"
        f"sys.path.insert(0, {str(ROOT / 'tests')!r})\n"
        "from turns import mark_other_days\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_collection_modifyitems(items):\n    mark_other_days(items)\n"
    )
    tried = []
    for day in (739942, 739943, 739944):
        stage.env["HETERO_DAY"] = str(day)
        tried.append(stage())
    assert sorted(tried) == [2 + 3, 2 + 3, 3 + 3]


MOVES = """
import os

def test_moves():
    os.chdir("/")

def test_begins():
    assert os.getcwd() != "/"
"""


def test_who_moves_away_takes_no_other_test_along(stage):
    """Lost: tests of programs that were red for an empty file tty.py in /, and green for whoever ran them alone."""
    for old in ("test_long.py", "other.py"):
        (stage.below / old).unlink()
    (stage.below / "test_moves.py").write_text(MOVES)
    (stage.below / "conftest.py").write_text(
        "from ansible_collections.hetero.compute.tests.unit.conftest import same_folder\n__all__ = ['same_folder']\n"
    )
    assert stage() == 2
