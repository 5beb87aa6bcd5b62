# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How tests/run has tests run. If these fail, a run beside others is red without a fault, or hides one."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from labs import Lab
from runner import lanes, main, plan, pytest_runs, said, tools
from runner.leftovers import traces
from runner.places import environment
from runner.tools import StageFailed

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
    """A folder with that test: `passed()` runs it as a stage does."""
    below = tmp_path / "stage"
    below.mkdir()
    (below / "pytest.ini").write_text("[pytest]\n")
    (below / "test_long.py").write_text(LONG)
    (below / "other.py").write_text("def test_other(tmp_path): pass\n")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    env = environment(PYTEST_DEBUG_TEMPROOT=str(tmp_path / "temporary"), PYTEST_ADDOPTS="")

    def passed():
        with open(tmp_path / "log", "w+") as log:
            return pytest_runs.pytest(log, [str(below)], run=(sys.executable, "-m"), env=env)

    passed.env = env
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
    with pytest.raises(StageFailed):
        stage()
    assert stage.folder().is_dir()
    assert list(stage.folder().parent.glob("test_green*")) == []


def test_what_a_test_wrote_goes_as_it_ends(stage):
    """Lost: tens of gigabytes, until the end of a run of all tests, and so the disk of who runs them."""
    (stage.below / "test_long.py").write_text("def test_large(tmp_path): (tmp_path / 'large').touch()\n")
    seen = "assert list(tmp_path.parent.glob('test_large*')) == [tmp_path.parent / 'test_largecurrent']"
    (stage.below / "test_then.py").write_text(f"def test_then(tmp_path): {seen}\n")
    assert stage() == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root: run as root")
def test_what_a_test_left_mounted_is_not_emptied(stage, tmp_path):
    """Lost: files of the machine that a test had mounted in its folder."""
    (tmp_path / "machine").mkdir()
    (tmp_path / "machine" / "file").write_text("")
    mount = f"mount --bind {tmp_path}/machine '{{tmp_path}}/m m'"
    more = f"    (tmp_path / 'm m').mkdir()\n    assert os.system(f\"{mount}\") == 0\n"
    with open(stage.below / "test_long.py", "a") as file:
        file.write(more)
    assert stage() == 1
    assert not stage.folder().exists()
    assert (tmp_path / "machine" / "file").exists()
    assert str(stage.folder()) not in Path("/proc/self/mountinfo").read_text()


#: What a worker finds of pytest's own code of the tests when it begins to read them.
FINDS = """
import sys
from pathlib import Path

HERE = Path(__file__).parent.relative_to("/")
FOUND = list((Path(sys.pycache_prefix) / HERE).rglob("test_one*-pytest-*.pyc"))
"""


def test_workers_find_the_tests_code_written(stage, tmp_path):
    """Lost: minutes of each first run in a clone, in which each of six workers writes the same code."""
    (stage.below / "test_long.py").unlink()
    (stage.below / "conftest.py").write_text(FINDS)
    (stage.below / "test_one.py").write_text("import conftest\n\ndef test_one(): assert conftest.FOUND\n")
    with open(tmp_path / "log", "w+") as log:
        assert pytest_runs.pytest(log, [str(stage.below)], "--numprocesses=1", env=stage.env) == 1
        pytest_runs.rewrite(log, [str(stage.below)], ["--numprocesses=1"], stage.env, 0)
    assert (tmp_path / "log").read_text().count("--collect-only") == 1


