# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all unit tests share: processes they start find the collection, and hypothesis keeps its examples in build/.

Fixtures are left to the subjects' own folders.
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import configuration

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import askers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import folders
from ansible_collections.hetero.compute.tests.huge_pages import use_huge_pages
from ansible_collections.hetero.compute.tests.machine import Watch
from ansible_collections.hetero.compute.tests.turns import DAY, mark_other_days
from ansible_collections.hetero.compute.tests.unit.own_mounts import have_own_mounts
from ansible_collections.hetero.compute.tests.warm.plays import close_servers

ROOT = Path(__file__).resolve().parents[2]

# ansible-test runs a copy that lies at …/ansible_collections/hetero/compute, and brings its own ansible by PYTHONPATH;
# a clone has a link to itself in build/
COLLECTIONS = ROOT.parents[2] if ROOT.parts[-3:] == ("ansible_collections", "hetero", "compute") else ROOT / "build"
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(COLLECTIONS), os.environ.get("PYTHONPATH")]))

# Until all tests are collected what is made stays: looking for garbage among it takes a quarter of the time.
gc.disable()

configuration.set_hypothesis_home_dir(ROOT / "build" / "hypothesis")

MACHINE = Watch()

#: Subjects with real containers of the real LXC.
WITH_LXC = {"gpu_races", "hypervisors/lxc", "hypervisors/lxc_gpus"}
#: Subjects whose tests take two thirds of the processor's time of stage unit-code, as measured.
IN_TURNS = {
    "boards/boot",
    "boards/disk",
    "boards/image",
    "boards/power",
    "boards/records",
    "boards/verbs",
    "callback",
    "devices/cgroup",
    "drivers/boot",
    "drivers/power",
    "hypervisors/lxc_gpus",
    "images",
    "instances",
    "instances/guests",
    "inventory",
    "mutation",
    "nfs",
    "nodes/proxy",
    "plugin_utils",
    "roots",
    "verbs",
}
#: Subjects whose tests run ansible-playbook, six seconds of a processor each, or kill and race processes by seeds.
OF_PROCESSES = {"awx", "gpu_races", "plays", "properties", "slurm", "sweep"}
#: In so many days each test of theirs has its turn, and each other one that is marked `dear`: it takes a second of the
#: processor or more. All are prime, for cases that take turns themselves (turns.in_turns) do so of 2 to 6 days.
DAYS, DAYS_OF_PROCESSES, DAYS_OF_DEAR = 13, 17, 5


def subject(item):
    """The folder of a test, as these sets name it."""
    return _below_unit(item.path.parent)


@lru_cache(maxsize=None)
def _below_unit(folder):
    return os.path.relpath(folder, ROOT / "tests" / "unit")  # tests/versions has tests beside these


@pytest.fixture(autouse=True)
def nobody_asks():
    """A job that a test begins in its own process leaves nobody behind who asked: he would be gone for later tests."""
    yield
    askers.asked_by(None)


#: ansible-test reads no pyproject.toml, which has these marks as well, and leaves out what has one.
LEFT_OUT = ("long", "another_day")


def pytest_configure(config):
    for mark in (*LEFT_OUT, "dear"):
        config.addinivalue_line("markers", f"{mark}: pyproject.toml says what it is")


def pytest_report_header():
    return f"HETERO_DAY={DAY} runs the cases again whose day it is"


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config, items):
    mark_other_days([item for item in items if subject(item) in IN_TURNS], DAYS)
    mark_other_days([item for item in items if subject(item) in OF_PROCESSES], DAYS_OF_PROCESSES, "long")
    others = [item for item in items if subject(item) not in IN_TURNS | OF_PROCESSES]
    mark_other_days([item for item in others if item.get_closest_marker("dear")], DAYS_OF_DEAR)
    why = None
    if os.geteuid() != 0:
        why = "containers of the system need root: run as root"
    elif not shutil.which("lxc-start"):
        why = "lxc is not installed: tools/setup test"
    for item in items if why else []:
        if subject(item) in WITH_LXC:
            item.add_marker(pytest.mark.skip(reason=why))
    if not config.option.markexpr:
        out = [item for item in items if any(map(item.get_closest_marker, LEFT_OUT))]
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in set(out)]


def pytest_collection_finish(session):
    """The tests fork this process thousands of times, and look for their own garbage only."""
    if session.config.option.collectonly:
        gc.freeze()  # it ends now, and pytest would look through all of it
        return
    gc.collect()
    gc.freeze()
    gc.enable()
    use_huge_pages()


@pytest.fixture(scope="session", autouse=True)
def mounts_apart():
    """A namespace that a test beside this one makes holds no root of this one: it could not be mounted again."""
    if os.geteuid() == 0:
        have_own_mounts()


@pytest.fixture(scope="session", autouse=True)
def servers_of_plays():
    """What forks plays ends with the tests."""
    yield
    close_servers()


@pytest.fixture(autouse=True)
def machine():
    """What the machine has of its own, as a node, is touched by no test."""
    MACHINE.begin()
    yield
    touched = MACHINE.touched()
    assert not touched, f"it touched what is the machine's own: {touched[:5]}"


@pytest.fixture(autouse=True)
def same_folder():
    """Each test begins where the first one did. Who comes back from a mount namespace of its own is in /, and what runs
    there as `python -m` takes any file of / for a module.
    """
    here = os.getcwd()
    yield
    os.chdir(here)


@pytest.fixture(autouse=True)
def in_use():
    """Folders in which containers run, as the code finds them: those that a test adds, for others' run here too."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folders, "in_use", lambda: found)
        yield found


@pytest.fixture(autouse=True)
def unmounted(tmp_path_factory):
    """What a test mounted in its folder is unmounted after it: each mount holds a loop device of this machine."""
    yield
    folder = str(tmp_path_factory.getbasetemp())
    for line in reversed(Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()):
        point = line.split()[4]
        if point.startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", point], check=False, stderr=subprocess.DEVNULL)
