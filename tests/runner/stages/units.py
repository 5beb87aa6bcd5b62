# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stages that run unit tests: on this machine's Python, traced for mutants, and at length."""

from __future__ import annotations

import shutil

from runner.places import BIN, BUILD, ROOT, environment
from runner.pytest_runs import pytest
from runner.tools import counted, tool

# Unit tests that take real servers, real processes or Ansible's command line, and so the most of the time:
# stage `unit` runs them; ansible-test's environment has none of that, and running them twice shows nothing new.
# Those of PROCESSES start so many of them, and kill them, that they are a stage of their own, and are never traced.
PROCESSES = {"awx", "gpu_races", "plays", "properties", "secrets", "slurm", "sweep"}
ONLY_IN_STAGE_UNIT = PROCESSES | {
    "action",
    "bench",
    "boards/boot",
    "boards/cabling",
    "boards/disk",
    "boards/image",
    "boards/power",
    "boards/records",
    "boards/verbs",
    "callback",
    "core",
    "devices/cgroup",
    "devices/pci",
    "documents",
    "drivers/boot",
    "drivers/power",
    "files",
    "hypervisors/libvirt",
    "hypervisors/lxc_gpus",
    "hypervisors/pinning",
    "instances",
    "instances/guests",
    "inventory",
    "moving",
    "mutation",
    "nfs",
    "nodes/proxy",
    "parity",
    "plugin_utils",
    "plugin_utils/page",
    "roots",
    "verbs",
}
#: Stages whose tests run side by side leave the processors to those that do one thing after another, and so end last.
BEHIND = 5


def unit_code(log):
    """Unit tests."""
    # each waits for most of its time; a worker more takes ten seconds of a processor to find its tests, and a machine
    # that is busier waits longer for its boards (presence.strain)
    return f"{pytest(log, ['tests/unit'], '--numprocesses=4', *_ignored(), behind=BEHIND)} tests"


def unit_processes(log):
    """The other unit tests."""
    folders = [f"tests/unit/{subject}" for subject in sorted(PROCESSES)]
    return f"{pytest(log, folders, '--numprocesses=2', behind=BEHIND)} tests"


def _ignored():
    return [f"--ignore=tests/unit/{subject}" for subject in sorted(PROCESSES)]


def mutants(log):
    """Small faults put into a sample of the code: how many of them do the unit tests not notice?

    Which test runs which line is recorded first, processes that it starts included. Tracing costs a third more, so only
    here the share of module_utils is told that any of them runs through.
    """
    data, settings = str(BUILD / "recording" / "data"), str(ROOT / "tests" / "mutants" / "recording.toml")
    env = environment(COVERAGE_FILE=data, COVERAGE_RCFILE=settings, PYTHONPATH=f"{BUILD}:{ROOT / 'tests'}")
    shutil.rmtree(BUILD / "recording", ignore_errors=True)
    (BUILD / "recording").mkdir(parents=True)
    words = ["--numprocesses=4", "-m", "not long", "-p", "mutants.recording", *_ignored()]
    tests = pytest(log, ["tests/unit"], *words, run=[BIN / "coverage", "run", "-m"], env=env, limit=14400)
    tool(log, [BIN / "coverage", "combine", "--quiet"], env=env)
    output = tool(log, [BIN / "coverage", "report", "--skip-covered", "--show-missing"], env=env)
    share = counted(r"^TOTAL .* ([0-9]+)%$", output, "lines")
    env = environment(PYTHONPATH=str(ROOT / "tests"), HETERO_BUILDS="")
    tried = tool(log, [BIN / "python", "-m", "mutants.run"], limit=7200, env=env).strip().splitlines()[-1]
    return f"{tests} tests run {share} % of module_utils; {tried}"


def long(log):
    """What takes minutes: every kill point, all races, a hundred thousand bad inputs. Only `make test-all` runs it."""
    # no more side by side than there are processors, for machines under emulation in the stages beside it stall where
    # they get little of them
    return f"{pytest(log, ['tests/unit'], '-m', 'long', '--numprocesses=2', limit=14400, behind=BEHIND)} tests"