def test_the_stages_need_nothing_installed():
    """Lost: make test-gpu on a machine with a GPU and without a network, where pytest is not to be had."""
    words = [sys.executable, "-S", ROOT / "tests" / "run", "no-such-stage"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("no such stage: no-such-stage; there are: ruff types ")
    assert "Traceback" not in done.stderr


BUSY = "import time\nwhile time.process_time() < 1.0: pass\n"
#: Its busy grandchild outlives its parent; it waits until somebody has taken notice of the grandchild's end.
LEAVES = """
import os, time
told, telling = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.write(telling, str(os.getpid()).encode())
        while time.process_time() < 1.0: pass
    os._exit(0)
os.wait()
grandchild = os.read(told, 20).decode()
while os.path.exists(f"/proc/{grandchild}"): time.sleep(0.01)
"""


@pytest.mark.parametrize("program", [BUSY, LEAVES])
def test_what_a_tool_starts_is_counted(tmp_path, program):
    """Lost: what a lab's machines cost, which are nobody's children, in the table of what makes the tests slow."""
    with open(tmp_path / "log", "w+") as log:
        assert tools.tool(log, [sys.executable, "-c", f"{program}\nprint('done')"], cwd=tmp_path) == "done\n"
    assert 0.9 < tools.SPENT[str(tmp_path / "log")] < 3


def test_a_tool_that_fails_or_hangs_fails_its_stage(tmp_path):
    """Lost: a tool that was killed, or one that hangs for ever, taken for one that passed."""
    with open(tmp_path / "log", "w+") as log:
        for program, why in (
            ("raise SystemExit(3)", "ended with 3"),
            ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", f"ended with -{signal.SIGKILL:d}"),
        ):
            with pytest.raises(StageFailed, match=why):
                tools.tool(log, [sys.executable, "-c", program], cwd=tmp_path)
        with pytest.raises(StageFailed, match="cannot-be ended with 1"):
            tools.tool(log, ["/cannot-be"], cwd=tmp_path)
        began = time.monotonic()
        hanging = "import os, time; print(os.getpid(), flush=True); time.sleep(300)"
        with pytest.raises(StageFailed, match="ran longer than 1 s"):
            tools.tool(log, [sys.executable, "-c", hanging], cwd=tmp_path, limit=1)
        assert 1 <= time.monotonic() - began < 200
    pid = int((tmp_path / "log").read_text().splitlines()[-1])
    with suppress(ProcessLookupError):
        # it was killed with its parent, and may take a moment longer to end
        assert select.select([os.pidfd_open(pid)], [], [], 60)[0], f"{pid} goes on"


#: A tool that has set something up, and takes it away when it is interrupted.
TIDY = """
import signal, sys, time
from pathlib import Path

signal.signal(signal.SIGINT, signal.default_int_handler)  # what nohup began ignores it
made = Path(sys.argv[1])
made.touch()
try:
    time.sleep(60)
finally:
    time.sleep(1)  # a lab takes longer
    made.unlink()
"""


def test_an_interrupted_run_has_its_tools_take_away_what_they_set_up(tmp_path):
    """Lost: a machine without labs, mounts and namespaces of a run that was ended in the middle."""
    made = tmp_path / "made"
    with (tmp_path / "log").open("w+", encoding="utf-8") as log, ThreadPoolExecutor(1) as lane:
        stage = lane.submit(tools.tool, log, [sys.executable, "-c", TIDY, made])
        until = time.monotonic() + 60
        while not made.exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert made.exists()
        lanes.end_tools()
        with pytest.raises(StageFailed, match="ended with"):
            stage.result(60)
    assert not made.exists()
    assert not tools.RUNNING


def test_a_tool_that_has_just_begun_is_ended_with_the_others(tmp_path, monkeypatch):
    """Lost: the same, where a run is ended as a tool of it begins; and minutes until that tool's end."""
    begun, over, real = threading.Event(), threading.Event(), subprocess.Popen

    def begin(*given, **named):
        process = real(*given, **named)
        begun.set()
        over.wait(1)  # who ends tools is over before only where it does not see this one
        return process

    monkeypatch.setattr(subprocess, "Popen", begin)
    with (tmp_path / "log").open("w+", encoding="utf-8") as log, ThreadPoolExecutor(1) as lane:
        stage = lane.submit(tools.tool, log, ["sleep", "30"])
        assert begun.wait(60)
        lanes.end_tools()
        over.set()
        with pytest.raises(StageFailed, match="ended with -2"):
            stage.result(60)


#: Tools that take longer than the patience with them: one says that it goes on, or has another say it; one does not.
SLOW = """
import os, signal, sys, time
from pathlib import Path

signal.signal(signal.SIGINT, signal.default_int_handler)
made = Path(sys.argv[1])
try:
    made.touch()  # from here on it may be interrupted
    time.sleep(60)
finally:
    for number in range(20):
        time.sleep(0.5)
        SAYS
    made.unlink()
"""
SAYS = {
    "itself": "print('TASK', number, flush=True)",
    "another": "open(os.environ['HETERO_TIDYING'], 'a').write('TASK')",
    "nobody": "pass",
}


@pytest.mark.parametrize("who", SAYS)
def test_what_takes_a_lab_down_is_waited_for_while_it_says_anything(tmp_path, monkeypatch, capsys, who):
    """Lost: a machine without boards of an interrupted run, whose lab_down took longer than a minute beside load."""
    monkeypatch.setenv("HETERO_TIDYING", str(tmp_path / "tidying"))
    made = tmp_path / "made"
    with (tmp_path / "log").open("w+", encoding="utf-8") as log, ThreadPoolExecutor(1) as lane:
        argv = [sys.executable, "-c", SLOW.replace("SAYS", SAYS[who]), made]
        stage = lane.submit(tools.tool, log, argv, env=environment(HETERO_TIDYING=str(tmp_path / "tidying")))
        until = time.monotonic() + 60
        while not made.exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert made.exists()
        lanes.end_tools(patience=8, again=0.2)  # on a busy machine half a second may take some
        with pytest.raises(StageFailed):
            stage.result(60)
    assert made.exists() is (who == "nobody")
    printed = capsys.readouterr().out
    assert "waits for what takes its lab down; another Ctrl-C kills it" in printed
    assert ("killed 1 before they had ended: a lab may run on" in printed) is (who == "nobody")


def test_lab_down_says_what_it_does_where_an_interrupted_run_looks(tmp_path, monkeypatch):
    """Lost: the same, as pytest keeps to itself what a fixture's program prints."""
    monkeypatch.setenv("HETERO_TIDYING", str(tmp_path / "tidying"))
    monkeypatch.setattr(Lab, "argv", lambda *_words, **_extra: ["sh", "-c", "echo TASK; exit 3"])
    for number in (1, 2):
        assert Lab(tmp_path).play("lab_down", expect=3).output == "TASK\n"
        assert (tmp_path / "tidying").read_text() == "TASK\n" * number
    monkeypatch.delenv("HETERO_TIDYING")
    assert Lab(tmp_path).play("lab_down", expect=3).output == "TASK\n"


def test_sigterm_ends_a_run_as_ctrl_c_does_once():
    """Lost: the same, where timeout(1) ends a run: it sends SIGTERM twice, and the second ended the tidying."""
    before = signal.signal(signal.SIGTERM, main.end)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_network_of_another_runs_test_is_not_left_over():
    """Lost: a run that is red beside another one, or what a run left."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    names = {f"e-left-{ended.pid}", f"e-another-{os.getpid()}"}
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        found = {trace.rpartition(" ")[2] for trace in traces()}
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=True)
    assert names & found == {f"e-left-{ended.pid}"}


def test_the_table_of_costs(tmp_path, monkeypatch, capsys):
    """Lost: which stage to look at when the tests take too long."""
    monkeypatch.setattr(said, "LOGS", tmp_path)
    monkeypatch.setattr(lanes, "LOGS", tmp_path)
    monkeypatch.setattr(lanes, "ROOT", tmp_path)
    monkeypatch.setattr(lanes, "COSTS", {})

    def works(log):
        tools.tool(log, [sys.executable, "-c", BUSY], cwd=tmp_path)
        return "1 test"

    def fails(log):
        raise StageFailed("nothing tested")

    monkeypatch.setattr(lanes, "STAGES", {"fails": fails, "works": works})
    assert sorted(lanes.run_stages(["fails", "works"])) == [False, True]
    said.write_costs(["fails", "works"], lanes.COSTS, 2.0)
    head, *rows, end = (tmp_path / "test-costs.log").read_text().splitlines()
    assert head.split()[2:] == ["tests/run", "fails", "works", "seconds", "processor", "share"]
    assert [row.split()[0] for row in rows] == ["works", "fails", "together"]
    assert [row.split()[-1] for row in rows[:2]] == ["100%", "0%"]
    assert 0.9 < float(rows[2].split()[2]) < 3
    assert end == ""
    printed = capsys.readouterr().out.splitlines()
    assert any(line.startswith("test    works                    1 test") for line in printed)
    assert any(
        line.startswith("test    fails                    FAILED: nothing tested (test-fails.log)") for line in printed
    )


def test_no_two_test_files_have_one_name():
    """Lost: all tests of one of both: pytest takes them for the same where their folders are no packages."""
    names = [path.name for path in (ROOT / "tests" / "unit").rglob("test_*.py")]
    assert {name for name in names if names.count(name) > 1} == set()


def test_each_scenario_has_its_day():
    """Lost: a kind of board or host that no day's run tries, and is found broken by who has one."""
    days = range(739942, 739942 + len(plan.TURNS))
    scenarios = {f"molecule-{path.parent.name}" for path in (ROOT / "molecule").glob("*/molecule.yml")}
    tried = [scenarios - plan.RARE - plan.not_today(day) for day in days]
    assert set().union(*tried) == scenarios - plan.RARE
    assert all(tried), "each day has one"
    assert plan.not_today(days[0]) == plan.not_today(days[0] + len(days))


CASES = """
import pytest

@pytest.mark.parametrize("number", range(7))
def test_many(number):
    pass

def test_one():
    pass
"""


def test_each_case_has_its_day(stage, monkeypatch):
    """Lost: a test, or a case of one, that no day's run has."""
    for old in ("test_long.py", "other.py"):
        (stage.below / old).unlink()
    (stage.below / "test_cases.py").write_text(CASES)
    (stage.below / "pytest.ini").write_text("[pytest]\naddopts = -m 'not another_day'\nmarkers = another_day\n")
    (stage.below / "conftest.py").write_text(
        "import sys, pytest\n"
        f"sys.path.insert(0, {str(ROOT / 'tests')!r})\n"
        "from turns import mark_other_days\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_collection_modifyitems(items):\n    mark_other_days(items, 3)\n"
    )
    tried = []
    for day in (739942, 739943, 739944):
        stage.env["HETERO_DAY"] = str(day)
        tried.append(stage())
    assert sorted(tried) == [2, 3, 3]


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
